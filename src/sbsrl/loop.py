"""Algorithm 1 of the paper, the same for every belief, every solver and every method."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .belief.protocol import Belief
from .methods import Context, Method
from .rollout import Run, run_episode
from .settings import Settings
from .solve import Solution, Solver
from .task import Episode, Task, aggregate, violation
from .types import Flag, Index, PRNGKey

__all__ = [
    "Experiment",
    "Learner",
    "Outcome",
    "Phase",
    "Record",
    "Shortfall",
    "algorithm_1",
    "first_shortfall",
    "greedy_policy",
    "run_greedy_policy",
    "sample_key",
]

Phase = Literal["prior", "explore", "exploit", "evaluate", "final"]


@dataclass(frozen=True, eq=False)
class Experiment:
    """What does not change during a run."""

    task: Task
    method: Method
    solver: Solver
    settings: Settings

    @property
    def explores(self) -> bool:
        """Whether information is demanded at first: a threshold of nothing is none."""
        return self.method.explores and bool(self.settings.accuracy or self.settings.exploration_threshold)


class Learner(eqx.Module):
    """What does change: all state between two episodes, enough to go on exactly from here."""

    belief: Belief
    key: PRNGKey
    episode: Index
    """n: episodes done."""
    exploring: Flag
    """Whether the exploration constraint of Problem (1) could be met so far."""
    finished: Flag
    """Whether the final policy was run."""

    @classmethod
    def create(cls, belief: Belief, exploring: bool, seed: int) -> "Learner":
        return cls(
            belief=belief,
            key=jax.random.key(seed),
            episode=jnp.zeros((), jnp.int32),
            exploring=jnp.asarray(exploring),
            finished=jnp.zeros((), bool),
        )


class Record(NamedTuple):
    """One line of `episodes.jsonl`."""

    episode: int
    phase: Phase
    reward: float
    cost: float
    budget: float
    violation: float
    safe: bool
    feasible: bool
    """Whether every plan of the episode was feasible on every sample."""
    exploring: bool
    uncertainty: float
    """Information gathered, in nats: s_n summed over the episode."""
    samples: int
    infeasible_plans: int
    worst_plan: float
    """The most by which a plan that was followed exceeds the tightened budget on a sample."""
    planned_information: float
    """J_{s_n}(mu_n) of the first plan; 0 where no exploration is demanded."""
    evaluated: float
    """Mean share of the pairs of candidate and sample that had to be evaluated."""
    objection: str | None
    """What the data say against the assumptions: null, or that confidence sets have no common point."""
    seconds: float


class Outcome(NamedTuple):
    """An episode, its line in the log, and the learner after it."""

    record: Record
    episode: Episode
    learner: Learner
    solution: Solution
    """pi_n, the policy that was run."""


def algorithm_1(
    experiment: Experiment, learner: Learner, on_step: Callable[[], None] = lambda: None
) -> Iterator[Outcome]:
    """Learns safely from `learner` on and ends with the greedy policy. Numbers are lines of the paper's Algorithm 1."""
    tolerance = experiment.settings.exploration_tolerance
    while _goes_on(experiment, learner):
        started = perf_counter()
        solution = _solve(experiment, learner)  # 6, 7: samples, Problem (1)
        if learner.exploring and not solution.explores(tolerance):
            learner = _change(learner, exploring=False)  # 5: no longer feasible
            continue
        run = run_episode(experiment.task, solution, _keys(learner).rollout, on_step)  # 8
        belief = learner.belief.update(run.episode.transitions)  # 9
        phase: Phase = "explore" if solution.policy.problem.exploring else "exploit"
        record = _record(experiment, learner, phase, run, belief.objection(), perf_counter() - started)
        learner = _change(learner, belief=belief, episode=learner.episode + 1)  # 10
        yield Outcome(record, run.episode, learner, solution)

    if not learner.finished:
        started = perf_counter()
        run = run_greedy_policy(experiment, learner, on_step)  # 12
        record = _record(experiment, learner, "final", run, learner.belief.objection(), perf_counter() - started)
        yield Outcome(record, run.episode, _change(learner, finished=True), run.solution)


def greedy_policy(experiment: Experiment, learner: Learner) -> Solution:
    """Problem (1) without the exploration constraint: the policy that is returned in the end."""
    return _solve(experiment, _change(learner, exploring=False), final=True)


def run_greedy_policy(experiment: Experiment, learner: Learner, on_step: Callable[[], None] = lambda: None) -> Run:
    """One episode of the greedy policy, from which nothing is learned."""
    solution = greedy_policy(experiment, learner)
    return run_episode(experiment.task, solution, _keys(learner).rollout, on_step)


class Shortfall(NamedTuple):
    """An exploration constraint that cannot be met."""

    threshold: float
    attainable: float
    """What the best plan found promises, scaled to a whole episode."""


def first_shortfall(experiment: Experiment, learner: Learner) -> Shortfall | None:
    """If Problem (1) cannot be as informative as it should be, as far as the solver can see: by how much."""
    solution = _solve(experiment, learner) if learner.exploring else None
    if solution is None or solution.explores(experiment.settings.exploration_tolerance):
        return None
    threshold = float(solution.policy.problem.threshold)
    return Shortfall(threshold, float(solution.evaluation.information) * threshold / solution.demand)


def _goes_on(experiment: Experiment, learner: Learner) -> bool:
    settings = experiment.settings
    learned = experiment.explores and not learner.exploring
    unfinished = not learner.finished and int(learner.episode) < settings.episodes
    return unfinished and not (learned and settings.stop_when_learned)


_SAMPLES = 2**31 - 1
"""Folded into the seed it gives the key of the samples: no episode has this number."""


def sample_key(key: PRNGKey) -> PRNGKey:
    """The key of a run's samples, the same in all its episodes."""
    return jax.random.fold_in(key, _SAMPLES)


class _Keys(NamedTuple):
    reset: PRNGKey
    first_plan: PRNGKey
    rollout: PRNGKey


def _keys(learner: Learner) -> _Keys:
    """The randomness of one episode depends on the seed and its number only, hence not on how the run was resumed."""
    return _Keys(*jax.random.split(jax.random.fold_in(learner.key, learner.episode), 3))


def _solve(experiment: Experiment, learner: Learner, final: bool = False) -> Solution:
    """Builds this episode's problem and plans from the initial state."""
    keys = _keys(learner)
    problem = experiment.method.problem(
        Context(
            task=experiment.task,
            belief=learner.belief,
            settings=experiment.settings,
            episode=int(learner.episode),
            exploring=bool(learner.exploring),
            final=final,
            key=sample_key(learner.key),
        )
    )
    return experiment.solver.solve(problem, experiment.task.reset(keys.reset), keys.first_plan)


def _change(learner: Learner, **fields: object) -> Learner:
    """The learner with these fields replaced."""
    names = list(fields)
    values = [jnp.asarray(value) if isinstance(value, bool) else value for value in fields.values()]
    return eqx.tree_at(lambda tree: [getattr(tree, name) for name in names], learner, values)


def _record(
    experiment: Experiment, learner: Learner, phase: Phase, run: Run, objection: str | None, seconds: float
) -> Record:
    task = experiment.task
    cost = float(aggregate(jnp.asarray(run.episode.costs), task.aggregation))
    excess = violation(cost, task.budget)
    problem = run.solution.policy.problem
    return Record(
        episode=int(learner.episode),
        phase=phase,
        reward=float(run.episode.rewards.sum()),
        cost=cost,
        budget=task.budget,
        violation=excess,
        safe=excess == 0,
        feasible=run.infeasible_plans == 0,
        exploring=bool(problem.exploring),
        uncertainty=run.information,
        samples=0 if problem.samples is None else len(problem.samples),
        infeasible_plans=run.infeasible_plans,
        worst_plan=run.worst_plan,
        planned_information=float(run.solution.evaluation.information),
        evaluated=run.evaluated,
        objection=objection,
        seconds=seconds,
    )
