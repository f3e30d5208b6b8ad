"""The commands for a user's own system, and for what was learned: check, prior, evaluate, plot, export."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from .atomic import write_atomically
from .cli_options import add_settings, changes, video_arguments
from .errors import UserError
from .own.system import is_own
from .report.terminal import episode_line, evaluation_table
from .runs import RunFolder, check, evaluate, export, look_at, make_prior
from .specification import plain_name
from .tasks import find_task

__all__ = [
    "check_arguments",
    "evaluate_arguments",
    "export_arguments",
    "plot_arguments",
    "prior_arguments",
    "run_check",
    "run_evaluate",
    "run_export",
    "run_plot",
    "run_prior",
]


def plot_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run folder")
    parser.add_argument("--episode", type=int, metavar="N", help="which one (the last)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (DIR/episode-N.png)")
    video_arguments(parser)


def run_plot(options: argparse.Namespace) -> int:
    """Draws an episode, or films some."""
    from .report.trajectory import draw_episode  # noqa: PLC0415

    if options.video is not None:
        return _film(options)
    look = look_at(options.folder, options.episode)
    out: Path = options.out or options.folder / f"episode-{look.record.episode}.png"
    write_atomically(out, draw_episode(look))
    Console().print(str(out), soft_wrap=True, highlight=False, markup=False)
    return 0


def _film(options: argparse.Namespace) -> int:
    from .report.film import make_films  # noqa: PLC0415

    if options.episode is not None or options.out is not None:
        raise UserError("--episode and --out are for a picture; say --video 3 for a film of episode 3, in DIR/videos.")
    say = partial(Console().print, soft_wrap=True, highlight=False, markup=False)
    make_films(options.folder, options.video, options.video_format, lambda path: say(str(path)))
    return 0


def evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run folder")
    parser.add_argument("--episodes", type=int, default=10, metavar="K", help="how many (10)")


def run_evaluate(options: argparse.Namespace) -> int:
    """Plays a learned policy."""
    console = Console()
    view = RunFolder.open(options.folder).view()
    say = partial(console.print, soft_wrap=True, highlight=False)
    records = evaluate(options.folder, options.episodes, lambda r: say(episode_line(view, r)), say)
    console.print(evaluation_table(view, records))
    return 0


def export_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run folder")
    parser.add_argument(
        "--out", type=Path, metavar="PATH", help="where to (DIR/policy.onnx, for a planner the folder DIR-policy)"
    )


def run_export(options: argparse.Namespace) -> int:
    """Writes a learned policy."""
    written = export(options.folder, options.out)
    how = (
        "all that the planner needs; its README.md says how to use it"
        if written.error is None
        else f"differs from the original by at most {written.error:.1e} of the range of actions"
    )
    Console().print(f"{written.path}: {how}", soft_wrap=True, highlight=False, markup=False)
    return 0


def _own_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "system", metavar="SYSTEM", help="gymnasium:ID, module:name or file.py:name of a system of your own"
    )
    add_settings(parser, "budget", "cost", "data", "simulator")


def _refuse_tasks(system: str) -> None:
    """This package's own tasks are in order, and have priors."""
    if not is_own(system):
        find_task(system)
        raise UserError(f"{system} is a task of this program; this command is for systems of your own.")


def _teller(console: Console) -> Callable[[str], None]:
    """Prints sentences: between words on a terminal, whole into a file or a pipe."""
    return partial(console.print, soft_wrap=not console.is_terminal, highlight=False)


def check_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    _own_arguments(parser)
    parser.description = f"{parser.description}; plays two cautious episodes of at most 50 steps on it"


MARKS = {"wrong": "[bold red]wrong[/]  ", "careful": "[yellow]careful[/]", "fine": "[green]fine[/]   "}


def run_check(options: argparse.Namespace) -> int:
    """Says what is wrong with a system."""
    _refuse_tasks(options.system)
    found, tell = check(options.system, changes(options)), _teller(Console())
    for finding in found:
        tell(f"{MARKS[finding.kind]}  {escape(finding.text)}")
    return 2 if any(finding.kind == "wrong" for finding in found) else 0


def prior_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    _own_arguments(parser)
    parser.add_argument("--seed", type=int, default=0, help="all randomness follows from it (0)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (SYSTEM-prior.toml)")


def run_prior(options: argparse.Namespace) -> int:
    """Proposes what is known of a system."""
    _refuse_tasks(options.system)
    proposal = make_prior(options.system, changes(options), options.seed)
    out: Path = options.out or Path(f"{plain_name(options.system)}-prior.toml")
    proposal.knowledge.write(out)
    console = Console()
    tell = _teller(console)
    for sentence in proposal.said:
        tell(f"- {escape(sentence)}")
    say = partial(console.print, soft_wrap=True, highlight=False, markup=False)
    say(f"{out}: read it, edit it, and use it with 'sbsrl train {options.system} --prior {out}' and the same settings.")
    return 0
