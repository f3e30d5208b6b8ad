"""The figure experiments_vertical of the paper: safe on every sample, safe on their mean, or not asked to be safe."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from ..runs.study import Arm
from .canvas import plt
from .charts import draw_curves, limit
from .deep_arms import ALL, BINDING, BODIES, WORLDS, World, arm
from .deep_study import Study, publish, run_deep
from .expectations import Expectation, expectations_table
from .figures import Request

__all__ = ["arms", "draw", "files"]


def arms(world: World) -> list[Arm]:
    """The same networks, the same solver, the same gate; they differ in what is constrained.

    Nothing is constrained only where that shows that the budget binds.
    """
    unsafe = [arm("unsafe", world, "unsafe")] if world == BINDING else []
    return [arm("sbsrl", world), arm("mean", world, "mean"), *unsafe]


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    sections = {name: arms(world) for name, world in ALL.items()}
    study = run_deep(request, [each for many in sections.values() for each in many])
    table = expectations_table(_expectations(study))
    return publish(
        request,
        study,
        "Every sample, or their mean",
        f"{EXPLAINED}\n\n{table}",
        sections,
        draw,
        {"mujoco": draw_bodies},
    )


EXPLAINED = (
    "Top: normalised true return of every executed policy. Bottom: its true mean cost over 64 initial states. Mean and "
    "95 % percentile interval over runs; the last point is the policy that is returned. What was expected was written "
    "down before the runs; whether it was met is computed from them."
)


def _expectations(study: Study) -> Iterator[Expectation]:
    for world in ALL.values():
        ours, mean, *unsafe = arms(world)
        yield _never_violates(study, ours, world)
        yield _ends_with(study, ours, world)
        yield _active(study, ours, world)
        if world == BINDING:
            yield _violates_less(study, ours, mean, world)
            yield _violates(study, unsafe[0], world)


def _never_violates(study: Study, ours: Arm, world: World) -> Expectation:
    expected = f"{world.name}: no policy that {ours.label} executes has a true mean cost above the budget"
    found = f"{study.violating(ours)} of {study.policies(ours)}, largest {study.costs(ours).max():.1f}"
    return Expectation(expected, found, study.violating(ours) == 0)


def _ends_with(study: Study, ours: Arm, world: World) -> Expectation:
    final = study.final(ours)
    expected = f"{world.name}: the final policy of {ours.label} earns {world.wanted:g} or more, on average over runs"
    return Expectation(expected, f"{final.mean():.2f}, runs {_list(final)}", bool(final.mean() >= world.wanted))


def _list(values: object) -> str:
    return ", ".join(f"{value:.2f}" for value in values)  # type: ignore[attr-defined]


def _active(study: Study, ours: Arm, world: World) -> Expectation:
    shares = [run.active for run in study.runs[ours]]
    expected = f"{world.name}: the safety constraint of {ours.label} is active at some time in every run"
    return Expectation(expected, f"in {_list([100 * s for s in shares])} % of the episodes", min(shares) > 0)


def _violates_less(study: Study, ours: Arm, mean: Arm, world: World) -> Expectation:
    expected = f"{world.name}: {ours.label} executes fewer violating policies than {mean.label}"
    found = f"{study.violating(ours)} against {study.violating(mean)} of {study.policies(mean)}"
    return Expectation(expected, found, study.violating(ours) < study.violating(mean))


def _violates(study: Study, unsafe: Arm, world: World) -> Expectation:
    expected = f"{world.name}: the budget binds, so that {unsafe.label} violates in every run"
    counts = [run.violating_policies for run in study.runs[unsafe]]
    return Expectation(expected, f"{', '.join(map(str, counts))} policies", min(counts) > 0)


def draw(study: Study) -> Figure:
    """The worlds whose equations are known."""
    return _columns(study, list(WORLDS.values()), BINDING)


def draw_bodies(study: Study) -> Figure:
    """The other ones."""
    bodies = list(BODIES.values())
    return _columns(study, bodies, bodies[0])


def _columns(study: Study, worlds: list[World], named: World) -> Figure:
    """A column per world: returns above, true costs below; the legend is that of one of them."""
    figure, rows = plt.subplots(2, len(worlds), figsize=(4.6 * len(worlds), 7), layout="constrained", sharex="col")
    for (above, below), world in zip(rows.T, worlds, strict=True):
        compared = arms(world)
        draw_curves(above, {each.label: study.curves(each) for each in compared})
        limit(above, 1.0, "dynamics\nknown" if world.has_oracle else "behaviour", "#555555")
        above.set_title(world.name, fontsize=11)
        above.set_xlabel("")
        draw_curves(below, {each.label: study.costs(each) for each in compared})
        budget = study.runs[compared[0]][0].budget
        limit(below, budget, f"budget\n{budget:g}")
    rows[0, 0].set_ylabel("normalised true return" if worlds[0].has_oracle else "true return, of the behaviour's")
    rows[1, 0].set_ylabel("true mean cost of the executed policy")
    handles, names = rows[0, worlds.index(named)].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure
