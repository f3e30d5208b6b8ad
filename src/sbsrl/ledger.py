"""From what was played to its line in the ledger."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._jax import PLAN
from .belief.protocol import Uncertainty
from .costs import Cost, aggregate, violation
from .departures import departure
from .policy import Metrics
from .problem import Problem, at_many
from .record import Interruption, Phase, Record
from .solve.protocol import Solution
from .systems.episode import Played
from .task import Task
from .transitions import Episode

__all__ = ["Judgement", "make_first_record", "make_interruption", "make_record"]


class Judgement(NamedTuple):
    """What is known of an episode besides what was played."""

    phase: Phase
    problem: Problem
    solution: Solution | None
    """What the solver found, if the policy is from a solver."""
    calibration_warning: str | None
    seconds: float
    tests: Metrics = {}  # noqa: RUF012  (never changed)
    """How what was believed compares with what happened."""


def make_record(task: Task, number: int, played: Played, judgement: Judgement) -> Record:
    """The line of an episode."""
    episode, problem = played.episode, judgement.problem
    costs = _totals(task.costs, episode)
    worst = _worst(task.costs, costs)
    metrics = dict(_metrics(task, costs, played, judgement))
    followed = judgement.solution is not None
    return Record(
        episode=number,
        phase=judgement.phase,
        reward=float(episode.rewards.sum()),
        **worst._asdict(),
        feasible=followed and not metrics["infeasible_plans"],
        exploring=followed and bool(problem.exploring),
        uncertainty=gathered(problem.uncertainty, episode, task.horizon),
        samples=0 if problem.samples is None else len(problem.samples),
        seconds=judgement.seconds,
        steps=len(episode.actions),
        ended=episode.ended,
        reason=episode.reason,
        calibration_warning=judgement.calibration_warning,
        departure=departure(task, episode),
        metrics=metrics,
    )


def make_first_record(costs: Sequence[Cost], number: int, played: Played, seconds: float) -> Record:
    """The line of an episode that was played before there was a belief to plan with."""
    episode, totals = played.episode, _totals(costs, played.episode)
    return Record(
        episode=number,
        phase="prior",
        reward=float(episode.rewards.sum()),
        **_worst(costs, totals)._asdict(),
        feasible=False,
        exploring=False,
        uncertainty=0.0,
        samples=0,
        seconds=seconds,
        steps=len(episode.actions),
        ended=episode.ended,
        reason=episode.reason,
        metrics=dict(_each(costs, totals)),
    )


def make_interruption(costs: Sequence[Cost], number: int, episode: Episode) -> Interruption:
    """The line of an episode that the user stopped."""
    charged = _worst(costs, _totals(costs, episode))
    return Interruption(number, len(episode.actions), float(episode.rewards.sum()), **charged._asdict())


class _Charged(NamedTuple):
    """The cost by which an episode is judged: the one farthest beyond its budget, or nearest to it."""

    cost: float
    budget: float
    violation: float
    safe: bool


def _worst(costs: Sequence[Cost], totals: list[float]) -> _Charged:
    worst = int(np.argmax([total - cost.budget for total, cost in zip(totals, costs, strict=True)]))
    budget = costs[worst].budget
    excess = violation(totals[worst], budget)
    return _Charged(totals[worst], budget, excess, excess == 0)


def _totals(costs: Sequence[Cost], episode: Episode) -> list[float]:
    """Every cost of an episode, aggregated."""
    return [_total(episode, i, cost) for i, cost in enumerate(costs)]


def _each(costs: Sequence[Cost], totals: list[float]) -> Iterator[tuple[str, float]]:
    """Every single one, where there are several."""
    if len(costs) > 1:
        yield from ((f"cost/{cost.name}", total) for cost, total in zip(costs, totals, strict=True))


def _total(episode: Episode, i: int, cost: Cost) -> float:
    """The aggregated cost of an episode; what was not played costs nothing, and violates no budget."""
    if not len(episode.actions):
        return min(0.0, cost.budget)
    return float(aggregate(jnp.asarray(episode.costs[:, i]), cost.aggregation))


def _metrics(task: Task, costs: list[float], played: Played, judgement: Judgement) -> Iterator[tuple[str, float]]:
    """Numbers of the solver, then those of the policy: means over the steps, but for violations of its plans.

    A policy that says nothing of the violation of its decisions has that of the solution in all of them.
    """
    if (solution := judgement.solution) is not None:
        yield "planned_information", float(solution.evaluation.information)
        yield from _known((name, float(value)) for name, value in solution.metrics.items())
        plans = played.metrics.get("violation") or [float(solution.evaluation.violation)]
        yield "infeasible_plans", sum(not each <= 0 for each in plans)  # what is not a number is not feasible
        yield "worst_plan", float(np.clip(np.nan_to_num(plans, nan=np.inf).max(), None, np.finfo(float).max))
    yield from _known((name, float(value)) for name, value in judgement.tests.items())
    means = (
        (name, float(np.mean(values))) for name, values in played.metrics.items() if name != "violation" and values
    )
    yield from _known(means)
    yield from _each(task.costs, costs)


def _known(metrics: Iterable[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    """Those that are finite numbers: JSON has no others."""
    return ((name, value) for name, value in metrics if np.isfinite(value))


def gathered(uncertainty: Uncertainty, episode: Episode, horizon: int) -> float:
    """s_n summed over the inputs that were really visited; short episodes are padded, so that all have one program."""
    steps = len(episode.actions)
    if not steps:
        return 0.0
    padding = ((0, max(horizon - steps, 0)), (0, 0))
    x, a = (np.pad(part, padding, mode="edge").T for part in (episode.states[:-1], episode.actions))
    each = _at_inputs(uncertainty, jnp.asarray(x, PLAN), jnp.asarray(a, PLAN))
    return float(np.nan_to_num(np.sum(np.asarray(each, float)[:steps])))


@eqx.filter_jit
def _at_inputs(uncertainty: Uncertainty, x: Float[Array, "dx T"], a: Float[Array, "da T"]) -> Float[Array, " T"]:
    return at_many(uncertainty)(x, a)
