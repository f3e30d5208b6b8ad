"""The program `sbsrl`: parses, calls, prints. Exit codes: 0 done, 2 a user's mistake, 130 interrupted."""

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
from rich.console import Console

from .atomic import write_atomically
from .errors import UserError, unknown
from .methods import METHODS
from .offline import BEHAVIOURS, collect
from .report.certification import add_options, as_json, read_options, show
from .report.figures import FIGURES, Request, reproduce
from .report.reference import reference_returns
from .report.terminal import Terminal, progress_bar, summary_table
from .runs import Result, Specification, resume, train
from .settings import PRESETS, Settings, parse_setting
from .tasks import TASKS, make_task
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
    parser.add_argument("--method", default="sbsrl", help="see 'sbsrl methods' (sbsrl)")
    parser.add_argument("--seed", type=int, default=0, help="all randomness follows from it (0)")
    parser.add_argument("--episodes", metavar="N", help="short for --set episodes=N")
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder (runs/TASK-METHOD-sSEED)")
    parser.add_argument("--preset", default="cpu", help=f"one of {', '.join(PRESETS)} (cpu)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting below")
    parser.epilog = "settings, with their defaults:\n" + "\n".join(map(_setting_help, fields(Settings)))


def _setting_help(item: Field[Any]) -> str:
    default = "the task's" if item.default is MISSING else item.default
    return f"  {item.name:24}{item.metadata['help']} ({default})"


def _resume_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run folder")


def _reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("figure", metavar="FIGURE", help="see 'sbsrl figures'")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for its files (results/FIGURE)")
    parser.add_argument("--seed", type=int, default=0, help="all randomness follows from it (0)")
    parser.add_argument("--seeds", type=int, metavar="K", help="how many runs (as many as the preset says)")
    parser.add_argument("--preset", default="cpu", help=f"one of {', '.join(PRESETS)} (cpu)")
    parser.add_argument("--workers", type=int, metavar="K", default=os.cpu_count(), help="processes (one a core)")


def _collect_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="see 'sbsrl tasks'")
    parser.add_argument("--behaviour", default="wander", help="what makes the data, see below (wander)")
    parser.add_argument("--transitions", type=int, default=100, metavar="N", help="how many (100)")
    parser.add_argument("--strength", type=float, metavar="S", help="share of the action range that is used")
    parser.add_argument("--seed", type=int, default=0, help="all randomness follows from it (0)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (data/TASK-BEHAVIOUR-sSEED.npz)")
    parser.epilog = "behaviours:\n" + "\n".join(
        f"  {name:10}{b.summary} (strength {b.strength:g})" for name, b in BEHAVIOURS.items()
    )


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def _train(options: argparse.Namespace) -> int:
    changes = dict(parse_setting(text) for text in options.set)
    if options.episodes is not None:
        changes |= dict([parse_setting(f"episodes={options.episodes}")])
    spec = Specification.make(options.task, options.method, options.seed, options.preset, changes)
    out: Path = options.out or spec.default_folder
    return _show(out, lambda terminal: train(spec, out, terminal))


def _resume(options: argparse.Namespace) -> int:
    return _show(options.folder, lambda terminal: resume(options.folder, terminal))


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
        ).check()
        for path in reproduce(request, options.out or Path("results") / options.figure):
            say(path)
    return 0


def _collect(options: argparse.Namespace) -> int:
    task = make_task(options.task)
    data = collect(task, options.behaviour, options.transitions, options.seed, options.strength)
    out: Path = options.out or Path("data") / f"{task.name}-{options.behaviour}-s{options.seed}.npz"
    data.save(out)
    console = Console()
    say = partial(console.print, soft_wrap=True, highlight=False, markup=False)
    for name, part in zip(task.state_names, data.transitions.next_states.T, strict=True):
        say(f"{name:8} from {part.min():8.3f} to {part.max():8.3f}")
    costs = jax.vmap(task.cost)(*(jnp.asarray(part) for part in data.transitions))
    say(f"{len(costs)} transitions; largest cost of a step {float(costs.max()):.3f}, budget {task.budget:g}")
    say(f"{out}: use it with 'sbsrl train {task.name} --set data={out}'")
    return 0


def _certify(options: argparse.Namespace) -> int:
    setting, task = read_options(options)
    name = options.task or options.kernel
    result = certify(setting, task)
    curve = tradeoff(setting) if options.json or options.plot else ()
    if options.plot:
        from .report.tradeoff import draw_tradeoff  # noqa: PLC0415  (importing matplotlib takes a second)

        write_atomically(Path(options.plot), draw_tradeoff(setting, curve, name))
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

    reference = reference_returns(result.experiment)
    console.print(summary_table(result.experiment, result.records, reference))
    picture = folder / "learning.png"
    write_atomically(picture, draw_run(result.experiment, result.records, reference))
    console.print(f"picture: {picture}", soft_wrap=True, highlight=False, markup=False)


def _list(names: dict[str, str]) -> int:
    console = Console()
    for name, summary in names.items():
        console.print(f"{name:12} {summary}", soft_wrap=True, highlight=False)
    return 0


COMMANDS = {
    "train": Command("learn a task", _train_arguments, _train),
    "resume": Command("continue a run exactly where it stopped", _resume_arguments, _resume),
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
