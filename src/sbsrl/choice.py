"""What is played in an episode, and why: the solution of its problem, perhaps under watch, or the prior's policy."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ._jax import PLAN
from .belief.protocol import SideBySide
from .errors import UserError
from .learner import Experiment, Learner, changed, keys_of
from .leaves import check_form
from .methods import Context
from .monitor import Monitored, before_takeover
from .policy import Policy
from .problem import Problem
from .record import Phase
from .risk import ATTEMPTS, Dial, Verdict, dial_of, tightened, tried
from .solve.protocol import Concluding, Retreating, Solution
from .systems.episode import Played
from .transitions import Episode
from .types import PRNGKey

__all__ = ["Chosen", "Refused", "Shortfall", "choose", "solve"]


class Refused(UserError):  # noqa: N818  (the promise is kept)
    """An episode that is not played, since no policy was found of which the risk could be promised."""


class Shortfall(NamedTuple):
    """An exploration constraint that cannot be met."""

    threshold: float
    attainable: float
    """What the best plan found promises, scaled to a whole episode."""


class Chosen(NamedTuple):
    """What is to be played in an episode, and why."""

    policy: Policy
    phase: Phase
    problem: Problem
    solution: Solution | None
    """None where nothing was solved."""
    memory: Any
    """Of the solver, for the next episode."""
    verdict: Verdict | None = None
    """What fresh draws say of the policy, if a risk was chosen."""

    @property
    def refused(self) -> bool:
        """Whether it must not be played, for its risk."""
        return self.verdict is not None and not self.verdict.passed

    def explores(self, tolerance: float) -> bool:
        """Whether the exploration constraint is met within the risk, or nothing was asked."""
        return self.solution is None or (self.solution.explores(tolerance) and not self.refused)

    def shortfall(self) -> Shortfall:
        assert self.solution is not None
        threshold = float(self.problem.threshold)
        promised = float(self.solution.evaluation.information)
        return Shortfall(threshold, promised * threshold / self.solution.demand)

    def own(self, played: Played) -> Episode:
        """What the policy did itself: of one under watch, the episode up to where another one took over."""
        return before_takeover(played) if isinstance(self.policy, Monitored) else played.episode

    @property
    def unwatched(self) -> Policy:
        """The policy without a monitor."""
        return self.policy.watched if isinstance(self.policy, Monitored) else self.policy


def choose(experiment: Experiment, learner: Learner, context: Context) -> Chosen:
    """The prior's policy where the data contradict what the method relies on; else the solution of Problem (1)."""
    return _fallback(experiment, learner, context) or solve(experiment, learner, context)


def solve(experiment: Experiment, learner: Learner, context: Context) -> Chosen:
    """The solution of Problem (1); where a risk was chosen, one that fresh draws of the belief let pass."""
    dial = dial_of(experiment.settings)
    if dial is None:
        return _solve(experiment, learner, context, keys_of(learner).solve)
    chosen = _within(dial, experiment, learner, context)
    if context.exploring or not chosen.refused:  # a refused one that was to explore is followed by one that is not
        return chosen
    return _instead(dial, experiment, learner, chosen)


def _within(dial: Dial, experiment: Experiment, learner: Learner, context: Context) -> Chosen:
    """Solves with a budget that is tightened until a policy passes; the last one after so many attempts.

    One that does not explore enough is not tried: the next problem has no exploration constraint.
    """
    keys, first = keys_of(learner), 0 if context.exploring else ATTEMPTS
    for i in range(ATTEMPTS):
        chosen = _solve(experiment, learner, context, jax.random.fold_in(keys.solve, i) if i else keys.solve)
        if context.exploring and not chosen.explores(context.settings.method.exploration_tolerance):
            return chosen
        fresh = jax.random.fold_in(keys.fresh, first + i)
        verdict = tried(experiment, context, chosen.problem, chosen.policy, dial, fresh)
        assert chosen.solution is not None
        said = verdict.metrics(i + 1, context.settings.method.tightening)
        solution = chosen.solution._replace(metrics={**chosen.solution.metrics, **said})
        chosen = chosen._replace(verdict=verdict, solution=solution)
        if verdict.passed:
            return chosen
        context, learner = tightened(context, verdict.excess), changed(learner, solver=chosen.memory)
    return chosen


def _instead(dial: Dial, experiment: Experiment, learner: Learner, refused: Chosen) -> Chosen:
    """The prior's policy, of which nothing is promised, in the place of one that nothing could be promised of."""
    prior, verdict = experiment.task.prior.policy, refused.verdict
    assert verdict is not None
    if prior is not None:
        return Chosen(prior, "prior", refused.problem, None, refused.memory)
    raise Refused(
        f"episode {int(learner.episode)} is refused: of {ATTEMPTS} policies none passed; the last one violates on "
        f"{verdict.violations} of {verdict.draws} functions drawn from the belief, and risk={dial.risk:g} admits "
        f"{dial.admitted} of {dial.draws}. Use a larger risk, offline data, or a prior that says more or has a policy."
    )


def _solve(experiment: Experiment, learner: Learner, context: Context, key: PRNGKey) -> Chosen:
    """Builds this episode's problem and solves it; in the end a solver may say what is returned."""
    problem, solver = experiment.method.problem(context), experiment.solver
    find = solver.conclude if context.final and isinstance(solver, Concluding) else solver.solve
    solution, memory = find(problem, learner.solver, key)
    check_form("the solver's state", learner.solver, memory)
    phase: Phase = "explore" if problem.exploring else "exploit"
    policy = _watched(experiment, context, experiment.method.policy(context, solution), memory)
    return Chosen(policy, phase, problem, solution, memory)


def _watched(experiment: Experiment, context: Context, policy: Policy, memory: Any) -> Policy:
    """The policy under the eyes of a monitor, if that was chosen, with samples that no solver has seen."""
    task, method, solver = experiment.task, experiment.settings.method, experiment.solver
    if not method.monitor:
        return policy
    samples = context.belief.samples(context.noise, method.samples)
    assert isinstance(samples, SideBySide)  # the experiment was refused otherwise
    assert isinstance(solver, Retreating)
    return Monitored(
        policies=(policy, *solver.ways_out(memory)),
        samples=samples,
        budgets=jnp.asarray(np.array([cost.budget for cost in task.costs], PLAN)),
        aggregations=tuple(cost.aggregation for cost in task.costs),
        horizon=task.horizon,
        every=method.monitor,
    )


def _fallback(experiment: Experiment, learner: Learner, context: Context) -> Chosen | None:
    """The prior's policy, where the data contradict what the method relies on."""
    if not learner.contradicted:
        return None
    assert experiment.task.prior.policy is not None  # the experiment was refused otherwise
    problem = experiment.method.problem(context)
    return Chosen(experiment.task.prior.policy, "prior", problem, None, learner.solver)
