"""The figure ablation_exploration of the paper: the exploration threshold from nothing to too much, on both tasks."""

from matplotlib.figure import Figure

from ..runs.study import Arm
from .canvas import plt
from .comparison import Comparison, Sections, draw_outcomes, publish
from .figures import Request
from .gp_arms import GP_TASKS, demanding, own

__all__ = ["arms", "draw", "files"]

FACTORS = {"pendulum": (0.0, 0.25, 0.5, 1.0, 2.0, 3.0), "cartpole": (0.0, 1.0, 2.0, 3.0)}
"""Of the task's own d_sigma^0. The last one is too much: it is out of reach after one to three episodes."""


def arms(task: str) -> list[Arm]:
    """SBSRL with more and more to explore."""
    usual = own(task, "exploration_threshold")
    return [demanding(task, f"{factor * usual:g}", factor) for factor in FACTORS[task]]


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    return publish(request, {task: arms(task) for task in GP_TASKS}, "How much exploration to demand", _explain, draw)


def _explain(comparison: Comparison) -> str:
    explored = "\n".join(
        f"- {task}, by threshold: "
        + "; ".join(f"{arm.label}: {_episodes_of_exploration(comparison, arm)}" for arm in arms(task))
        for task in GP_TASKS
    )
    return (
        "Bars: mean and standard deviation over seeds, one dot per seed. Lines of the tables: d_sigma^0 in nats per "
        "episode.\n\n"
        f"Episodes in which exploration was demanded, by seed:\n\n{explored}"
    )


def _episodes_of_exploration(comparison: Comparison, arm: Arm) -> str:
    return ", ".join(str(sum(r.phase == "explore" for r in run)) for run in comparison.runs[arm])


def draw(comparison: Comparison, sections: Sections) -> Figure:
    """A row a task: returns and violations."""
    figure, rows = plt.subplots(len(sections), 2, figsize=(9, 6.8), layout="constrained", squeeze=False)
    for row, compared in zip(rows, sections.values(), strict=True):
        draw_outcomes(row[0], row[1], comparison, compared)
        for axes in row:
            axes.set_xlabel("exploration threshold $d_\\sigma^0$ (nats per episode)")
    return figure
