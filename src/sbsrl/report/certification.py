"""`sbsrl certify`: its options, and what it shows as a table and as JSON."""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..errors import UserError, unknown
from ..kernels import Kernel, Linear, Matern, SquaredExponential
from ..premises import premises_of, task_facts
from ..settings import parse_setting
from ..specification import resolve
from ..theory import Assumption, Certification, Point, Premises, Quantity, TaskFacts
from ..theory.checks import whole
from ..theory.premises import MOST_INPUTS, MOST_SAMPLES

__all__ = ["KERNELS", "add_options", "as_json", "read_options", "show"]

KERNELS: dict[str, Callable[[Sequence[float]], Kernel]] = {
    "se": SquaredExponential,
    "matern12": lambda scales: Matern(scales, 0.5),
    "matern32": lambda scales: Matern(scales, 1.5),
    "matern52": lambda scales: Matern(scales, 2.5),
    "linear": Linear,
}


# what is asked ---------------------------------------------------------------------------------------------------


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `sbsrl certify`, in three groups."""
    parser.add_argument("task", metavar="TASK", nargs="?", help="see 'sbsrl tasks'; without one, give --kernel")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of 'sbsrl train'")
    both = parser.add_argument_group("for both")
    both.add_argument("--delta", type=float, metavar="P", help="each of two events may fail with it (0.1)")
    both.add_argument("--samples", type=_whole, metavar="M", help="samples in use: what do they buy?")
    both.add_argument("--zeta", type=float, help="closeness of a sample (0.9 of the largest)")
    both.add_argument("--margin", type=float, metavar="DELTA", help="how far below the budget some policy is safe")
    both.add_argument("--epsilon", type=float, help="accuracy of the optimality theorem")
    both.add_argument("--convention", help="of beta_n: corrected or paper (corrected)")
    both.add_argument("--form", help="of Delta_zeta: sharp or paper (sharp)")
    both.add_argument("--json", action="store_true", help="print one JSON document")
    both.add_argument("--plot", metavar="FILE", help="draw zeta against M and Delta_zeta, as PNG")
    alone = parser.add_argument_group("without a task")
    alone.add_argument("--kernel", help=f"one of {', '.join(KERNELS)}")
    alone.add_argument("--dim", type=int, metavar="D", help="number of inputs (x, a)")
    alone.add_argument("--lengthscale", type=_numbers, metavar="L[,L..]", help="one for all inputs, or one each (1)")
    alone.add_argument("--limits", type=_numbers, metavar="R[,R..]", help="inputs are within |z_i| <= R (1)")
    alone.add_argument("--outputs", type=int, metavar="DX", help="number of states (1)")
    alone.add_argument("--horizon", type=int, metavar="T", help="steps per episode")
    alone.add_argument("--noise", type=float, metavar="S", help="sigma_w")
    alone.add_argument(
        "--bound", type=float, metavar="B", help="bound on the RKHS norm; without it nothing is certified"
    )
    alone.add_argument("--budget", type=float, metavar="d", help="bound on the cost of an episode")
    alone.add_argument("--cost", type=float, metavar="C", help="largest cost of a step (1)")
    alone.add_argument("--reward", type=float, metavar="R", help="largest reward of a step (1)")
    alone.add_argument("--aggregation", choices=("sum", "statewise"), help="of costs: sum, or the largest (sum)")
    alone.add_argument("--delay", type=int, choices=(0, 1), help="a step is charged before (0) or after (1) it (1)")


SHARED = ("delta", "samples", "zeta", "margin", "epsilon", "convention", "form")
ALONE = ("outputs", "horizon", "noise", "bound", "budget", "cost", "reward", "aggregation", "delay")
SHAPE = ("dim", "lengthscale", "limits")
NEEDED = ("horizon", "noise", "budget")


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def _whole(text: str) -> int:
    value = float(text)
    if value > MOST_SAMPLES:
        raise argparse.ArgumentTypeError(f"more than {MOST_SAMPLES:g} cannot be computed with")
    if not value.is_integer():
        raise ValueError
    return int(value)


_numbers.__name__, _whole.__name__ = "list of numbers", "whole number"  # for argparse's complaints


def _given(options: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def read_options(options: argparse.Namespace) -> tuple[Premises, TaskFacts | None]:
    """What the options ask about: a task, with what is known of it, or a kernel and numbers."""
    if options.task is None and options.kernel is None:
        raise UserError(
            "certify wants a task ('sbsrl certify pendulum') or a kernel ('sbsrl certify --kernel se ...')."
        )
    if options.task is not None:
        return _of_task(options)
    if options.set:
        raise UserError(
            "--set changes the settings of a task; with --kernel give the numbers themselves (--horizon T)."
        )
    return _of_kernel(options), None


def _of_task(options: argparse.Namespace) -> tuple[Premises, TaskFacts]:
    foreign = _given(options, ("kernel", *SHAPE, *ALONE))
    if foreign:
        raise UserError(
            f"--{next(iter(foreign))} is for certify without a task; {options.task} brings its own (see --set)."
        )
    changes = dict(parse_setting(text) for text in options.set)
    task, settings = resolve(options.task, changes=changes)
    return premises_of(task, settings, **_given(options, SHARED)), task_facts(task)


def _of_kernel(options: argparse.Namespace) -> Premises:
    if options.kernel not in KERNELS:
        raise unknown("kernel", options.kernel, KERNELS)
    missing = [f"--{name}" for name in NEEDED if getattr(options, name) is None]
    if missing:
        raise UserError(f"certify --kernel needs {', '.join(missing)} as well.")
    implied = max(len(given) for given in (options.lengthscale or (), options.limits or (), (1.0,)))
    dim = whole("the number of inputs", implied if options.dim is None else options.dim, most=MOST_INPUTS)
    scales, limits = (_each(name, getattr(options, name) or (1.0,), dim) for name in ("lengthscale", "limits"))
    known: dict[str, Any] = {"outputs": 1, "bound": None}
    return Premises(
        kernel=KERNELS[options.kernel](scales), limits=limits, **(known | _given(options, (*ALONE, *SHARED)))
    )


def _each(name: str, values: tuple[float, ...], dim: int) -> tuple[float, ...]:
    """One number for each input."""
    if len(values) not in {1, dim}:
        raise UserError(f"--{name} has {len(values)} numbers for {dim} inputs; give one, or one for each.")
    if any(math.isnan(v) or v <= 0 for v in values):
        raise UserError(f"--{name} must be positive, and {list(values)} is not.")
    return values * dim if len(values) == 1 else values


# what is answered ------------------------------------------------------------------------------------------------

COLOURS = {
    "certified": "green",
    "checked": "green",
    "given": "cyan",
    "estimated": "cyan",
    "heuristic": "yellow",
    "not checkable": "yellow",
    "impossible": "red",
    "violated": "red",
}


def show(console: Console, result: Certification, name: str) -> None:
    """The conclusions, the quantities group by group, and the assumptions."""
    console.print(Text(describe(result.premises, name)), highlight=False)
    for group, rows in groupby(result.quantities, key=lambda quantity: quantity.group):
        console.print(f"\n[bold]{group}[/]", highlight=False)
        for part in _rows(list(rows), console.width >= WIDE):
            console.print(part, highlight=False)
    console.print("\n[bold]assumptions[/]", highlight=False)
    console.print(_assumption_table(result.assumptions), highlight=False)
    console.print("\n[bold]in plain words[/]", highlight=False)
    for sentence in result.conclusions:
        console.print(_point(sentence), highlight=False)


def _point(sentence: str) -> Table:
    """A sentence that stays indented where it wraps."""
    table = Table.grid(padding=(0, 1))
    table.add_row(" -", escape(sentence))
    return table


def describe(premises: Premises, name: str) -> str:
    """What is given, in a line or two."""
    bound = "not known" if premises.bound is None else f"{premises.bound:g}"
    cost = "sum of costs" if premises.aggregation == "sum" else "largest cost"
    kernels = ", ".join(kernel.describe() for kernel in premises.kernels)
    return (
        f"{name}: T = {premises.horizon} steps, d_x = {premises.outputs}, sigma_w = {premises.noise:g}, B = {bound}, "
        f"{cost} <= {premises.budget:g} with C_max = {premises.cost:g}, delta = {premises.delta:g}, {kernels} on "
        f"|z| <= {', '.join(f'{r:g}' for r in premises.limits)}"
    )


WIDE = 96
"""Columns from which on the last column of the table has room beside the others."""


def _rows(rows: Sequence[Quantity], wide: bool) -> Iterator[RenderableType]:
    """A table with how each number was found in its last column or, in a narrow terminal, below its line."""
    if wide:
        yield _grid(*((q.symbol, q.name, q.text, _coloured(q.status), escape(q.how)) for q in rows))
        return
    for q in rows:
        yield _grid((q.symbol, q.name, q.text, _coloured(q.status)))
        yield Padding(Text(q.how, style="dim"), (0, 0, 0, 12))


def _grid(*rows: tuple[str, ...]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=11, no_wrap=True)
    table.add_column(width=26, no_wrap=True)
    table.add_column(width=13, justify="right", no_wrap=True)
    table.add_column(width=10, no_wrap=True)
    if len(rows[0]) > 4:
        table.add_column(style="dim")
    for row in rows:
        table.add_row(*row)
    return table


def _assumption_table(rows: Sequence[Assumption]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=16, no_wrap=True)
    table.add_column(width=13, no_wrap=True)
    table.add_column()
    for row in rows:
        table.add_row(row.label, _coloured(row.standing), escape(row.why))
    return table


def _coloured(word: str) -> str:
    return f"[{COLOURS[word]}]{word}[/]"


def as_json(result: Certification, curve: Sequence[Point], name: str) -> str:
    """All of it as one strict JSON document: what has no finite value is null, and its text says why."""
    document = {
        "name": name,
        "setting": _plain(result.premises),
        "quantities": [quantity._asdict() for quantity in result.quantities],
        "assumptions": [assumption._asdict() for assumption in result.assumptions],
        "conclusions": list(result.conclusions),
        "tradeoff": [point._asdict() for point in curve],
    }
    return json.dumps(document, indent=2, allow_nan=False)


def _plain(premises: Premises) -> dict[str, Any]:
    plain = {item.name: getattr(premises, item.name) for item in fields(premises) if item.name != "kernel"}
    plain["kernels"] = [kernel.describe() for kernel in premises.kernels]
    plain["limits"] = [r if math.isfinite(r) else None for r in premises.limits]
    return plain
