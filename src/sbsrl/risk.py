"""The risk dial: a policy is played only if fresh draws of the belief show that it seldom violates (docs/risk.md).

Once a policy is chosen, functions are drawn from the posterior that nobody has planned with, and an episode of the
policy is played on each. Given what was seen so far, these episodes are independent and, if the truth is a draw from
the belief, they are distributed as the episode to come: the count of violations bounds its risk (`theory/binomial.py`).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ._jax import PLAN
from .belief.protocol import Belief, Drawing
from .errors import UserError
from .learner import Experiment
from .methods import Context
from .policy import Metrics, Policy
from .problem import Problem
from .settings import Settings
from .solve.protocol import Solver, Trying
from .starts import draw_starts
from .task import Task
from .theory.binomial import admitted, draws_for, share_of_error, upper_bound
from .types import PRNGKey

__all__ = ["ATTEMPTS", "Dial", "Verdict", "check_risk", "dial_of", "tightened", "tried"]

ATTEMPTS = 5
"""Policies that are tried before an episode, with exploration; and as many without."""
TOGETHER = 1024
"""Functions that are drawn at once."""
AIM = 0.25
"""Share of the risk at which a policy that failed is to violate when the budget is tightened for the next attempt."""


class Dial(NamedTuple):
    """What is promised of every episode, and what it takes to show it."""

    risk: float
    alpha: float
    """The error probability of one test: that of the run, divided by how many tests there can be."""
    draws: int
    admitted: int
    """The most violations with which a policy passes."""


def dial_of(settings: Settings) -> Dial | None:
    """None where no risk was chosen."""
    method = settings.method
    if not method.risk:
        return None
    tests = 2 * ATTEMPTS * (settings.run.episodes + 1)  # with and without exploration; the final policy, too
    alpha = share_of_error(method.confidence, tests)
    draws = draws_for(method.risk, alpha)
    return Dial(method.risk, alpha, draws, admitted(draws, method.risk, alpha))


class Verdict(NamedTuple):
    """What fresh draws say of a policy."""

    dial: Dial
    draws: int
    """Fewer than the dial has if too many violated already."""
    violations: int
    excess: Float[np.ndarray, " k"]
    """By how much more each cost must be kept below its budget for the policy to pass with ease."""

    @property
    def passed(self) -> bool:
        return self.draws == self.dial.draws and self.violations <= self.dial.admitted

    @property
    def bound(self) -> float:
        """Above the risk of an episode, but for a probability of `dial.alpha`."""
        return upper_bound(self.violations, self.draws, self.dial.alpha)

    def metrics(self, attempts: int, tightening: tuple[float, ...]) -> Metrics:
        """For the ledger."""
        numbers = {
            "promised": self.dial.risk,
            "bound": self.bound,
            "violations": self.violations,
            "draws": self.draws,
            "attempts": attempts,
            "tightening": max(tightening),
        }
        return {f"risk/{name}": float(value) for name, value in numbers.items()}


def tried(
    experiment: Experiment, context: Context, problem: Problem, policy: Policy, dial: Dial, key: PRNGKey
) -> Verdict:
    """Episodes of the policy on functions drawn from the belief with this key, which must be new."""
    budgets = np.array([cost.budget for cost in experiment.task.costs])
    over = np.concatenate([*_until_too_many(experiment, context, problem, policy, dial, key)]) - budgets
    over = np.where(np.isnan(over), np.inf, over)  # what is not a number is not safe
    beyond = np.quantile(over, 1 - AIM * dial.risk, axis=0, method="higher")
    return Verdict(dial, len(over), int(np.sum(np.any(over > 0, axis=1))), np.maximum(beyond, 0.0))


def _until_too_many(
    experiment: Experiment, context: Context, problem: Problem, policy: Policy, dial: Dial, key: PRNGKey
) -> Iterator[Float[np.ndarray, "n k"]]:
    """The costs of as many episodes as the dial asks for, or of fewer if too many of these violate already."""
    costs_on = _costs(experiment.task, experiment.solver, context.belief, problem)
    budgets = np.array([cost.budget for cost in experiment.task.costs])
    size, violations = min(TOGETHER, dial.draws), 0
    for i in range(math.ceil(dial.draws / size)):
        costs = costs_on(policy, jax.random.fold_in(key, i), size)[: dial.draws - i * size]
        violations += int(np.sum(~np.all(costs <= budgets, axis=1)))
        yield costs
        if violations > dial.admitted:
            return


def _costs(
    task: Task, solver: Solver, belief: Belief, problem: Problem
) -> Callable[[Policy, PRNGKey, int], Float[np.ndarray, "n k"]]:
    """Plays a policy on so many fresh functions."""
    if not isinstance(belief, Drawing):
        raise UserError(
            "a risk is counted on functions drawn from the belief, and this one has no draws(); use risk=0."
        )
    assert isinstance(solver, Trying)  # the experiment was refused otherwise

    def costs(policy: Policy, key: PRNGKey, count: int) -> Float[np.ndarray, "n k"]:
        draw_key, start_key, noise_key = jax.random.split(key, 3)
        fresh = replace(
            problem,
            samples=belief.draws(draw_key, count),
            constraint="each",
            starts=draw_starts(task.start, count, start_key),
            bounds=jnp.zeros(len(task.costs), PLAN),
        )
        return np.asarray(solver.costs(fresh, policy, belief.noise(), noise_key), float)

    return costs


def tightened(context: Context, excess: Float[np.ndarray, " k"]) -> Context:
    """The same with budgets tightened by what a policy exceeded them by, at most half the way to the impossible."""
    task, settings = context.task, context.settings
    before = np.broadcast_to(settings.method.tightening, len(task.costs)).astype(float)
    most = np.array([cost.budget - cost.least(task.horizon) for cost in task.costs])
    after = np.minimum(before + excess, (before + most) / 2)
    method = replace(settings.method, tightening=tuple(after.tolist()))
    return replace(context, settings=replace(settings, method=method))


def check_risk(task: Task, settings: Settings, cautious: bool, solver: Solver) -> None:
    """Refuses a risk that cannot be shown, or that nothing would be done about."""
    risk = settings.method.risk
    if not risk:
        return
    if not settings.belief.calibrated:
        raise UserError(
            f"risk={risk:g} is counted on functions drawn from a posterior, and belief={settings.belief.name} has "
            "none; use belief=gp, or risk=0."
        )
    if not cautious:
        raise UserError(
            f"risk={risk:g} tightens the budget on samples until a policy passes, and this method does not keep it on "
            "every sample; use another method, or risk=0."
        )
    if not isinstance(solver, Trying):
        raise UserError(
            f"risk={risk:g} needs a policy that can be tried on whole episodes, and solver={settings.solver.name} "
            "makes none; use another solver, or risk=0."
        )
