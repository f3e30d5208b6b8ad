"""One picture of a run: what it earned, and how close to the budget it came."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..loop import Experiment, Record
from .canvas import plt, png
from .reference import Reference

__all__ = ["draw_run"]

COLOURS = {"explore": "#1D6996", "exploit": "#38A6A5", "final": "#5F4690"}
UNSAFE = "#C8102E"


def draw_run(experiment: Experiment, records: Sequence[Record], reference: Reference | None) -> bytes:
    """Returns above costs, over episodes, as a PNG."""
    figure, (returns, costs) = plt.subplots(2, 1, sharex=True, figsize=(7.2, 5.6), layout="constrained")
    _draw_returns(returns, records, reference)
    _draw_costs(costs, experiment, records)
    figure.suptitle(_title(experiment, records), fontsize=12)
    return png(figure)


def _title(experiment: Experiment, records: Sequence[Record]) -> str:
    learned = f"{experiment.task.name} learned by {experiment.method.name}"
    if experiment.task.aggregation == "sum":
        mean = np.mean([r.cost for r in records])
        return f"{learned}: mean cost {mean:.2f}, expected cost bounded by {experiment.task.budget:g}"
    return f"{learned}: {sum(r.safe for r in records)} of {len(records)} episodes safe"


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
    axes.grid(axis="y", color="#e5e5e5")
    axes.spines[["top", "right"]].set_visible(False)


def _level(axes: Axes, height: float, text: str, colour: str, style: str) -> None:
    axes.axhline(height, color=colour, linestyle=style, linewidth=1.2, zorder=0)
    where = (0.01, height)
    text_on_white = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    axes.annotate(
        text,
        where,
        xycoords=("axes fraction", "data"),
        va="bottom",
        fontsize=8,
        color=colour,
        bbox=text_on_white,
        zorder=4,
    )


def _draw_returns(axes: Axes, records: Sequence[Record], reference: Reference | None) -> None:
    _points(axes, records, [r.reward for r in records])
    if reference:
        _level(axes, reference.oracle, "same planner, true dynamics known", "#555555", "--")
        _level(axes, reference.idle, "doing nothing", "#555555", ":")
    axes.set_ylabel("return")
    axes.margins(y=0.15)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, ncols=3, fontsize=9, borderpad=0)


def _draw_costs(axes: Axes, experiment: Experiment, records: Sequence[Record]) -> None:
    budget, tightening = experiment.task.budget, experiment.settings.tightening
    _points(axes, records, [r.cost for r in records])
    expected = experiment.task.aggregation == "sum"
    unsafe = [] if expected else [r for r in records if not r.safe]
    if unsafe:
        xs, ys = [r.episode for r in unsafe], [r.cost for r in unsafe]
        axes.scatter(xs, ys, marker="x", color=UNSAFE, s=90, zorder=3, label="violation")
        axes.legend(loc="lower right", frameon=False, fontsize=9)
    _level(axes, budget, f"budget {budget:g}{' of the expected cost' if expected else ''}", UNSAFE, "-")
    if tightening > 0:
        axes.axhspan(budget - tightening, budget, color=UNSAFE, alpha=0.12, linewidth=0)
    axes.set_ylabel(experiment.task.cost_name)
    axes.set_xlabel("episode")
    axes.set_ylim(bottom=min(experiment.task.least_cost, *(r.cost for r in records)))
    axes.margins(y=0.15)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
