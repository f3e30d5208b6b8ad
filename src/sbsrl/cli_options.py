"""Settings on the command line: how they are given, and the help that lists them all."""

import argparse
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

from .methods import DEFAULT, METHODS
from .own.settings import OwnSettings
from .parts import PARTS
from .settings import DEFAULT_PARTS, PRESETS, RunSettings, parse_setting

__all__ = ["add_settings", "changes", "train_arguments", "video_arguments"]

ENDS = "first,last"
"""Which episodes are filmed if none are named."""
SHORT = ("episodes", "budget", "cost", "data", "prior", "simulator")
"""Settings that have options of their own."""


def train_arguments(parser: argparse.ArgumentParser) -> None:
    """What a run can be told; its help lists every setting."""
    parser.add_argument(
        "task",
        metavar="TASK",
        help="see 'sbsrl tasks'; or a system of your own: gymnasium:ID, module:name, file.py:name",
    )
    parser.add_argument("--method", default=DEFAULT.name, help=f"see 'sbsrl methods' ({DEFAULT.name})")
    parser.add_argument("--seed", type=int, default=0, help="all randomness follows from it (0)")
    add_settings(parser, *SHORT)
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder (runs/TASK-METHOD-sSEED)")
    parser.add_argument("--preset", default="cpu", help=f"one of {', '.join(PRESETS)} (cpu)")
    video_arguments(parser)
    parser.epilog = "\n\n".join(_setting_sections())


def video_arguments(parser: argparse.ArgumentParser) -> None:
    """Which films are wanted."""
    parser.add_argument(
        "--video",
        nargs="?",
        const=ENDS,
        metavar="EPISODES",
        help=f"play episodes of the finished run once more and film them, such as 0,5,last ({ENDS}); of a system of "
        "your own: only a simulation that draws itself",
    )
    parser.add_argument("--video-format", default="", metavar="FORMAT", help="mp4 or gif (the first that is installed)")


def add_settings(parser: argparse.ArgumentParser, *short: str) -> None:
    """The option --set, and options that are short for it."""
    for name in short:
        parser.add_argument(f"--{name}", metavar="VALUE", help=f"short for --set {name}=VALUE")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting, for example --set samples=50; may be repeated; 'sbsrl train --help' lists all",
    )


def changes(options: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given, those of short options last."""
    given = vars(options)
    short = [f"{name}={given[name]}" for name in SHORT if given.get(name) is not None]
    return dict(parse_setting(text) for text in (*options.set, *short))


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
