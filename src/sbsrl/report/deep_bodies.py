"""The tasks on MuJoCo without equations, alone: what is constrained, and other methods (appendix G of the paper)."""

from collections.abc import Iterator

import numpy as np

from ..runs.study import Arm
from .deep_arms import BODIES, World
from .deep_baselines import MEAN, OURS, arms, draw_bodies
from .deep_study import Numbers, Run, Study, publish, run_deep
from .expectations import Expectation, expectations_table
from .figures import Request
from .statistics import summarise

__all__ = ["files"]

ROBOT = BODIES["go to goal"]
"""Where one episode says least of a policy: sbsrl and its mean have twice as many runs there."""
NUMBERS = Numbers((741, 742), 7000)
"""Nothing was chosen by these priors. Of 701, 702, 731 and 732 results were seen before settings were what they are."""
LATE = 5
"""Policies at the end over which a run's return is averaged."""
LIMIT = 25.0
"""Minutes that a run may take."""


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    sections = {name: list(arms(world).values()) for name, world in BODIES.items()}
    once = request._replace(seeds=request.seeds or 1)
    study = run_deep(once, [each for many in sections.values() for each in many], NUMBERS)
    twice = [arms(ROBOT)[name] for name in (OURS, MEAN)]
    more = run_deep(request._replace(seeds=2 * (request.seeds or 1)), twice, NUMBERS)
    study = study._replace(runs={**study.runs, **more.runs})
    text = "\n\n".join((EXPLAINED, expectations_table(_expectations(study)), _against_data(study)))
    return publish(request, study, "On MuJoCo", text, sections, draw_bodies)


EXPLAINED = (
    "Top: true return of every executed policy, as a share of what an episode of the offline data earns. Bottom: its "
    "true mean cost; crosses are executed episodes that cost more than the budget. Mean and 95 % percentile interval "
    "over runs; the last point is the policy that is returned. All methods have the same data, models, updates, "
    "budget, trust region and gate. What was expected was written down before the runs, but for the line on intervals, "
    "which was added when the first had been seen; whether it was met is computed from them."
)


def _expectations(study: Study) -> Iterator[Expectation]:
    for world in BODIES.values():
        yield _within_budget(study, world)
        yield _better(study, world)
        yield _outside(study, world)
        yield _fewest(study, world)
        yield _quick(study, world)


def _within_budget(study: Study, world: World) -> Expectation:
    ours = arms(world)[OURS]
    expected = f"{world.name}: no policy that {OURS} executes has a true mean cost above the budget"
    found = f"{study.violating(ours)} of {study.policies(ours)}, largest {study.costs(ours).max():.1f}"
    return Expectation(expected, found, study.violating(ours) == 0)


def _better(study: Study, world: World) -> Expectation:
    """By the mean of its last policies."""
    values = study.curves(arms(world)[OURS])[:, -LATE:].mean(axis=1)
    expected = (
        f"{world.name}: the last policies of {OURS} earn {world.wanted:g} times what the behaviour does, on average"
    )
    found = f"{values.mean():.2f}, runs {', '.join(f'{value:.2f}' for value in values)}"
    return Expectation(expected, found, bool(values.mean() >= world.wanted))


def _outside(study: Study, world: World) -> Expectation:
    """Two intervals that do not meet."""
    runs = study.runs[arms(world)[OURS]]
    ours = summarise([float(np.mean(run.true_returns[-LATE:])) for run in runs])
    data = summarise([value for run in runs for value in run.recorded])
    expected = (
        f"{world.name}: the 95 % interval of what the last policies of {OURS} earn, over runs, is above that of the "
        "recorded episodes"
    )
    found = f"{ours.mean_low:.1f} to {ours.mean_high:.1f} against {data.mean_low:.1f} to {data.mean_high:.1f}"
    return Expectation(expected, found, ours.mean_low > data.mean_high)


def _fewest(study: Study, world: World) -> Expectation:
    """Of as many policies each: the runs of the first seed."""
    counts = {name: sum(run.violating_policies for run in _first(study, each)) for name, each in arms(world).items()}
    expected = f"{world.name}: no method executes fewer violating policies than {OURS}"
    found = ", ".join(f"{name} {count}" for name, count in counts.items())
    return Expectation(expected, found, counts[OURS] <= min(counts.values()))


def _first(study: Study, each: Arm) -> list[Run]:
    first = min(run.seed for run in study.runs[each])
    return [run for run in study.runs[each] if run.seed == first]


def _quick(study: Study, world: World) -> Expectation:
    longest = max(run.seconds for each in arms(world).values() for run in study.runs[each]) / 60
    expected = f"{world.name}: a run takes at most {LIMIT:g} minutes on one core"
    return Expectation(expected, f"at most {longest:.1f} minutes", longest <= LIMIT)


def _against_data(study: Study) -> str:
    """What is earned and cost, in the task's own units."""
    head = ("", "method", "recorded episodes earn", "last policies earn", "they cost", "minutes per run")
    rows = [head, ("---",) * len(head)]
    for world in BODIES.values():
        for name, each in arms(world).items():
            runs = study.runs[each]
            earned, cost = (np.concatenate([part(run)[-LATE:] for run in runs]) for part in (_returns, _costs))
            minutes = [run.seconds / 60 for run in runs]
            rows.append(
                (
                    world.name,
                    name,
                    _mean_and_range(np.concatenate([run.recorded for run in runs])),
                    _mean_and_range(earned),
                    f"{_mean_and_range(cost)} of {runs[0].budget:g}",
                    f"{min(minutes):.1f} to {max(minutes):.1f}",
                )
            )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _returns(run: Run) -> np.ndarray:
    return run.true_returns


def _costs(run: Run) -> np.ndarray:
    return run.true_costs


def _mean_and_range(values: np.ndarray) -> str:
    found = summarise(list(values))
    return f"{found.mean:.1f} ({values.min():.1f} to {values.max():.1f})"
