"""The program `sbsrl`: parses, calls, prints. Exit codes: 0 done, 2 a user's mistake, 130 interrupted."""

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, NoReturn

from rich.console import Console

from ._configure import STARTED
from .atomic import write_atomically
from .behaviours import CollectionInterrupted, CutShort
from .cli_options import changes, train_arguments
from .cli_own import (
    check_arguments,
    evaluate_arguments,
    export_arguments,
    plot_arguments,
    prior_arguments,
    run_check,
    run_evaluate,
    run_export,
    run_plot,
    run_prior,
)
from .data_sources import check_out, keep
from .errors import UserError, unknown
from .methods import METHODS
from .offline import BEHAVIOURS, EPISODES, OfflineData, collect
from .own.system import is_own
from .report.certification import add_options, as_json, read_options, show
from .report.figures import FIGURES, Request, reproduce
from .report.reference import reference_returns
from .report.terminal import Terminal, progress_bar, summary_table
from .runs import (
    Result,
    RunFolder,
    begin,
    default_folder,
    resume,
)
from .settings import PRESETS
from .specification import resolve
from .tasks import TASKS
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
    asked = (options.task, options.method, options.seed, options.preset, changes(options))
    out: Path = options.out or default_folder(*asked[:3])
    if options.video is not None:
        _check_video(options)
    return _show(out, lambda terminal: begin(*asked, out, terminal), options)


def _check_video(options: argparse.Namespace) -> None:
    """Refuses what is wrong about the films that are wanted before hours were spent on the run."""
    from .report.film import check_format, read_episodes  # noqa: PLC0415  (only who draws pays for it)

    read_episodes(options.video)
    check_format(options.video_format)


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
    if is_own(options.task):
        raise UserError(
            f"'collect' knows tasks of this program; of {options.task}, 'sbsrl train' plays cautious first episodes "
            "itself and keeps them in DIR/offline.npz, which other runs and 'sbsrl prior' take as --data."
        )
    task, _ = resolve(options.task, changes={**changes(options), "data": ""})
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


def _show(folder: Path, run: Callable[[Terminal], Result], options: argparse.Namespace | None = None) -> int:
    """Runs with a live display, then draws and sums up what happened; films it if the options say so."""
    console = Console()
    try:
        with Terminal(console) as terminal:
            result = run(terminal)
            terminal.describe("comparing with the oracle")
            _finish(console, result, folder)
            if options and options.video is not None:
                terminal.describe("filming")
                _film(console, folder, options)
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
    from .report.pictures import draw_pictures  # noqa: PLC0415  (importing matplotlib takes a second: who draws pays)

    run = RunFolder.open(folder)
    if reference := reference_returns(result.experiment):
        run.write_json("reference.json", asdict(reference))
    console.print()
    console.print(summary_table(run.view(), perf_counter() - STARTED))
    for path in draw_pictures(result):
        console.print(f"picture: {path}", soft_wrap=True, highlight=False, markup=False)


def _film(console: Console, folder: Path, options: argparse.Namespace) -> None:
    from .report.film import make_films  # noqa: PLC0415

    def say(path: Path) -> None:
        console.print(f"video: {path}", soft_wrap=True, highlight=False, markup=False)

    try:
        make_films(folder, options.video, options.video_format, say)
    except UserError as error:
        again = f"the run is complete; try once more with 'sbsrl plot {folder} --video {options.video}'"
        raise UserError(f"{str(error).rstrip('.')}. There is no film, but {again}.") from error


def _list(names: dict[str, str]) -> int:
    console, width = Console(), max(map(len, names))
    for name, summary in names.items():
        console.print(f"{name:{width}}  {summary}", soft_wrap=True, highlight=False)
    return 0


COMMANDS = {
    "train": Command("learn a task", train_arguments, _train),
    "resume": Command("continue a run exactly where it stopped", _resume_arguments, _resume),
    "evaluate": Command("play a learned policy, without learning from it", evaluate_arguments, run_evaluate),
    "plot": Command("draw an episode: states, actions, costs, and what the samples foretold", plot_arguments, run_plot),
    "export": Command(
        "write a learned policy where it can stand alone, networks as ONNX", export_arguments, run_export
    ),
    "check": Command("look for what is wrong with a system of your own", check_arguments, run_check),
    "prior": Command(
        "propose what is known of a system of your own, from data or a simulator", prior_arguments, run_prior
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
