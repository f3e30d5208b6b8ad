"""What the paper does not show: how safety depends on the number of samples M and on the tightening."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..runs.study import Arm
from .canvas import plt
from .charts import COLOURS, limit, tidy
from .comparison import Comparison, Sections, publish
from .figures import Request
from .gp_arms import own, sbsrl

__all__ = ["arms", "draw", "files"]

TASK = "pendulum"
"""Where the budget binds: the best policy turns as fast as it may."""

SAMPLES = (1, 5, 10, 30, 100)
TIGHTENINGS = (0.0, 0.05, 0.1, 0.2, 0.4)
USUAL_SAMPLES = 30


def over_samples(tightening: float) -> list[Arm]:
    """The same tightening, more and more samples."""
    return [_arm(samples, tightening) for samples in SAMPLES]


def over_tightenings() -> list[Arm]:
    return [_arm(USUAL_SAMPLES, tightening) for tightening in TIGHTENINGS]


def _arm(samples: int, tightening: float) -> Arm:
    return sbsrl(TASK, f"M = {samples}, tightening {tightening:g}", samples=samples, tightening=tightening)


def arms() -> list[Arm]:
    """No tightening and the usual one for every M; every tightening for the usual M."""
    lines = (*over_samples(0.0), *over_samples(own(TASK, "tightening")), *over_tightenings())
    return list(dict.fromkeys(lines))


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    return publish(request, {TASK: arms()}, "Samples and tightening", _explain, draw)


def _explain(comparison: Comparison) -> str:
    return (
        "Violating episodes and infeasible plans: in percent of a run's. Return: cumulative, "
        f"normalised with an oracle that has the tightening {own(TASK, 'tightening'):g} throughout. Lines: mean over "
        "seeds; one dot per seed. Five runs without a violation leave open that up to half of all runs would have one "
        "(52 %, Clopper and Pearson)."
    )


def draw(comparison: Comparison, sections: Sections) -> Figure:
    """A row for everything that is measured, over M and over the tightening."""
    usual, budget = own(TASK, "tightening"), comparison.records(sections[TASK][0])[0].budget
    figure, rows = plt.subplots(len(MEASURED), 2, figsize=(9, 11), layout="constrained", sharey="row", sharex="col")
    for axes, text in zip(rows[:, 0], MEASURED, strict=True):
        axes.set_ylabel(text)
    for j, (tightening, colour) in enumerate(((0.0, COLOURS[1]), (usual, COLOURS[0]))):
        _draw(rows[:, 0], comparison, over_samples(tightening), Line(f"tightening {tightening:g}", colour, 0.08 * j))
    _draw(rows[:, 1], comparison, over_tightenings(), Line(f"M = {USUAL_SAMPLES}", COLOURS[2]))
    for axes, values, text in zip(
        rows[-1], (SAMPLES, TIGHTENINGS), ("number of samples M", "tightening (rad/s)"), strict=True
    ):
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        axes.set_xlabel(text)
    for axes in rows[0]:
        axes.legend(frameon=False, fontsize=8)
        axes.set_ylim(bottom=0)
    for axes in rows[1]:
        limit(axes, budget, f"budget\n{budget:g}")
    return figure


class Line(NamedTuple):
    """How a line looks, and how far it is moved aside."""

    label: str
    colour: str
    aside: float = 0.0


def _draw(column: Iterable[Axes], comparison: Comparison, compared: Sequence[Arm], line: Line) -> None:
    """One line in each panel of a column: the mean over seeds, and one dot per seed."""
    places = np.arange(len(compared)) + line.aside
    for axes, measure in zip(column, MEASURED.values(), strict=True):
        values = [measure(comparison, arm) for arm in compared]
        axes.plot(places, [v.mean() for v in values], color=line.colour, linewidth=1.2, label=line.label, zorder=3)
        for place, each in zip(places, values, strict=True):
            dots = np.full(len(each), place)
            axes.scatter(dots, each, s=12, color=line.colour, alpha=0.7, zorder=3, clip_on=False)
        tidy(axes)


def violating(comparison: Comparison, arm: Arm) -> Float[np.ndarray, " seeds"]:
    """The share of violating episodes of each run, in percent."""
    return np.array([100 * sum(not r.safe for r in run) / len(run) for run in comparison.runs[arm]])


def largest_costs(comparison: Comparison, arm: Arm) -> Float[np.ndarray, " seeds"]:
    """The largest cost of each run."""
    return np.array([max(r.cost for r in run) for run in comparison.runs[arm]])


MEASURED: dict[str, Callable[[Comparison, Arm], Float[np.ndarray, " seeds"]]] = {
    "violating episodes (%)": violating,
    "largest |omega| (rad/s)": largest_costs,
    "infeasible plans (%)": Comparison.infeasible,
    "cumulative return": Comparison.cumulative,
}
