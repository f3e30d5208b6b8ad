"""The figures experiments_gp and pendulum_multi of the paper: who learns safely, on pendulum and cartpole."""

from matplotlib.figure import Figure

from ..runs.study import Arm
from ..tasks import make_task
from .canvas import plt, png
from .charts import draw_bars, draw_curves, limit
from .comparison import Comparison, compare, page
from .figures import Request
from .gp_arms import GP_TASKS, actsafe, sbsrl

__all__ = ["arms", "draw", "files"]


def arms(task: str) -> list[Arm]:
    """All methods with the same planner, budget and model; they differ in their Problem only."""
    return [
        sbsrl(task),
        Arm("mean", task, "mean"),
        actsafe(task, 3),
        actsafe(task, 5),
        Arm("greedy", task, "greedy"),
        Arm("unsafe", task, "unsafe"),
    ]


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    sections = {task: arms(task) for task in GP_TASKS}
    comparison = compare(request, [arm for each in sections.values() for arm in each])
    text = (
        "Bars: normalised cumulative return and largest violation of a run, mean and standard deviation over seeds, a "
        "dot a seed. Curves: mean and 95 % percentile interval over seeds."
    )
    return {
        "README.md": page("Who learns safely", request, comparison, "gp-safety.png", text, sections),
        "episodes.csv": comparison.csv(),
        "gp-safety.png": png(draw(comparison)),
    }


def draw(comparison: Comparison) -> Figure:
    """A row a task: two bar charts, two sets of curves."""
    figure, rows = plt.subplots(len(comparison.references), 4, figsize=(15, 7.2), layout="constrained", squeeze=False)
    for row, name in zip(rows, comparison.references, strict=True):
        task = make_task(name)
        compared = [arm for arm in comparison.runs if arm.task == name]
        draw_bars(row[0], {arm.label: comparison.cumulative(arm) for arm in compared})
        row[0].set_ylabel(f"{name}\nnormalised cumulative return")
        draw_bars(row[1], {arm.label: comparison.worst(arm) for arm in compared})
        row[1].set_ylabel("largest violation of a run")
        draw_curves(row[2], {arm.label: comparison.returns(arm) for arm in compared})
        limit(row[2], 1.0, "true dynamics known", "#555555")
        row[2].set_ylabel("normalised return")
        draw_curves(row[3], {arm.label: comparison.costs(arm) for arm in compared})
        limit(row[3], task.budget, f"budget {task.budget:g}")
        row[3].set_ylabel(task.cost_name)
    handles, names = rows[0][2].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure
