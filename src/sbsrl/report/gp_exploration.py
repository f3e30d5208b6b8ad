"""The figure gp_pendulum_exploration of the paper: exploration as a constraint against phases of pure exploration.

The paper shows the pendulum. How much there is to learn decides who is faster, so it is shown with two simulators as
prior knowledge, and the cartpole beside it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from matplotlib.figure import Figure

from ..runs.study import Arm
from .canvas import plt
from .charts import draw_bars, draw_curves, limit
from .comparison import ENOUGH, Comparison, Sections, publish
from .expectations import Expectation, expectations_table, learns_before, settles_before
from .figures import Request
from .gp_arms import actsafe, demanding, own

__all__ = ["SETUPS", "Setup", "arms", "draw", "files"]


class Setup(NamedTuple):
    """A task, what is known of it, and the thresholds that are compared."""

    task: str
    prior: str
    factors: tuple[float, ...]
    """Of the task's own d_sigma^0."""


SETUPS = {
    "pendulum, careless simulator": Setup("pendulum", "simulator", (0.0, 0.5, 1.0, 2.0)),
    "pendulum, careful simulator": Setup("pendulum", "careful", (0.0, 0.5, 1.0, 2.0)),
    "cartpole": Setup("cartpole", "offline", (0.0, 1.0, 2.0, 3.0)),
}


def arms(setup: Setup) -> list[Arm]:
    """SBSRL with several thresholds, and ActSafe with two lengths of its phase of exploration."""
    usual = own(setup.task, "exploration_threshold")
    several = [demanding(setup.task, f"SBSRL, $d_\\sigma^0$ = {factor * usual:g}", factor) for factor in setup.factors]
    return [_with_prior(arm, setup.prior) for arm in (*several, actsafe(setup.task, 3), actsafe(setup.task, 5))]


def _with_prior(arm: Arm, prior: str) -> Arm:
    return arm._replace(changes=(*arm.changes, ("prior", prior)))


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    return publish(
        request, {name: arms(setup) for name, setup in SETUPS.items()}, "Exploration as a constraint", _explain, draw
    )


def _explain(comparison: Comparison) -> str:
    return (
        "Curves: mean and 95 % percentile interval over seeds. Bars: episodes until the return is nine tenths of the "
        "oracle's for the first time; one dot per seed. A threshold of 0 demands nothing: greedy.\n\n"
        f"{expectations_table(_expectations(comparison))}"
    )


def _expectations(comparison: Comparison) -> Iterator[Expectation]:
    """The paper's claim for every setup: with the task's own threshold SBSRL learns faster than both ActSafe."""
    for name, setup in SETUPS.items():
        *several, three, five = arms(setup)
        usual = several[setup.factors.index(1.0)]
        yield learns_before(comparison, name, usual, (three, five))
        yield settles_before(comparison, name, usual, (three, five))


def draw(comparison: Comparison, sections: Sections) -> Figure:
    """A row a section: learning curves, and how many episodes it took to learn."""
    size = (11, 4.3 * len(sections))
    figure, rows = plt.subplots(
        len(sections), 2, figsize=size, layout="constrained", squeeze=False, width_ratios=(3, 2)
    )
    for (curves, bars), (name, compared) in zip(rows, sections.items(), strict=True):
        draw_curves(curves, {arm.label: comparison.returns(arm) for arm in compared})
        limit(curves, 1.0, "dynamics\nknown", "#555555")
        curves.set_ylabel(f"{name}\nnormalised return")
        curves.legend(frameon=False, fontsize=8, loc="lower right")
        draw_bars(bars, {arm.label: comparison.episodes_until(arm, comparison.learned(arm)) for arm in compared})
        bars.set_ylabel(f"episodes until the return is {ENOUGH:g} or more")
    return figure
