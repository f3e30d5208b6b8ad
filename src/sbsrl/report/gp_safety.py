"""The figures experiments_gp and pendulum_multi of the paper: who learns safely, on pendulum and cartpole."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from ..runs.study import Arm
from ..tasks import make_task
from .canvas import plt
from .charts import draw_curves, limit
from .comparison import Comparison, Sections, draw_outcomes, publish
from .expectations import (
    Expectation,
    earns_from,
    ends_with,
    expectations_table,
    never_infeasible,
    never_violates,
    violates,
)
from .figures import Request
from .gp_arms import GP_TASKS, actsafe, own, sbsrl

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
    return publish(request, {task: arms(task) for task in GP_TASKS}, "Who learns safely", _explain, draw)


def _explain(comparison: Comparison) -> str:
    demanded = ", ".join(f"{own(task, 'exploration_threshold'):g} nats per episode ({task})" for task in GP_TASKS)
    return (
        "Bars: normalised cumulative return and largest violation of a run, mean and standard deviation over seeds, "
        "one dot per seed. Curves: mean and 95 % percentile interval over seeds. SBSRL and the mean demand "
        f"{demanded}.\n\n"
        f"{expectations_table(_expectations(comparison))}"
    )


def _expectations(comparison: Comparison) -> Iterator[Expectation]:
    """The paper's claims: SBSRL is safe and in the end earns as if it knew the dynamics; the mean is not safe."""
    for task in GP_TASKS:
        ours, mean = arms(task)[:2]
        yield never_violates(comparison, ours)
        yield never_infeasible(comparison, ours)
        yield ends_with(comparison, ours, 0.9)
        yield violates(comparison, mean)
    yield earns_from(comparison, arms("pendulum")[0], 5, 0.95)


def draw(comparison: Comparison, sections: Sections) -> Figure:
    """One row per task: two bar charts, two sets of curves."""
    figure, rows = plt.subplots(len(sections), 4, figsize=(15, 7.2), layout="constrained", squeeze=False)
    for row, (name, compared) in zip(rows, sections.items(), strict=True):
        (cost,) = make_task(name).costs
        draw_outcomes(row[0], row[1], comparison, compared)
        draw_curves(row[2], {arm.label: comparison.returns(arm) for arm in compared})
        limit(row[2], 1.0, "dynamics\nknown", "#555555")
        row[2].set_ylabel("normalised return")
        draw_curves(row[3], {arm.label: comparison.costs(arm) for arm in compared})
        limit(row[3], cost.budget, f"budget\n{cost.budget:g}")
        row[3].set_ylabel(cost.name)
    handles, names = rows[0][2].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure
