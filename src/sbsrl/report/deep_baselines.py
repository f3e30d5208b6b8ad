"""The figure experiments_with_baselines of the paper: SBSRL with both solvers against mean, MBPO and SOOPER."""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from ..runs.study import Arm
from .canvas import plt
from .charts import COLOURS, draw_curves, limit
from .deep_arms import ALL, BINDING, BODIES, WORLDS, World, arm
from .deep_study import Numbers, Run, Study, publish, run_deep
from .expectations import Expectation, expectations_table
from .figures import Request
from .interventions import INTERVENTIONS, interventions_table
from .statistics import summarise

__all__ = ["arms", "draw", "draw_bodies", "files"]

NUMBERS = Numbers((701, 702), 7000)
EPISODES = 25
OURS, CRITIC, MEAN, MBPO, SOOPER, PLANNED = "sbsrl", "actor-critic", "mean", "mbpo", "sooper", "sooper, planned"
DRAWN = (OURS, CRITIC, MEAN, MBPO, SOOPER)
"""The others are in the tables."""


def arms(world: World) -> dict[str, Arm]:
    """By label. All begin with the same data and, with the same solver, with the same offline phase."""

    def made(label: str, method: str = "sbsrl", **changes: object) -> Arm:
        own = {} if world in BODIES.values() else {"episodes": EPISODES}
        return arm(label, world, method, **own, **changes)

    if world in BODIES.values():
        four = made(OURS), made(MEAN, "mean"), made(MBPO, "mbpo"), made(SOOPER, "sooper", **dict(world.sooper))
        return {each.label: each for each in four}
    car = world.task == "race-car"
    sooper = {"pessimism": 0.0} if car else {}
    planned = [made(PLANNED, "sooper", planned=True, **sooper)] if car else []
    return {
        each.label: each
        for each in (
            made(OURS),
            made(CRITIC, solver="actor-critic"),
            made(MEAN, "mean"),
            made(MBPO, "mbpo"),
            made(SOOPER, "sooper", **sooper),
            *planned,
        )
    }


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    sections = {name: list(arms(world).values()) for name, world in ALL.items()}
    study = run_deep(request, [each for many in sections.values() for each in many], NUMBERS)
    tables = "\n\n".join(f"{name}:\n\n{interventions_table(study, many)}" for name, many in sections.items())
    text = "\n\n".join(
        (EXPLAINED, expectations_table(_expectations(study)), INTERVENTIONS, tables, REACHED, _reached_table(study))
    )
    more = {"mujoco": draw_bodies}
    return publish(request, study, "Against other methods", text, sections, draw, more)


EXPLAINED = (
    "Top: normalised true return of every executed policy, filters included. Bottom: its true mean cost "
    "over 64 initial states; crosses are executed episodes that cost more than the budget. Mean and 95 % percentile "
    "interval over runs; the last point is the policy that is returned. All methods have the same data, models, "
    "updates, budget and weight of the penalty, and a gate that asks fresh models for what the method demands: every "
    f"sample, or the mean, for {SOOPER} with pessimistic costs. Those with the same solver begin with the same offline "
    f"phase. Training of the {CRITIC} aims at half the budget on the car. `{SOOPER}` plans without its switch and, on "
    f"the car, without pessimism, as its public configuration there does; `{PLANNED}` plans with it. "
    "What was expected was written down before the runs; whether it was met is computed from them."
)
LEVELS = (0.25, 0.5, 0.75)
REACHED = (
    "How long both solvers take to reach a return: the number of executed episodes before the first policy whose "
    "normalised true return is at least that, and the seconds until that was played, offline phase included (one core, "
    "both cores busy, judging left out); the median over runs, - where half of them or more never reach it."
)


def _reached_table(study: Study) -> str:
    """Gradients against the actor-critic."""
    head = ("", "solver", *(f"{level:g}: episodes, seconds" for level in LEVELS))
    rows = [head, ("---",) * len(head)]
    for world in WORLDS.values():
        for label, name in ((OURS, "gradient"), (CRITIC, "actor-critic")):
            each = arms(world)[label]
            rows.append((world.name, name, *(_median(_until(study, each, level)) for level in LEVELS)))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _until(study: Study, each: Arm, level: float) -> list[tuple[float, float]]:
    """Of every run: episodes and seconds before a policy of this return; infinite if it has none."""
    found = []
    for run, curve in zip(study.runs[each], study.curves(each), strict=True):
        first = next((n for n, value in enumerate(curve) if value >= level), None)
        played = 0.0 if first is None else sum(r.seconds for r in run.records[: first + 1])
        found.append((np.inf, np.inf) if first is None else (first, run.offline.get("seconds", 0.0) + played))
    return found


def _median(found: list[tuple[float, float]]) -> str:
    episodes, seconds = np.median(np.array(found), axis=0)
    return f"{episodes:.0f}, {seconds:.0f} s" if np.isfinite(episodes) else "-"


def _expectations(study: Study) -> Iterator[Expectation]:
    for world in ALL.values():
        yield _fewest(study, world)
        yield _not_below_sooper(study, world)
        if CRITIC in arms(world):
            yield _critic_learns(study, world)
        if world == BINDING:
            yield _unsafe_without_pessimism(study, world)


def _fewest(study: Study, world: World) -> Expectation:
    compared = arms(world)
    counts = {name: study.violating(each) for name, each in compared.items()}
    others = min(count for name, count in counts.items() if name not in (OURS, CRITIC))
    expected = f"{world.name}: no method executes fewer violating policies than {OURS}"
    found = ", ".join(f"{name} {count}" for name, count in counts.items())
    return Expectation(expected, f"{found} of {study.policies(compared[OURS])}", counts[OURS] <= others)


def _not_below_sooper(study: Study, world: World) -> Expectation:
    """By the mean over the last episodes, and where both are as safe."""
    compared = arms(world)
    ours, theirs = (study.late(compared[name]) for name in (OURS, SOOPER))
    safe = study.violating(compared[OURS]) <= study.violating(compared[SOOPER])
    expected = f"{world.name}: {OURS} earns no less than {SOOPER} at the end, and is as safe"
    low, high = (summarise(list(ours - theirs)).mean_low, summarise(list(ours - theirs)).mean_high)
    found = f"{ours.mean():.3f} against {theirs.mean():.3f}, difference {low:.3f} to {high:.3f}"
    return Expectation(expected, found, bool(safe and ours.mean() >= theirs.mean()))


def _critic_learns(study: Study, world: World) -> Expectation:
    each = arms(world)[CRITIC]
    final = study.final(each)
    expected = f"{world.name}: the {CRITIC} earns half of what is to be learned in every run, and never violates"
    found = f"{', '.join(f'{value:.2f}' for value in final)}; {study.violating(each)} of {study.policies(each)} violate"
    return Expectation(expected, found, bool(final.min() >= 0.5 and study.violating(each) == 0))


def _unsafe_without_pessimism(study: Study, world: World) -> Expectation:
    each = arms(world)[MBPO]
    expected = f"{world.name}: {MBPO} executes violating policies, since it demands safety on average only"
    found = f"{study.violating(each)} of {study.policies(each)}, largest {study.costs(each).max():.1f}"
    return Expectation(expected, found, study.violating(each) > 0)


def draw(study: Study) -> Figure:
    """The worlds whose equations are known."""
    return _columns(study, list(WORLDS.values()))


def draw_bodies(study: Study) -> Figure:
    """The other ones."""
    return _columns(study, list(BODIES.values()))


def _columns(study: Study, worlds: list[World]) -> Figure:
    """A column per world: returns above, true costs below."""
    figure, rows = plt.subplots(2, len(worlds), figsize=(4.8 * len(worlds), 7.2), layout="constrained", sharex="col")
    for (above, below), world in zip(rows.T, worlds, strict=True):
        compared = {name: each for name, each in arms(world).items() if name in DRAWN}
        draw_curves(above, {name: study.curves(each) for name, each in compared.items()})
        limit(above, 1.0, "dynamics\nknown" if world.has_oracle else "behaviour", "#555555")
        above.set_title(world.name, fontsize=11)
        above.set_xlabel("")
        draw_curves(below, {name: study.costs(each) for name, each in compared.items()})
        for colour, each in zip(COLOURS, compared.values(), strict=False):
            dear = [(r.episode, r.cost) for run in study.runs[each] for r in run.records if not r.safe]
            below.scatter(*zip(*dear, strict=True) if dear else ((), ()), marker="x", s=22, color=colour, zorder=4)
        budget = _first(study, compared).budget
        limit(below, budget, f"budget\n{budget:g}")
    rows[0, 0].set_ylabel("normalised true return" if worlds[0].has_oracle else "true return, of the behaviour's")
    rows[1, 0].set_ylabel("true mean cost of the executed policy")
    handles, names = rows[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure


def _first(study: Study, compared: dict[str, Arm]) -> Run:
    return study.runs[next(iter(compared.values()))][0]
