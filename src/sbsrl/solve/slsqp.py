"""Problem (1) for parametric policies by gradients through the sampled dynamics.

Sequential quadratic programming (SLSQP) from several starts. Of the M constraints only those of a working set are
passed on: the samples that bind at the start, then those that the last solution violates, until it violates none.
Derivatives are taken forwards, one pass per parameter: the parameters are few, and every kind of sample allows it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import minimize

from .._jax import EXACT, PLAN
from ..policies import Parameters
from ..problem import Evaluation, Problem
from ..task import Task
from ..types import PRNGKey
from .expectation import make_expectation, policy_costs, policy_returns
from .policy_search import (
    ClassPolicy,
    ClassSearch,
    PolicySearchSettings,
    cost_errors,
    evaluate_policy,
    surplus_costs,
)
from .protocol import Solution

__all__ = ["SLSQPSettings", "SequentialSearch"]

SLACK = 1e-3
"""Constraints are asked for with this much to spare, in which rounding is lost."""

FLAT = 1e-5
"""Improvements below this are not sought: returns are computed in single precision."""


class SequentialSearch(ClassSearch):
    """The best of the solutions from several starts that is safe on every sample, and sees enough if any does."""

    starts: int = eqx.field(static=True, default=4)
    joining: int = eqx.field(static=True, default=8)
    """Samples that join the working set at once."""
    rounds: int = eqx.field(static=True, default=8)

    def solve(self, problem: Problem, state: tuple[()], key: PRNGKey) -> tuple[Solution, tuple[()]]:
        tries = [self._climb(problem, start) for start in self._starting_points(key)]
        best = max(tries, key=lambda found: _rank(found.evaluation, float(problem.threshold)))
        policy = ClassPolicy(self.policies, best.theta)
        errors = cost_errors(problem, self.expectation, self.policies, best.theta)
        return Solution(policy, best.evaluation, float(problem.threshold), errors), ()

    def _starting_points(self, key: PRNGKey) -> Float[np.ndarray, "s p"]:
        """The middle of the box, and random points."""
        low, high = np.array(self.policies.low), np.array(self.policies.high)
        shares = np.asarray(jax.random.uniform(key, (self.starts - 1, len(low)), EXACT))
        return np.concatenate([(low + high)[None] / 2, low + shares * (high - low)])

    def _climb(self, problem: Problem, theta: Float[np.ndarray, " p"]) -> "_Climbed":
        """From one start, with a growing working set; the best of all points it came to."""
        asked = np.array([], np.int32)
        seen = []
        for _ in range(self.rounds + 1):
            seen.append(_Climbed(jnp.asarray(theta, PLAN), self._evaluate(problem, theta)))
            if len(seen) > self.rounds or (len(seen) > 1 and seen[-1].evaluation.violation <= 0):
                break
            surplus = np.asarray(self._surplus(problem, jnp.asarray(theta)))
            worst = np.argsort(-surplus)[: self.joining].astype(np.int32)
            asked = np.union1d(asked, worst).astype(np.int32)
            theta = self._improve(problem, theta, asked)
        return max(seen, key=lambda found: _rank(found.evaluation, float(problem.threshold)))

    def _surplus(self, problem: Problem, theta: Parameters) -> Float[Array, " C"]:
        """J_c - d + Delta_zeta on every sample."""
        if problem.constraint_count == 0:
            return jnp.zeros(0, PLAN)
        return surplus_costs(problem, self.expectation, self.policies, theta)

    def _evaluate(self, problem: Problem, theta: Float[np.ndarray, " p"]) -> Evaluation:
        return evaluate_policy(problem, self.expectation, self.policies, jnp.asarray(theta, PLAN))

    def _improve(
        self, problem: Problem, theta: Float[np.ndarray, " p"], asked: Int[np.ndarray, " q"]
    ) -> Float[np.ndarray, " p"]:
        """The solution for the samples of the working set."""
        members = jnp.asarray(np.resize(asked, self.joining * self.rounds))  # always as many: compiled once
        functions = _Remembered(lambda point: _functions(self, problem, jnp.asarray(point), members))
        spare = np.tile(np.asarray(problem.bounds, float) - SLACK, len(members))
        safe = {"type": "ineq", "fun": lambda t: spare - functions(t)[0][2:], "jac": lambda t: -functions(t)[1][2:]}
        constraints = [safe] if problem.constraint_count else []
        if problem.threshold > 0:
            unit = float(problem.threshold)
            seen = {
                "type": "ineq",
                "fun": lambda t: functions(t)[0][1] / unit - 1 - SLACK,
                "jac": lambda t: functions(t)[1][1] / unit,
            }
            constraints.append(seen)
        found = minimize(
            lambda t: -functions(t)[0][0],
            theta,
            jac=lambda t: -functions(t)[1][0],
            bounds=list(zip(self.policies.low, self.policies.high, strict=True)),
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 50, "ftol": FLAT},
        )
        return np.clip(found.x, self.policies.low, self.policies.high)


class _Climbed(NamedTuple):
    theta: Parameters
    evaluation: Evaluation


def _rank(evaluation: Evaluation, threshold: float) -> tuple[bool, bool, float]:
    """Safe before not; among the safe, seeing enough before not, then by reward; among the others by violation."""
    violation = float(evaluation.violation)
    if violation > 0:
        return False, False, -violation
    return True, float(evaluation.information) >= threshold, float(evaluation.value)


class _Remembered:
    """A function that does not compute its last value again: the optimiser asks for value and slope one by one."""

    def __init__(self, function: Callable[[Float[np.ndarray, " p"]], tuple[Array, Array]]) -> None:
        self.function = function
        self.last: tuple[bytes, tuple[np.ndarray, np.ndarray]] | None = None

    def __call__(self, point: Float[np.ndarray, " p"]) -> tuple[np.ndarray, np.ndarray]:
        name = point.tobytes()
        if self.last is None or self.last[0] != name:
            values, slopes = self.function(point)
            self.last = name, (np.asarray(values, float), np.asarray(slopes, float))
        return self.last[1]


@eqx.filter_jit
def _functions(
    search: SequentialSearch, problem: Problem, theta: Parameters, members: Int[Array, " q"]
) -> tuple[Float[Array, " v"], Float[Array, "v p"]]:
    """J_r, J_s, and every cost on these samples, with their derivatives."""

    def values(theta: Parameters) -> Float[Array, " v"]:
        reward, information = policy_returns(problem, search.expectation, search.policies, theta)
        nominal = jnp.stack([reward, information])
        if problem.constraint_count == 0:
            return nominal
        costs = lambda m: policy_costs(problem, search.expectation, search.policies, theta, m)  # noqa: E731
        return jnp.concatenate([nominal, jax.vmap(costs)(members).ravel()])

    return values(theta), jax.jacfwd(values)(theta)


@dataclass(frozen=True)
class SLSQPSettings(PolicySearchSettings):
    """Searches the task's policies by gradients through the sampled dynamics."""

    name: ClassVar[str] = "slsqp"

    def create(self, task: Task) -> SequentialSearch:
        return SequentialSearch(self.policies(task), make_expectation(task))
