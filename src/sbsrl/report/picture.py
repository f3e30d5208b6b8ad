"""One picture of a run: what it earned, and how close to the budget it came."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..record import Record
from ..runs.view import CostView, Reference, RunView
from .canvas import plt, png
from .charts import UNSAFE, limit, tidy

__all__ = ["draw_run"]

COLOURS = {"prior": "#94346E", "evaluate": "#6F4070", "explore": "#1D6996", "exploit": "#38A6A5", "final": "#5F4690"}


def draw_run(view: RunView) -> bytes:
    """Returns above costs, over episodes, as a PNG; a panel for each cost."""
    count = len(view.costs)
    figure, (returns, *costs) = plt.subplots(
        1 + count, 1, sharex=True, figsize=(7.2, 2.8 * (1 + count)), layout="constrained"
    )
    _draw_returns(returns, view.records, view.reference)
    for i, (axes, cost) in enumerate(zip(costs, view.costs, strict=True)):
        _draw_costs(axes, view, cost, view.tightening(i))
    costs[-1].set_xlabel("episode")
    figure.suptitle(_title(view), fontsize=12)
    return png(figure)


def _title(view: RunView) -> str:
    learned = f"{view.task} learned by {view.method}"
    if not view.records:
        return f"{learned}: no episode yet"
    if len(view.costs) == 1 and view.cost.expected:
        mean = np.mean([r.cost for r in view.records])
        return f"{learned}: mean cost {mean:.2f}, expected cost bounded by {view.cost.budget:g}"
    return f"{learned}: {sum(r.safe for r in view.records)} of {len(view.records)} episodes safe"


FEW = 60
"""Up to so many episodes can be told apart; of more, a moving mean is drawn."""


def _points(axes: Axes, records: Sequence[Record], values: Sequence[float]) -> None:
    """A marker for each episode that tells its phase, and a line through all of them, or through their moving mean."""
    numbers, many = [r.episode for r in records], len(records) > FEW
    if many:
        window = len(records) // 20
        smooth = np.convolve(values, np.ones(window) / window, "valid")
        axes.plot(numbers[window // 2 :][: len(smooth)], smooth, color="black", linewidth=1.5, zorder=3)
    else:
        axes.plot(numbers, values, color="#999999", linewidth=1, zorder=1)
    for phase in dict.fromkeys(r.phase for r in records):
        chosen = [i for i, r in enumerate(records) if r.phase == phase]
        xs, ys = [numbers[i] for i in chosen], [values[i] for i in chosen]
        size = 8 if many and phase != "final" else 42
        axes.scatter(xs, ys, color=COLOURS[phase], s=size, label=phase, zorder=2)
    tidy(axes)
    axes.set_axisbelow(True)


def _draw_returns(axes: Axes, records: Sequence[Record], reference: Reference | None) -> None:
    _points(axes, records, [r.reward for r in records])
    if reference:
        limit(axes, reference.oracle, "true dynamics\nknown", "#555555")
        limit(axes, reference.idle, "doing\nnothing", "#555555", ":")
    axes.set_ylabel("return")
    axes.margins(y=0.15)
    if records:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, ncols=3, fontsize=9, borderpad=0)


def _draw_costs(axes: Axes, view: RunView, cost: CostView, tightening: float) -> None:
    records, budget, expected = view.records, cost.budget, cost.expected
    values = [view.cost_of(r, cost) for r in records]
    _points(axes, records, values)
    unsafe = (
        [] if expected else [(r.episode, value) for r, value in zip(records, values, strict=True) if value > budget]
    )
    if unsafe:
        xs, ys = zip(*unsafe, strict=True)
        axes.scatter(xs, ys, marker="x", color=UNSAFE, s=90, zorder=3, label="violation")
        axes.legend(loc="lower right", frameon=False, fontsize=9)
    limit(axes, budget, f"budget {budget:g}" + ("\n(expected\ncost)" if expected else ""), UNSAFE, "-")
    if tightening > 0:
        axes.axhspan(budget - tightening, budget, color=UNSAFE, alpha=0.12, linewidth=0)
    axes.set_ylabel(cost.name)
    if cost.least is not None and math.isfinite(lowest := min([cost.least, *values])):
        axes.set_ylim(bottom=lowest)
    axes.margins(y=0.15)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
