"""A task where exploration must be demanded: the reward leads away from what must be learned first.

SBSRL, which demands it until it cannot be met, against no exploration, phases of it, and a bonus with a fixed weight.
Both the weight and the threshold are numbers that somebody must choose, so both are also much smaller and much larger.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..runs.study import Arm
from ..tasks import make_task
from .canvas import plt
from .charts import COLOURS, draw_bars, draw_curves, limit, tidy
from .comparison import Comparison, Sections, publish, training
from .expectations import (
    Expectation,
    earns_more,
    ends_above,
    ends_with,
    expectations_table,
    never_violates,
    stops_exploring,
    unmatched,
)
from .figures import Request
from .gp_arms import actsafe, demanding, own, sbsrl

__all__ = ["BONUSES", "TASK", "arms", "draw", "files"]

TASK = "canal"

BONUSES = (0.03, 0.3, 3.0)
"""The middle one makes all that there is to learn worth as much as all that there is to earn.

The oracle earns about 80 more than who does nothing, and the threshold is 280 nats: 80 / 280 is about 0.3. The others
are ten times less and ten times more.
"""


FACTORS = (0.1, 2.5)
"""Of the threshold. Ten times as much is refused: 40 steps give at most 737 nats, even where nothing is known."""


def arms() -> list[Arm]:
    """SBSRL, then what it is compared with; all are safe on every sample and differ in how they explore."""
    threshold = own(TASK, "exploration_threshold")
    return [
        sbsrl(TASK),
        Arm("greedy", TASK, "greedy"),
        actsafe(TASK, 3),
        actsafe(TASK, 5),
        *(Arm(f"bonus {weight:g}", TASK, "bonus", (("bonus_weight", weight),)) for weight in BONUSES),
        *(demanding(TASK, f"SBSRL, {factor * threshold:g} nats", factor) for factor in FACTORS),
    ]


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    return publish(request, {TASK: arms()}, "Exploration that pays", _explain, draw)


def _explain(comparison: Comparison) -> str:
    explored = "\n".join(
        f"- {arm.label}: " + ", ".join(str(sum(r.phase == "explore" for r in run)) for run in comparison.runs[arm])
        for arm in comparison.runs
    )
    return (
        "A boat can be rowed slowly through a canal, or use an engine whose pull to one side is not known; only in the "
        "basin behind can that be found out without harm, and nothing is earned there. The weights of the bonus "
        "make all that there is to learn (the threshold) worth a tenth, all, and ten times of what there is to earn; "
        f"the threshold of {own(TASK, 'exploration_threshold'):g} nats is also taken a tenth and 2.5 times as large. "
        "Curves: mean and 95 % percentile interval over seeds. Bars: mean and standard deviation, one dot per seed.\n\n"
        f"{expectations_table(_expectations(comparison))}\n\n"
        f"Episodes whose policy was made to explore, by seed:\n\n{explored}"
    )


def _expectations(comparison: Comparison) -> Iterator[Expectation]:
    """A constraint pays once and stops; without one nothing is found out; all else pays more, or too little."""
    ours, greedy, three, five, *others = arms()
    bonuses, (little, much) = others[: len(BONUSES)], others[len(BONUSES) :]
    for arm in arms():
        yield never_violates(comparison, arm)
    yield ends_with(comparison, ours, 0.9)
    yield ends_above(comparison, ours, greedy)
    for arm in (greedy, three, five):
        yield earns_more(comparison, ours, arm)
    yield stops_exploring(comparison, ours, 3)
    yield unmatched(comparison, ours, bonuses, 0.05)
    yield ends_with(comparison, little, 0.9)
    yield stops_exploring(comparison, much, 1)
    for arm in (little, much):
        yield earns_more(comparison, ours, arm)


def draw(comparison: Comparison, sections: Sections) -> Figure:
    """Returns and information episode by episode, against phases, bonuses, other thresholds; and the two sums."""
    (compared,) = sections.values()
    colours = dict(zip(compared, COLOURS, strict=False))
    ours, phases, bonuses, thresholds = compared[0], compared[1:4], compared[4:7], compared[7:]
    figure, axes = plt.subplots(2, 4, figsize=(18, 7.6), layout="constrained", width_ratios=(1, 1, 1, 1.15))
    columns = {"none or phases": phases, "a bonus": bonuses, "another threshold": thresholds}
    for column, (against, others) in zip(axes.T, columns.items(), strict=False):
        few = [ours, *others]
        some = [colours[arm] for arm in few]
        draw_curves(column[0], {arm.label: comparison.returns(arm) for arm in few}, some)
        limit(column[0], 1.0, "dynamics\nknown", "#555555")
        draw_curves(column[1], {arm.label: _information(comparison, arm) for arm in few}, some)
        limit(column[1], own(TASK, "exploration_threshold"), "$d_\\sigma$", "#555555")
        column[0].set_title(f"exploration as a constraint, against {against}", fontsize=10)
        column[0].set_ylabel("normalised return")
        column[1].set_ylabel("information of the episode (nats)")
        column[0].legend(frameon=False, fontsize=8, loc="lower right")
    _draw_sums(axes[0, 3], comparison, colours)
    draw_bars(axes[1, 3], {arm.label: comparison.costs(arm).max(axis=1) for arm in compared})
    (cost,) = make_task(TASK).costs
    limit(axes[1, 3], cost.budget, f"budget\n{cost.budget:g}")
    axes[1, 3].set_ylabel(f"{cost.name}, worst episode")
    return figure


def _information(comparison: Comparison, arm: Arm) -> Float[np.ndarray, "seeds episodes"]:
    return np.array([[r.uncertainty for r in training(run)] for run in comparison.runs[arm]])


def _draw_sums(axes: Axes, comparison: Comparison, colours: Mapping[Arm, str]) -> None:
    """What was earned while learning, and what was learned: a large disc per arm, a dot per seed.

    Later discs are smaller, so that none hides another.
    """
    for (arm, colour), size in zip(colours.items(), np.linspace(200, 50, len(colours)), strict=True):
        earned, final = comparison.cumulative(arm), comparison.final(arm)
        axes.scatter(earned.mean(), final.mean(), s=size, color=colour, label=arm.label, zorder=2)
        axes.scatter(earned, final, s=6, color="black", alpha=0.6, zorder=3)
    axes.set_xlabel("normalised cumulative return")
    axes.set_ylabel("normalised return of the final policy")
    axes.set_title("earned while learning, and learned", fontsize=10)
    axes.legend(frameon=False, fontsize=8, labelspacing=0.8, loc="lower left")
    tidy(axes)
