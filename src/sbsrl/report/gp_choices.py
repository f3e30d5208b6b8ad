"""Choices that the paper leaves open, compared: what the samples are, and whether the threshold shrinks."""

from matplotlib.figure import Figure

from ..runs.study import Arm
from .canvas import plt
from .charts import draw_bars
from .comparison import Comparison, Sections, draw_outcomes, publish
from .figures import Request
from .gp_arms import sbsrl

__all__ = ["arms", "draw", "files"]

TASK = "pendulum"
"""Where the budget binds, so that it matters what the samples are."""


def arms() -> list[Arm]:
    """The default first."""
    return [
        sbsrl(TASK, "posterior functions"),
        sbsrl(TASK, "posterior noise (TS1)", sampler="particles"),
        sbsrl(TASK, "truncated prior functions", sampler="truncated"),
        sbsrl(TASK, "threshold shrinks", shrinking=True),
    ]


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    return publish(request, {TASK: arms()}, "What the samples are", _explain, draw)


def _explain(comparison: Comparison) -> str:
    return (
        "Posterior functions (pathwise conditioning) with a fixed threshold are the default; TS1 is what the paper's "
        "runs use, truncated prior functions are what its theorems are about. Bars: mean and standard deviation over "
        "seeds, one dot per seed."
    )


def draw(comparison: Comparison, sections: Sections) -> Figure:
    """A row a task: returns, costs, infeasible plans."""
    figure, rows = plt.subplots(len(sections), 3, figsize=(12, 4), layout="constrained", squeeze=False)
    for row, compared in zip(rows, sections.values(), strict=True):
        draw_outcomes(row[0], row[1], comparison, compared)
        draw_bars(row[2], {arm.label: comparison.infeasible(arm) for arm in compared})
        row[2].set_ylabel("infeasible plans of a run (%)")
        row[2].set_ylim(bottom=0, top=max(1.0, row[2].get_ylim()[1]))
    return figure
