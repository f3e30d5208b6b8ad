"""Algorithm 1 of the paper, the same for every belief, every solver and every method."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

from ._jax import PLAN
from .belief.protocol import Belief, Calibrated, Prepared, SideBySide, Tested
from .errors import UserError
from .leaves import check_form
from .ledger import Judgement, make_record
from .methods import DEFAULT, Context, Method
from .monitor import Monitored, before_takeover
from .policy import Metrics, Policy
from .problem import Problem
from .record import Phase, Record
from .settings import Settings
from .solve.protocol import Attentive, Concluding, Preparing, Solution, Solver
from .starts import draw_starts
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
    "calibration_warning",
    "context_of",
    "final_episode",
    "greedy_policy",
    "prepared",
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
    prepared: Flag
    """Whether the offline phase is over, for those who have one."""

    @classmethod
    def create(cls, experiment: Experiment, seed: int) -> "Learner":
        """The learner before anything was learned."""
        settings, first = experiment.settings, _offline_key(experiment.settings, jax.random.key(seed))
        belief = settings.belief.create(experiment.task, settings.run.episodes, jax.random.fold_in(first, _BELIEF))
        return cls(
            belief=belief,
            solver=experiment.solver.init(jax.random.fold_in(first, _SOLVER)),
            key=jax.random.key(seed),
            episode=jnp.zeros((), jnp.int32),
            exploring=jnp.asarray(experiment.explores),
            contradicted=jnp.asarray(calibration_warning(belief) is not None),
            finished=jnp.zeros((), bool),
            prepared=jnp.asarray(not (isinstance(belief, Prepared) or isinstance(experiment.solver, Preparing))),
        )


def _offline_key(settings: Settings, key: PRNGKey) -> PRNGKey:
    """The randomness of what is learned before the first episode."""
    seed = settings.run.offline_seed
    return key if seed < 0 else jax.random.key(seed)


def prepared(experiment: Experiment, learner: Learner) -> tuple[Learner, Metrics]:
    """The learner after the offline phase, and numbers about it; the learner itself if it has none, or had it.

    The belief learns from the offline data; then the solver from the belief, with the problem of the default method and
    nothing to explore: whatever is done with it later, what is learned offline is the same.
    """
    if learner.prepared:
        return learner, {}
    keys = jax.random.split(jax.random.fold_in(_offline_key(experiment.settings, learner.key), _OFFLINE), 5)
    belief, solver = learner.belief, learner.solver
    metrics: dict[str, Any] = {}
    if isinstance(belief, Prepared):
        belief, learned = belief.prepared(keys[0])
        metrics |= {f"belief/{name}": value for name, value in learned.items()}
        check_form("the belief", learner.belief, belief)
    if isinstance(experiment.solver, Preparing):
        context = Context(
            task=experiment.task,
            belief=belief,
            settings=experiment.settings,
            episode=0,
            exploring=False,
            final=False,
            key=keys[1],
            noise=keys[2],
            starts=draw_starts(experiment.task.start, STARTS, keys[3]),
        )
        solver, learned = experiment.solver.prepare(DEFAULT.problem(context), solver, keys[4])
        metrics |= {f"solver/{name}": value for name, value in learned.items()}
        check_form("the solver's state", learner.solver, solver)
    return _change(learner, belief=belief, solver=solver, prepared=True), metrics


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
    learner, _ = prepared(experiment, learner)
    while _goes_on(experiment, learner):
        started, keys = perf_counter(), _keys(learner)
        context = _context(experiment, learner, keys)
        chosen = _fallback(experiment, learner, context) or _solve(experiment, learner, context, keys)  # 6, 7
        if learner.exploring and not chosen.explores(experiment.settings.method.exploration_tolerance):
            shortfall = chosen.shortfall()
            learner = _change(learner, exploring=False, solver=chosen.memory)  # 5: no longer feasible
            continue
        played = play(chosen.policy, _turn(learner, keys))  # 8
        tested, tests = _tested(learner.belief, chosen, played, keys)
        belief = _updated(tested, played.episode, keys)  # 9
        warning = calibration_warning(belief)
        judgement = Judgement(chosen.phase, chosen.problem, chosen.solution, warning, perf_counter() - started, tests)
        record = make_record(experiment.task, int(learner.episode), played, judgement)
        learner = _change(
            learner,
            belief=belief,
            solver=_observed(experiment.solver, chosen, played),
            episode=learner.episode + 1,
            contradicted=warning is not None,
        )  # 10
        yield Outcome(record, played.episode, learner, chosen.policy, shortfall)
        shortfall = None
        if record.ended == "fault":
            return

    if not (learner.finished or learner.contradicted):
        yield final_episode(experiment, learner, play)  # 12


def final_episode(experiment: Experiment, learner: Learner, play: Play) -> Outcome:
    """One episode of the greedy policy, from which nothing is learned."""
    started, keys = perf_counter(), _keys(learner)
    chosen = _solve(experiment, learner, _context(experiment, learner, keys, final=True), keys)
    played = play(chosen.policy, _turn(learner, keys))
    judgement = Judgement("final", chosen.problem, chosen.solution, None, perf_counter() - started)
    record = make_record(experiment.task, int(learner.episode), played, judgement)
    finished = _change(learner, finished=record.ended != "fault")
    return Outcome(record, played.episode, finished, chosen.policy, None)


def greedy_policy(experiment: Experiment, learner: Learner) -> Policy:
    """Problem (1) without the exploration constraint: the policy that is returned in the end.

    Where the data contradict the belief this is the prior's policy; without one there is none to return.
    """
    context = context_of(experiment, learner, final=True)
    if not learner.contradicted:
        return _solve(experiment, learner, context, _keys(learner)).policy
    if experiment.task.prior.policy is None:
        raise UserError(
            f"there is no policy to return: {calibration_warning(learner.belief)}. Start anew with a prior that claims "
            "less."
        )
    return experiment.task.prior.policy


def calibration_warning(belief: Belief) -> str | None:
    """That the confidence sets so far have no common point; None where they have, or where there are none."""
    return belief.calibration_warning() if isinstance(belief, Calibrated) else None


def _goes_on(experiment: Experiment, learner: Learner) -> bool:
    run = experiment.settings.run
    learned = experiment.explores and not learner.exploring
    unfinished = not learner.finished and int(learner.episode) < run.episodes
    stopped = run.inconsistent == "stop" and bool(learner.contradicted)
    return unfinished and not stopped and not (learned and run.stop_when_learned)


class _Chosen(NamedTuple):
    """What is to be played in an episode, and why."""

    policy: Policy
    phase: Phase
    problem: Problem
    solution: Solution | None
    """None where nothing was solved."""
    memory: Any
    """Of the solver, for the next episode."""

    def explores(self, tolerance: float) -> bool:
        """Whether the exploration constraint is met, or nothing was asked."""
        return self.solution is None or self.solution.explores(tolerance)

    def shortfall(self) -> Shortfall:
        assert self.solution is not None
        threshold = float(self.problem.threshold)
        promised = float(self.solution.evaluation.information)
        return Shortfall(threshold, promised * threshold / self.solution.demand)


def _solve(experiment: Experiment, learner: Learner, context: Context, keys: "_Keys") -> _Chosen:
    """Builds this episode's problem and solves it; in the end a solver may say what is returned."""
    problem, solver = experiment.method.problem(context), experiment.solver
    solve = solver.conclude if context.final and isinstance(solver, Concluding) else solver.solve
    solution, memory = solve(problem, learner.solver, keys.solve)
    check_form("the solver's state", learner.solver, memory)
    phase: Phase = "explore" if problem.exploring else "exploit"
    policy = _watched(experiment, context, experiment.method.policy(context, solution), memory)
    return _Chosen(policy, phase, problem, solution, memory)


def _watched(experiment: Experiment, context: Context, policy: Policy, memory: Any) -> Policy:
    """The policy under the eyes of a monitor, if that was chosen, with samples that no solver has seen."""
    task, method, solver = experiment.task, experiment.settings.method, experiment.solver
    if not method.monitor:
        return policy
    samples = context.belief.samples(context.noise, method.samples)
    assert isinstance(samples, SideBySide)  # the experiment was refused otherwise
    assert isinstance(solver, Preparing)
    return Monitored(
        policy=policy,
        prior=solver.learned(memory)["prior"],
        samples=samples,
        budgets=jnp.asarray(np.array([cost.budget for cost in task.costs], PLAN)),
        aggregations=tuple(cost.aggregation for cost in task.costs),
        horizon=task.horizon,
        every=method.monitor,
    )


def _fallback(experiment: Experiment, learner: Learner, context: Context) -> _Chosen | None:
    """The prior's policy, where the data contradict what the method relies on."""
    if not learner.contradicted:
        return None
    assert experiment.task.prior.policy is not None  # the experiment was refused otherwise
    problem = experiment.method.problem(context)
    return _Chosen(experiment.task.prior.policy, "prior", problem, None, learner.solver)


def _tested(belief: Belief, chosen: _Chosen, played: Played, keys: "_Keys") -> tuple[Belief, Metrics]:
    """The belief after a comparison of what it predicted for the policy with what happened, if it makes one.

    A policy under watch is compared for as long as it acted itself.
    """
    if not isinstance(belief, Tested):
        return belief, {}
    policy = chosen.policy.policy if isinstance(chosen.policy, Monitored) else chosen.policy
    after, metrics = belief.tested(policy, _own(chosen, played), keys.test)
    check_form("the belief", belief, after)
    return after, metrics


def _own(chosen: _Chosen, played: Played) -> Episode:
    """What the solver's policy did itself: of one under watch, the episode up to where the prior policy took over."""
    return before_takeover(played) if isinstance(chosen.policy, Monitored) else played.episode


def _observed(solver: Solver, chosen: _Chosen, played: Played) -> Any:
    """What the solver remembers, after it was told of the episode of its policy, if it wants to know."""
    if chosen.solution is None or not isinstance(solver, Attentive):
        return chosen.memory
    after = solver.observed(chosen.memory, _own(chosen, played))
    check_form("the solver's state", chosen.memory, after)
    return after


def _updated(belief: Belief, episode: Episode, keys: "_Keys") -> Belief:
    """What is believed after an episode."""
    after = belief.update(episode.transitions, keys.update)
    check_form("the belief", belief, after)
    return after


# Folded into the seed these give keys of their own: no episode has these numbers.
_SAMPLES, _SOLVER, _BELIEF, _OFFLINE = 2**31 - 1, 2**31 - 2, 2**31 - 3, 2**31 - 4


@jax.jit
def sample_key(key: PRNGKey) -> PRNGKey:
    """The key of a run's samples, the same in all its episodes."""
    return jax.random.fold_in(key, _SAMPLES)


class _Keys(NamedTuple):
    """All randomness of one episode."""

    reset: UInt32[Array, ""]
    """A number for the true system's reset."""
    solve: PRNGKey
    rollout: PRNGKey
    update: PRNGKey
    starts: PRNGKey
    noise: PRNGKey
    test: PRNGKey


def _keys(learner: Learner) -> _Keys:
    """It depends on the run's seed and the episode's number only, hence not on how the run was resumed."""
    return _split(learner.key, learner.episode)


@jax.jit
def _split(key: PRNGKey, episode: Index) -> _Keys:
    reset, solve, rollout = jax.random.split(jax.random.fold_in(key, episode), 3)
    update, starts, noise, test = (jax.random.fold_in(reset, i) for i in (1, 2, 3, 4))
    return _Keys(jax.random.bits(reset, dtype=jnp.uint32), solve, rollout, update, starts, noise, test)


def _turn(learner: Learner, keys: _Keys) -> Turn:
    return Turn(int(learner.episode), int(keys.reset) >> 1, keys.rollout)  # some systems take 31 bits only


STARTS = 8
"""Initial states that a problem has."""


def context_of(experiment: Experiment, learner: Learner, final: bool = False) -> Context:
    """What the method may use at this episode."""
    return _context(experiment, learner, _keys(learner), final)


def _context(experiment: Experiment, learner: Learner, keys: _Keys, final: bool = False) -> Context:
    return Context(
        task=experiment.task,
        belief=learner.belief,
        settings=experiment.settings,
        episode=int(learner.episode),
        exploring=bool(learner.exploring) and not final,
        final=final,
        key=sample_key(learner.key),
        noise=keys.noise,
        starts=draw_starts(experiment.task.start, STARTS, keys.starts),
    )


def _change(learner: Learner, **fields: object) -> Learner:
    """The learner with these fields replaced."""
    names = list(fields)
    values = [jnp.asarray(value) if isinstance(value, bool) else value for value in fields.values()]
    return eqx.tree_at(lambda tree: [getattr(tree, name) for name in names], learner, values)
