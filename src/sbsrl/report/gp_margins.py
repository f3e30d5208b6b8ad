"""What the paper does not show: how safety depends on the number of samples M and on the tightening."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..runs.study import Arm
from ..tasks import make_task
from .canvas import plt
from .charts import COLOURS, limit, tidy
from .comparison import Comparison, compare, publish
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
    sections = {TASK: arms()}
    comparison = compare(request, sections)
    text = (
        "Violating episodes: in percent of a run's. Cost: the largest of a run. Return: of the final policy, "
        f"normalised with an oracle that has the tightening {own(TASK, 'tightening'):g} throughout. Lines: mean over "
        "seeds; a dot a seed. Five runs without a violation leave open that up to half of all runs would have one "
        "(52 %, Clopper and Pearson)."
    )
    return publish(request, comparison, sections, "Samples and tightening", text, draw(comparison))


def draw(comparison: Comparison) -> Figure:
    """Three rows (violating episodes, largest cost, return) over M and over the tightening."""
    usual = own(TASK, "tightening")
    figure, rows = plt.subplots(3, 2, figsize=(9, 9), layout="constrained", sharey="row", sharex="col")
    over_m, over_tightening = list(rows[:, 0]), list(rows[:, 1])
    for j, (tightening, colour) in enumerate(((0.0, COLOURS[1]), (usual, COLOURS[0]))):
        _draw(over_m, comparison, over_samples(tightening), f"tightening {tightening:g}", colour, j)
    _draw(over_tightening, comparison, over_tightenings(), f"M = {USUAL_SAMPLES}", COLOURS[2], 0)
    rows[2, 0].set_xticks(range(len(SAMPLES)), [str(m) for m in SAMPLES])
    rows[2, 0].set_xlabel("number of samples M")
    rows[2, 1].set_xticks(range(len(TIGHTENINGS)), [f"{t:g}" for t in TIGHTENINGS])
    rows[2, 1].set_xlabel("tightening (rad/s)")
    for axes, text in zip(
        rows[:, 0], ("violating episodes (%)", "largest |omega| of a run", "final return"), strict=True
    ):
        axes.set_ylabel(text)
    for axes in rows[1]:
        limit(axes, make_task(TASK).budget, f"budget {make_task(TASK).budget:g}")
    for axes in rows[0]:
        axes.legend(frameon=False, fontsize=8)
        axes.set_ylim(bottom=0)
    return figure


def _draw(
    column: Sequence[Axes],
    comparison: Comparison,
    compared: Sequence[Arm],
    label: str,
    colour: str,
    number: int,
) -> None:
    """One line in each of the three panels of a column."""
    aside = np.arange(len(compared)) + 0.08 * number
    rates = [violating(comparison, arm) for arm in compared]
    costs = [np.array([max(r.cost for r in run) for run in comparison.runs[arm]]) for arm in compared]
    returns = [comparison.final(arm) for arm in compared]
    for axes, values in zip(column, (rates, costs, returns), strict=True):
        axes.plot(aside, [each.mean() for each in values], color=colour, linewidth=1.2, label=label)
        for place, each in zip(aside, values, strict=True):
            axes.scatter(np.full(len(each), place), each, s=12, color=colour, alpha=0.7)
    tidy(*column)


def violating(comparison: Comparison, arm: Arm) -> Float[np.ndarray, " seeds"]:
    """The share of violating episodes of each run, in percent."""
    return np.array([100 * sum(not r.safe for r in run) / len(run) for run in comparison.runs[arm]])
