"""Algorithm 1 of the paper, the same for every belief, every solver and every method."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .belief.protocol import Belief, Calibrated
from .ledger import Judgement, make_record
from .methods import Context, Method
from .policy import Policy
from .record import Phase, Record
from .settings import Settings
from .solve.protocol import Solution, Solver
from .systems.episode import Played
from .task import Task
from .transitions import Episode
from .types import Flag, Index, PRNGKey

__all__ = [
    "Experiment",
    "Learner",
    "Outcome",
    "Shortfall",
    "Turn",
    "algorithm_1",
    "context_of",
    "final_episode",
    "greedy_policy",
    "sample_key",
]


@dataclass(frozen=True, eq=False)
class Experiment:
    """What does not change during a run."""

    task: Task
    method: Method
    solver: Solver
    settings: Settings

    @property
    def explores(self) -> bool:
        """Whether information is demanded at first."""
        return self.method.demands_information(self.settings)


class Learner(eqx.Module):
    """What does change: all state between two episodes, enough to go on exactly from here."""

    belief: Belief
    solver: Any
    """What the solver remembers."""
    key: PRNGKey
    episode: Index
    """n: episodes done."""
    exploring: Flag
    """Whether the exploration constraint of Problem (1) could be met so far."""
    contradicted: Flag
    """Whether the confidence sets so far have no common point: then the belief's own assumptions are wrong."""
    finished: Flag
    """Whether the final policy was run."""

    @classmethod
    def create(cls, experiment: Experiment, seed: int) -> "Learner":
        """The learner before the first episode."""
        settings, key = experiment.settings, jax.random.key(seed)
        belief = settings.belief.create(experiment.task, settings.run.episodes, jax.random.fold_in(key, _BELIEF))
        return cls(
            belief=belief,
            solver=experiment.solver.init(jax.random.fold_in(key, _SOLVER)),
            key=key,
            episode=jnp.zeros((), jnp.int32),
            exploring=jnp.asarray(experiment.explores),
            contradicted=jnp.asarray(calibration_warning(belief) is not None),
            finished=jnp.zeros((), bool),
        )


class Turn(NamedTuple):
    """Which episode is to be played. Its randomness depends on the run's seed and its number only."""

    episode: int
    seed: int
    """Of the true system's reset."""
    key: PRNGKey
    """Of the policy."""


Play = Callable[[Policy, Turn], Played]
"""Plays one episode: on the true system, or from a record of it."""


class Shortfall(NamedTuple):
    """An exploration constraint that cannot be met."""

    threshold: float
    attainable: float
    """What the best plan found promises, scaled to a whole episode."""


class Outcome(NamedTuple):
    """An episode, its line in the log, and the learner after it."""

    record: Record
    episode: Episode
    learner: Learner
    policy: Policy
    """pi_n, the policy that was run."""
    shortfall: Shortfall | None
    """If exploration was found to be infeasible before this episode: by how much."""


def algorithm_1(experiment: Experiment, learner: Learner, play: Play) -> Iterator[Outcome]:
    """Learns safely from `learner` on and ends with the greedy policy. Numbers are lines of the paper's Algorithm 1.

    Stops without the final policy if an episode was cut short by a fault, or if the confidence sets have no common
    point and no prior policy is to be played then.
    """
    shortfall = None
    while _goes_on(experiment, learner):
        started, turn = perf_counter(), _turn(learner)
        context = context_of(experiment, learner)
        problem, solution, memory = _solve(experiment, learner, context)  # 6, 7: samples, Problem (1)
        if learner.exploring and not solution.explores(experiment.settings.method.exploration_tolerance):
            shortfall = _shortfall(float(problem.threshold), solution)
            learner = _change(learner, exploring=False, solver=memory)  # 5: no longer feasible
            continue
        policy, phase = _choose(experiment, learner, context, solution, "explore" if problem.exploring else "exploit")
        played = play(policy, turn)  # 8
        belief = learner.belief.update(played.episode.transitions, _keys(learner).update)  # 9
        warning = calibration_warning(belief)
        judgement = Judgement(phase, problem, solution, warning, perf_counter() - started)
        record = make_record(experiment.task, turn.episode, played, judgement)
        learner = _change(
            learner, belief=belief, solver=memory, episode=learner.episode + 1, contradicted=warning is not None
        )  # 10
        yield Outcome(record, played.episode, learner, policy, shortfall)
        shortfall = None
        if record.ended == "fault":
            return

    if not (learner.finished or learner.contradicted):
        yield final_episode(experiment, learner, play)  # 12


def final_episode(experiment: Experiment, learner: Learner, play: Play) -> Outcome:
    """One episode of the greedy policy, from which nothing is learned."""
    started, turn = perf_counter(), _turn(learner)
    context = context_of(experiment, learner, final=True)
    problem, solution, _ = _solve(experiment, learner, context)
    policy = experiment.method.policy(context, solution)
    played = play(policy, turn)
    judgement = Judgement("final", problem, solution, None, perf_counter() - started)
    record = make_record(experiment.task, turn.episode, played, judgement)
    finished = _change(learner, finished=record.ended != "fault")
    return Outcome(record, played.episode, finished, policy, None)


def greedy_policy(experiment: Experiment, learner: Learner) -> Policy:
    """Problem (1) without the exploration constraint: the policy that is returned in the end."""
    context = context_of(experiment, learner, final=True)
    _, solution, _ = _solve(experiment, learner, context)
    return experiment.method.policy(context, solution)


def calibration_warning(belief: Belief) -> str | None:
    """That the confidence sets so far have no common point; None where they have, or where there are none."""
    return belief.calibration_warning() if isinstance(belief, Calibrated) else None


def _goes_on(experiment: Experiment, learner: Learner) -> bool:
    run = experiment.settings.run
    learned = experiment.explores and not learner.exploring
    unfinished = not learner.finished and int(learner.episode) < run.episodes
    stopped = run.inconsistent == "stop" and bool(learner.contradicted)
    return unfinished and not stopped and not (learned and run.stop_when_learned)


def _choose(
    experiment: Experiment, learner: Learner, context: Context, solution: Solution, phase: Phase
) -> tuple[Policy, Phase]:
    """The method's policy; the prior's where the data contradict what the method relies on."""
    if not learner.contradicted:
        return experiment.method.policy(context, solution), phase
    assert experiment.task.prior.policy is not None  # the experiment was refused otherwise
    return experiment.task.prior.policy, "prior"


def _shortfall(threshold: float, solution: Solution) -> Shortfall:
    return Shortfall(threshold, float(solution.evaluation.information) * threshold / solution.demand)


# Folded into the seed these give keys of their own: no episode has these numbers.
_SAMPLES, _SOLVER, _BELIEF = 2**31 - 1, 2**31 - 2, 2**31 - 3


def sample_key(key: PRNGKey) -> PRNGKey:
    """The key of a run's samples, the same in all its episodes."""
    return jax.random.fold_in(key, _SAMPLES)


class _Keys(NamedTuple):
    reset: PRNGKey
    solve: PRNGKey
    rollout: PRNGKey

    @property
    def update(self) -> PRNGKey:
        return jax.random.fold_in(self.reset, 1)


def _keys(learner: Learner) -> _Keys:
    """The randomness of one episode depends on the seed and its number only, hence not on how the run was resumed."""
    return _Keys(*jax.random.split(jax.random.fold_in(learner.key, learner.episode), 3))


def _turn(learner: Learner) -> Turn:
    keys = _keys(learner)
    seed = int(jax.random.bits(keys.reset, dtype=jnp.uint32)) >> 1  # some systems take 31 bits only
    return Turn(int(learner.episode), seed, keys.rollout)


STARTS = 8
"""Initial states that a problem has."""


def context_of(experiment: Experiment, learner: Learner, final: bool = False) -> Context:
    """What the method may use at this episode."""
    return Context(
        task=experiment.task,
        belief=learner.belief,
        settings=experiment.settings,
        episode=int(learner.episode),
        exploring=bool(learner.exploring) and not final,
        final=final,
        key=sample_key(learner.key),
        starts=draw_starts(experiment.task, jax.random.fold_in(_keys(learner).reset, 2)),
    )


def draw_starts(task: Task, key: PRNGKey) -> Float[Array, "K dx"]:
    """Initial states as the learner expects them; the true system is not asked."""
    return jnp.stack([jnp.asarray(task.start(each)) for each in jax.random.split(key, STARTS)])


def _solve(experiment: Experiment, learner: Learner, context: Context) -> tuple[Any, Solution, Any]:
    """Builds this episode's problem and solves it."""
    problem = experiment.method.problem(context)
    return problem, *experiment.solver.solve(problem, learner.solver, _keys(learner).solve)


def _change(learner: Learner, **fields: object) -> Learner:
    """The learner with these fields replaced."""
    names = list(fields)
    values = [jnp.asarray(value) if isinstance(value, bool) else value for value in fields.values()]
    return eqx.tree_at(lambda tree: [getattr(tree, name) for name in names], learner, values)
