"""What the monitor removes, and what it costs: methods that care for safety more or less, with it and without."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..runs.study import Arm
from .canvas import plt
from .charts import COLOURS, UNSAFE, draw_curves, limit, tidy
from .deep_arms import BINDING, WORLDS, World, arm
from .deep_study import Numbers, Study, publish, run_deep
from .expectations import Expectation, expectations_table
from .figures import Request
from .interventions import INTERVENTIONS, MONITORED, interventions_table, price

__all__ = ["WATCHED_WORLDS", "arms", "draw", "files", "listed"]

NUMBERS = Numbers((711, 713), 7100)
"""The drives of prior 712 touch no obstacle: nothing could be learned from them of what costs, and they are refused."""
EPISODES = 25
LOOKS = 25
"""Control steps between two looks of the monitor."""
METHODS = ("sbsrl", "mbpo", "unsafe")
WATCHED_WORLDS = {world.name: world for world in (BINDING, WORLDS["cartpole"])}
"""Where the budget binds."""


def arms(world: World) -> dict[str, tuple[Arm, Arm]]:
    """By method: without the monitor, and with it."""
    return {
        name: (
            arm(name, world, name, episodes=EPISODES),
            arm(f"{name}{MONITORED}", world, name, episodes=EPISODES, monitor=LOOKS),
        )
        for name in METHODS
    }


def listed(world: World) -> list[Arm]:
    """All of them."""
    return [each for pair in arms(world).values() for each in pair]


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    sections = {name: listed(world) for name, world in WATCHED_WORLDS.items()}
    study = run_deep(request, [each for many in sections.values() for each in many], NUMBERS)
    tables = "\n\n".join(f"{name}:\n\n{interventions_table(study, many)}" for name, many in sections.items())
    text = "\n\n".join((EXPLAINED, expectations_table(_expectations(study)), f"{INTERVENTIONS} {PRICED}", tables))
    return publish(request, study, "Under watch", text, sections, draw)


EXPLAINED = (
    f"Every {LOOKS} steps the monitor predicts the rest of the episode on ten samples that nobody has seen. Where one "
    "of them exceeds the budget, the policy of the offline phase takes over, or the clone of the data (the car) or the "
    "safe action (the cartpole) if that would exceed it, too. Top: normalised true return of every executed policy, "
    "interventions included. Bottom: what executed episodes cost, one mark each. What was expected was written down "
    "before the runs; whether it was met is computed from them."
)


PRICED = "The price is by how much less the last policies earn than without the monitor."


def _expectations(study: Study) -> Iterator[Expectation]:
    for world in WATCHED_WORLDS.values():
        for plain, watched in arms(world).values():
            yield _keeps_policies(study, world, plain, watched)
            yield _keeps_episodes(study, world, plain, watched)
        yield _pays_little(study, world)


def _keeps_policies(study: Study, world: World, plain: Arm, watched: Arm) -> Expectation:
    expected = f"{world.name}: no policy of {plain.label} violates under watch"
    found = f"{study.violating(watched)} of {study.policies(watched)}, without the monitor {study.violating(plain)}"
    return Expectation(expected, found, study.violating(watched) == 0)


def _keeps_episodes(study: Study, world: World, plain: Arm, watched: Arm) -> Expectation:
    """Fewer than without, or none."""
    before, after = (sum(run.violating_episodes for run in study.runs[each]) for each in (plain, watched))
    expected = f"{world.name}: fewer episodes of {plain.label} cost more than the budget under watch, if any did"
    return Expectation(expected, f"{after}, without the monitor {before}", after < before or after == before == 0)


def _pays_little(study: Study, world: World) -> Expectation:
    plain, watched = arms(world)["sbsrl"]
    found = price(study, plain, watched)
    expected = f"{world.name}: the monitor costs sbsrl at most a tenth of what is to be learned"
    return Expectation(expected, f"{found:.3f}", found <= 0.1)


def draw(study: Study) -> Figure:
    """A column per world: returns above, costs of executed episodes below."""
    worlds = WATCHED_WORLDS.values()
    figure, rows = plt.subplots(2, len(worlds), figsize=(6.4 * len(worlds), 7.4), layout="constrained")
    for (above, below), world in zip(rows.T, worlds, strict=True):
        compared = listed(world)
        draw_curves(above, {each.label: study.curves(each) for each in compared})
        limit(above, 1.0, "dynamics\nknown", "#555555")
        above.set_title(world.name, fontsize=11)
        _strips(below, study, compared)
    rows[0, 0].set_ylabel("normalised true return")
    rows[1, 0].set_ylabel("cost of executed episodes")
    handles, names = rows[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure


def _strips(axes: Axes, study: Study, compared: list[Arm]) -> None:
    """Every episode as a dot above the name of its arm, those beyond the budget red, and how many they are."""
    for i, (each, colour) in enumerate(zip(compared, COLOURS, strict=False)):
        records = [r for run in study.runs[each] for r in run.records]
        beside = i + np.linspace(-0.3, 0.3, len(records))
        marks = [UNSAFE if not r.safe else colour for r in records]
        axes.scatter(beside, [r.cost for r in records], s=9, c=marks, alpha=0.7, zorder=3)
        dear = sum(not r.safe for r in records)
        axes.annotate(
            f"{dear} of {len(records)}", (i, 1.01), xycoords=("data", "axes fraction"), ha="center", fontsize=8
        )
    axes.set_xticks(range(len(compared)), [each.label for each in compared], rotation=20, ha="right", fontsize=8)
    budget = study.runs[compared[0]][0].budget
    limit(axes, budget, f"budget\n{budget:g}")
    tidy(axes)
