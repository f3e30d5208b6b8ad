"""The program `sbsrl`: parses, calls, prints. Exit codes: 0 done, 2 a user's mistake, 130 interrupted."""

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, asdict, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from time import perf_counter
from typing import Any, NamedTuple, NoReturn

from rich.console import Console
from rich.markup import escape

from ._configure import STARTED
from .atomic import write_atomically
from .behaviours import CollectionInterrupted, CutShort
from .data_sources import check_out, keep
from .errors import UserError, unknown
from .methods import DEFAULT, METHODS
from .offline import BEHAVIOURS, EPISODES, OfflineData, collect
from .own.settings import OwnSettings
from .own.system import is_own
from .parts import PARTS
from .report.certification import add_options, as_json, read_options, show
from .report.figures import FIGURES, Request, reproduce
from .report.reference import reference_returns
from .report.terminal import Terminal, episode_line, evaluation_table, progress_bar, summary_table
from .runs import (
    Result,
    RunFolder,
    begin,
    check,
    default_folder,
    evaluate,
    export,
    look_at,
    look_at_last,
    make_prior,
    resume,
)
from .settings import DEFAULT_PARTS, PRESETS, RunSettings, parse_setting
from .specification import plain_name, resolve
from .tasks import TASKS, find_task
from .theory import certify, tradeoff

__all__ = ["main"]


class Command(NamedTuple):
    """One of the program's verbs."""

    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see '{self.prog} --help'.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code."""
    complaints = Console(stderr=True)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # whoever logs to a file wants to see each episode as it ends
    try:
        return _dispatch(list(sys.argv[1:] if arguments is None else arguments))
    except UserError as error:
        complaints.print(f"sbsrl: {error}", soft_wrap=True, highlight=False, markup=False)
        return 2
    except KeyboardInterrupt:
        complaints.print("sbsrl: interrupted.", highlight=False)
        return 130
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)):
            raise
        complaints.print("sbsrl: there is not enough memory for this; use fewer candidates, samples or features.")
        return 2
    except OSError as error:  # the terminal or the pipe that this prints to
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to be flushed at exit
        complaints.print(f"sbsrl: {error}.", soft_wrap=True, highlight=False, markup=False)
        return 2


def _dispatch(arguments: list[str]) -> int:
    parser = _parser()
    if not arguments:
        parser.print_help()
        return 0
    if not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise unknown("command", arguments[0], COMMANDS)
    options = parser.parse_args(arguments)
    return COMMANDS[options.command].run(options)


def _parser() -> _Parser:
    parser = _Parser(prog="sbsrl", description="Learn to control an unknown system without breaking it.")
    parser.add_argument("--version", action="version", version=f"sbsrl {version('sbsrl')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for name, command in COMMANDS.items():
        command.arguments(
            commands.add_parser(
                name,
                help=command.summary,
                description=command.summary,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )
    return parser


def _train_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="see 'sbsrl tasks'")
    parser.add_argument("--method", default=DEFAULT.name, help=f"see 'sbsrl methods' ({DEFAULT.name})")
    parser.add_argument("--seed", type=int, default=0, help="all randomness follows from it (0)")
    _add_short(parser, "episodes", "budget", "cost", "data", "prior", "simulator")
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder (runs/TASK-METHOD-sSEED)")
    parser.add_argument("--preset", default="cpu", help=f"one of {', '.join(PRESETS)} (cpu)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting below, for example --set samples=50; may be repeated",
    )
    parser.epilog = "\n\n".join(_setting_sections())


def _add_short(parser: argparse.ArgumentParser, *names: str) -> None:
    """Options that are short for settings."""
    for name in names:
        parser.add_argument(f"--{name}", metavar="VALUE", help=f"short for --set {name}=VALUE")


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given, those of short options last."""
    given = vars(options)
    short = [f"{name}={given[name]}" for name in SHORT if given.get(name) is not None]
    return dict(parse_setting(text) for text in (*options.set, *short))


SHORT = ("episodes", "budget", "cost", "data", "prior", "simulator")


def _setting_sections() -> Iterator[str]:
    """Every group of settings with a sentence about it, and the groups of parts that may be chosen instead."""
    yield _paragraph(
        "Settings are in groups: --set solver.horizon=25. The name of the group may be left out where no other group "
        "has such a setting. Defaults are in square brackets; tasks and presets have some of their own."
    )
    yield _section("run", "run", RunSettings)
    yield _section("task", "task, with a system of your own", OwnSettings)
    yield _section("method", "method", DEFAULT.settings)
    for method in METHODS.values():
        if method.settings is not DEFAULT.settings:
            yield _section("method", f"method, with --method {method.name}", method.settings, DEFAULT.settings)
    for group, parts in PARTS.items():
        for name, part in parts.items():
            chosen = "the default" if DEFAULT_PARTS[group] == name else f"chosen by --set {group}={name}"
            yield _section(group, f"{group} {name}, {chosen}", part.load())


def _section(group: str, title: str, settings: Any, known: Any = None) -> str:
    """The settings of a group, but for those that another section has already."""
    skipped = {item.name for item in fields(known)} if known else set()
    lines = [_paragraph(f"{title}: {settings.__doc__.splitlines()[0]}")]
    for item in fields(settings):
        if item.name not in skipped:
            text = f"{item.metadata['help']} [{_default(item.default)}]"
            lines.append(_paragraph(text, f"  {group + '.' + item.name:29}", 31))
    return "\n".join(lines)


def _default(value: Any) -> str:
    """As it would be typed."""
    if value is MISSING:
        return "the task's"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"


def _paragraph(text: str, before: str = "", indent: int = 0) -> str:
    """Text as wide as the terminal, or as readable."""
    width = min(max(get_terminal_size().columns - 2, 60), 118)
    return fill(text, width, initial_indent=before, subsequent_indent=" " * indent, break_on_hyphens=False)


def _resume_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run folder")
    parser.add_argument("--insist", action="store_true", help="go on although config.json was edited")


def _reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("figure", metavar="FIGURE", help="see 'sbsrl figures'")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for its files (results/FIGURE)")
    parser.add_argument("--seed", type=int, default=0, help="all randomness follows from it (0)")
    parser.add_argument("--seeds", type=int, metavar="K", help="how many runs (as many as the preset says)")
    parser.add_argument("--priors", type=int, metavar="K", help="with networks: from how many offline phases (2)")
    parser.add_argument("--preset", default="cpu", help=f"one of {', '.join(PRESETS)} (cpu)")
    parser.add_argument("--workers", type=int, metavar="K", default=os.cpu_count(), help="processes (one per core)")


def _collect_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="see 'sbsrl tasks'")
    parser.add_argument("--behaviour", default="wander", help="what makes the data, see below (wander)")
    parser.add_argument("--transitions", type=int, default=100, metavar="N", help="how many (100)")
    parser.add_argument("--episodes", type=int, default=EPISODES, metavar="N", help=f"of a task's own ({EPISODES})")
    parser.add_argument("--strength", type=float, metavar="S", help="share of the action range that is used")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the task")
    parser.add_argument("--seed", type=int, default=0, help="all randomness follows from it (0)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (data/TASK-BEHAVIOUR-sSEED.npz)")
    parser.epilog = "behaviours:\n" + "\n".join(
        f"  {name:10}{b.summary} (strength {b.strength:g})" for name, b in BEHAVIOURS.items()
    )
    parser.epilog += "\n\nSome tasks have behaviours of their own, of which whole episodes are recorded."


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def _train(options: argparse.Namespace) -> int:
    asked = (options.task, options.method, options.seed, options.preset, _changes(options))
    out: Path = options.out or default_folder(*asked[:3])
    return _show(out, lambda terminal: begin(*asked, out, terminal))


def _resume(options: argparse.Namespace) -> int:
    return _show(options.folder, lambda terminal: resume(options.folder, terminal, options.insist))


def _reproduce(options: argparse.Namespace) -> int:
    console = Console()
    say = partial(console.print, soft_wrap=True, highlight=False, markup=False)
    with progress_bar(console) as bar:
        work = bar.add_task(options.figure, total=1.0)
        request = Request(
            options.figure,
            options.seed,
            options.seeds,
            options.preset,
            options.workers,
            say,
            lambda share: bar.update(work, completed=share),
            options.priors,
        ).check()
        for path in reproduce(request, options.out or Path("results") / options.figure):
            say(path)
    return 0


MOST_SHOWN = 17
"""States of which `collect` shows the range: of a window of the race car, the newest frame and the commands."""


def _collect(options: argparse.Namespace) -> int:
    changes = dict(parse_setting(text) for text in options.set)
    task, _ = resolve(options.task, changes={**changes, "data": ""})
    out: Path = options.out or Path("data") / f"{task.name}-{options.behaviour}-s{options.seed}.npz"
    say = partial(Console().print, soft_wrap=True, highlight=False, markup=False)
    check_out(out)
    try:
        data = collect(task, options.behaviour, options.transitions, options.seed, options.strength, options.episodes)
    except (CutShort, CollectionInterrupted) as short:
        keep(OfflineData(task.name, options.behaviour, options.seed, short.transitions), task, out)
        kept = f"{short}; {len(short.transitions.actions)} transitions until then are kept in {out}."
        if isinstance(short, CutShort):
            raise UserError(kept) from None
        say(kept)
        return 130
    keep(data, task, out)
    shown = list(zip(task.state_names, data.transitions.next_states.T, strict=True))
    for name, part in shown[-MOST_SHOWN:]:
        say(f"{name:12} from {part.min():8.3f} to {part.max():8.3f}")
    for cost, part in zip(task.costs, data.transitions.costs.T, strict=True):
        say(f"{cost.name}: largest in a step {part.max():.3f}, budget {cost.budget:g}")
    say(f"{len(data.transitions.actions)} transitions")
    say(f"{out}: use it with 'sbsrl train {task.name} --set data={out}'")
    return 0


def _certify(options: argparse.Namespace) -> int:
    premises, facts = read_options(options)
    name = options.task or options.kernel
    result = certify(premises, facts)
    curve = tradeoff(premises) if options.json or options.plot else ()
    if options.plot:
        from .report.tradeoff import draw_tradeoff  # noqa: PLC0415  (importing matplotlib takes a second)

        write_atomically(Path(options.plot), draw_tradeoff(premises, curve, name))
    if options.json:
        print(as_json(result, curve, name))
    else:
        show(console := Console(), result, name)
        if options.plot:
            console.print(f"\npicture: {options.plot}", soft_wrap=True, highlight=False, markup=False)
    return 0


def _show(folder: Path, run: Callable[[Terminal], Result]) -> int:
    """Runs with a live display, then draws and sums up what happened."""
    console = Console()
    try:
        with Terminal(console) as terminal:
            result = run(terminal)
            terminal.describe("comparing with the oracle")
            _finish(console, result, folder)
    except KeyboardInterrupt:
        if not (folder / "config.json").exists():
            raise
        console.print(
            f"interrupted; finished episodes are kept. Continue with: sbsrl resume {folder}",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )
        return 130
    return 0


def _finish(console: Console, result: Result, folder: Path) -> None:
    from .report.picture import draw_run  # noqa: PLC0415  (importing matplotlib takes a second: only who draws pays)

    run = RunFolder.open(folder)
    if reference := reference_returns(result.experiment):
        run.write_json("reference.json", asdict(reference))
    view = run.view()
    console.print()
    console.print(summary_table(view, perf_counter() - STARTED))
    picture = folder / "learning.png"
    write_atomically(picture, draw_run(view))
    console.print(f"picture: {picture}", soft_wrap=True, highlight=False, markup=False)
    if look := look_at_last(result):
        from .report.trajectory import draw_episode  # noqa: PLC0415

        write_atomically(folder / "trajectory.png", draw_episode(look))
        console.print(f"the last episode: {folder / 'trajectory.png'}", soft_wrap=True, highlight=False, markup=False)


def _plot_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run folder")
    parser.add_argument("--episode", type=int, metavar="N", help="which one (the last)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (DIR/episode-N.png)")


def _plot(options: argparse.Namespace) -> int:
    from .report.trajectory import draw_episode  # noqa: PLC0415

    look = look_at(options.folder, options.episode)
    out: Path = options.out or options.folder / f"episode-{look.record.episode}.png"
    write_atomically(out, draw_episode(look))
    Console().print(str(out), soft_wrap=True, highlight=False, markup=False)
    return 0


def _evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run folder")
    parser.add_argument("--episodes", type=int, default=10, metavar="K", help="how many (10)")


def _evaluate(options: argparse.Namespace) -> int:
    console = Console()
    view = RunFolder.open(options.folder).view()
    say = partial(console.print, soft_wrap=True, highlight=False)
    records = evaluate(options.folder, options.episodes, lambda r: say(episode_line(view, r)), say)
    console.print(evaluation_table(view, records))
    return 0


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run folder")
    parser.add_argument(
        "--out", type=Path, metavar="PATH", help="where to (DIR/policy.onnx, for a planner the folder DIR-policy)"
    )


def _export(options: argparse.Namespace) -> int:
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
    _add_short(parser, "budget", "cost", "data", "simulator")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting; see 'sbsrl train --help'"
    )


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    _own_arguments(parser)
    parser.description = f"{parser.description}; plays two cautious episodes of at most 50 steps on it"


MARKS = {"wrong": "[bold red]wrong[/]  ", "careful": "[yellow]careful[/]", "fine": "[green]fine[/]   "}


def _check(options: argparse.Namespace) -> int:
    if not is_own(options.system):
        find_task(options.system)
        raise UserError(f"{options.system} is a task of this program; check is for systems of your own.")
    found, console = check(options.system, _changes(options)), Console()
    for finding in found:
        console.print(f"{MARKS[finding.kind]}  {escape(finding.text)}", soft_wrap=True, highlight=False)
    return 2 if any(finding.kind == "wrong" for finding in found) else 0


def _prior_arguments(parser: argparse.ArgumentParser) -> None:
    _own_arguments(parser)
    parser.add_argument("--seed", type=int, default=0, help="all randomness follows from it (0)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (SYSTEM-prior.toml)")


def _prior(options: argparse.Namespace) -> int:
    if not is_own(options.system):
        find_task(options.system)
        raise UserError(f"{options.system} is a task of this program, which has priors of its own.")
    changes = _changes(options)
    proposal = make_prior(options.system, changes, options.seed)
    out: Path = options.out or Path(f"{plain_name(options.system)}-prior.toml")
    proposal.knowledge.write(out)
    say = partial(Console().print, soft_wrap=True, highlight=False, markup=False)
    for sentence in proposal.said:
        say(f"- {sentence}")
    say(f"{out}: read it, edit it, and use it with 'sbsrl train {options.system} --prior {out}' and the same settings.")
    return 0


def _list(names: dict[str, str]) -> int:
    console, width = Console(), max(map(len, names))
    for name, summary in names.items():
        console.print(f"{name:{width}}  {summary}", soft_wrap=True, highlight=False)
    return 0


COMMANDS = {
    "train": Command("learn a task", _train_arguments, _train),
    "resume": Command("continue a run exactly where it stopped", _resume_arguments, _resume),
    "evaluate": Command("play a learned policy, without learning from it", _evaluate_arguments, _evaluate),
    "plot": Command("draw an episode: states, actions, costs, and what the samples foretold", _plot_arguments, _plot),
    "export": Command("write a learned policy where it can stand alone, networks as ONNX", _export_arguments, _export),
    "check": Command("look for what is wrong with a system of your own", _check_arguments, _check),
    "prior": Command(
        "propose what is known of a system of your own, from data or a simulator", _prior_arguments, _prior
    ),
    "collect": Command("make offline data with a behaviour", _collect_arguments, _collect),
    "certify": Command("what the theory guarantees: samples, tightening, confidence", add_options, _certify),
    "reproduce": Command("make a figure of the paper", _reproduce_arguments, _reproduce),
    "figures": Command(
        "list the figures", _no_arguments, lambda options: _list({n: f.summary for n, f in FIGURES.items()})
    ),
    "tasks": Command("list the tasks", _no_arguments, lambda options: _list({n: t.summary for n, t in TASKS.items()})),
    "methods": Command(
        "list the methods", _no_arguments, lambda options: _list({n: m.summary for n, m in METHODS.items()})
    ),
}
