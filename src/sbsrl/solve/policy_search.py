"""Problem (1) over a class of policies, as the paper analyses it: whole episodes, from the initial distribution.

pi_n = argmax over Pi of J_r(pi, mu_n)
subject to  J_c(pi, f_n^m) <= d - Delta_zeta  for all m,   J_{s_n}(pi, mu_n) >= d_sigma^n
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._jax import PLAN
from ..errors import UserError
from ..policies import Parameters, PolicyClass
from ..policy import Metrics, Policy
from ..problem import Evaluation, Penalties, Problem, over_costs
from ..task import Task
from ..types import Action, Index, PRNGKey, Scalar, State
from ..validation import Whole, declared, validate
from .expectation import (
    Expectation,
    Quadrature,
    make_expectation,
    measured_error,
    policy_costs,
    policy_excess,
    policy_returns,
    quadrature_error,
)
from .icem import ICEM, check_population
from .protocol import Solution
from .scoring import ClosedLoop

__all__ = [
    "ClassPolicy",
    "ClassSearch",
    "EvolutionSearch",
    "EvolutionSettings",
    "ExactSearch",
    "ExactSettings",
    "Found",
    "NominalReturns",
    "PolicySearchSettings",
    "cost_errors",
    "evaluate_policy",
    "surplus_costs",
]


BLOCK = 512
"""Samples that are evaluated at once."""


class ClassPolicy(eqx.Module):
    """pi_theta. It has no state."""

    policies: PolicyClass
    theta: Parameters

    def init(self) -> tuple[()]:
        return ()

    def act(self, x: State, state: tuple[()], key: PRNGKey) -> tuple[Action, tuple[()], Metrics]:
        return _act(self.policies, self.theta, x), (), {}


@eqx.filter_jit
def _act(policies: PolicyClass, theta: Parameters, x: State) -> Action:
    return policies(theta.astype(x.dtype), x)


class ClassSearch(eqx.Module):
    """What all searches of a class have: its policies, and how the expectation over an episode is taken."""

    policies: PolicyClass
    expectation: Expectation

    def init(self, key: PRNGKey) -> tuple[()]:
        return ()

    def costs(self, problem: Problem, policy: Policy, noise: Float[Array, " dx"], key: PRNGKey) -> Float[Array, "M k"]:
        """J_c of one of its policies on every sample. Noise and initial states are in the expectation."""
        assert isinstance(policy, ClassPolicy)
        return class_costs(problem, self.expectation, self.policies, policy.theta)


class NominalReturns(NamedTuple):
    """What the nominal dynamics says of every policy of a finite class."""

    rewards: Float[Array, " P"]
    information: Float[Array, " P"]


class Found(NamedTuple):
    """Where in the lattice the solution is, and what is known of it."""

    place: Index
    evaluation: Evaluation
    evaluated: Scalar
    """Share of the pairs of policy and sample that had to be evaluated."""


class _Scan(NamedTuple):
    """Going through the policies, the best first."""

    position: Index
    probe: Int[Array, " q"]
    """The samples that were most binding lately: most policies that are not safe fail on one of them."""
    violation: Scalar
    """Of the last policy that was looked at."""
    asked: Index


class ExactSearch(ClassSearch):
    """The exact solution for a finite class: policies in the order of their reward, until one is safe on every sample.

    Those that see enough come first. If none of them is safe, Problem (1) is infeasible, and that is proved, not only
    not found; the solution is then the greedy policy.
    """

    probes: int = eqx.field(static=True, default=8)
    block: int = eqx.field(static=True, default=BLOCK)
    """Samples, or policies on the nominal dynamics, that are evaluated at once."""

    def solve(self, problem: Problem, state: tuple[()], key: PRNGKey) -> tuple[Solution, tuple[()]]:
        found = self.search(problem)
        policy = ClassPolicy(self.policies, jnp.asarray(np.asarray(self.policies.lattice())[int(found.place)]))
        errors = cost_errors(problem, self.expectation, self.policies, policy.theta)
        metrics = {"evaluated": found.evaluated, **errors}
        return Solution(policy, found.evaluation, float(problem.threshold), metrics), ()

    @eqx.filter_jit
    def search(self, problem: Problem) -> Found:
        """The policy of the lattice that solves Problem (1)."""
        lattice, nominal = self.policies.lattice(), self.nominal_returns(problem)
        enough = nominal.information >= problem.threshold
        rewards = nominal.rewards
        ranked = jnp.lexsort((-rewards, ~enough)).astype(jnp.int32)  # those that see enough first, then by reward
        size = problem.constraint_count
        if size == 0:
            best, violation, share = ranked[0], jnp.zeros((), PLAN), jnp.zeros((), PLAN)
        else:
            end = self._scan(problem, lattice[ranked])
            best, violation = jax.lax.cond(
                end.violation <= 0,
                lambda: (ranked[end.position - 1], end.violation),
                lambda: self._least_violating(problem),
            )
            asked = jnp.where(end.violation > 0, 1, end.asked / (size * len(lattice)))  # without a safe one, all are
            share = jnp.minimum(asked, 1).astype(PLAN)
        return Found(best, Evaluation(rewards[best], violation, nominal.information[best]), share)

    def nominal_returns(self, problem: Problem) -> NominalReturns:
        """J_r and J_s of all policies."""
        rewards, information = jax.lax.map(
            lambda theta: policy_returns(problem, self.expectation, self.policies, theta),
            self.policies.lattice(),
            batch_size=self.block,
        )
        return NominalReturns(rewards, information)

    def excesses(self, problem: Problem, theta: Parameters, members: Int[Array, " q"]) -> Float[Array, " q"]:
        """By how much one policy exceeds the bounds on these samples."""
        one = lambda m: policy_excess(problem, self.expectation, self.policies, theta, m).beyond  # noqa: E731
        return jax.lax.map(one, members, batch_size=self.block)

    def violations(self, problem: Problem) -> Float[Array, " P"]:
        """max_m of the excess of every policy: 0 for those in Pi_safe^n."""
        every = jnp.arange(problem.constraint_count, dtype=jnp.int32)
        return jax.lax.map(lambda theta: jnp.max(self.excesses(problem, theta, every)), self.policies.lattice())

    def _scan(self, problem: Problem, ranked: Float[Array, "P p"]) -> _Scan:
        """The first safe policy is the one before `position`; if there is none, the violation stays positive."""
        size = problem.constraint_count
        every = jnp.arange(size, dtype=jnp.int32)

        def look(scan: _Scan) -> _Scan:
            theta = ranked[scan.position]
            probed = jnp.max(self.excesses(problem, theta, scan.probe))

            def everywhere() -> tuple[Scalar, Int[Array, " q"], Index]:
                hinges = self.excesses(problem, theta, every)
                binding = jax.lax.top_k(hinges, len(scan.probe))[1].astype(jnp.int32)
                return jnp.max(hinges), binding, jnp.asarray(size, jnp.int32)

            nothing = jnp.zeros((), jnp.int32)
            violation, probe, asked = jax.lax.cond(probed > 0, lambda: (probed, scan.probe, nothing), everywhere)
            return _Scan(scan.position + 1, probe, violation, scan.asked + asked + len(scan.probe))

        start = _Scan(
            position=jnp.zeros((), jnp.int32),
            probe=every[: min(self.probes, size)],
            violation=jnp.full((), jnp.inf, PLAN),
            asked=jnp.zeros((), jnp.int32),
        )
        return jax.lax.while_loop(lambda s: (s.violation > 0) & (s.position < len(ranked)), look, start)

    def _least_violating(self, problem: Problem) -> tuple[Index, Scalar]:
        """No policy is safe on all samples: the one whose worst sample is least violated."""
        violations = self.violations(problem)
        best = jnp.argmin(violations).astype(jnp.int32)
        return best, violations[best]


WEIGHTS = Penalties(cost=1000.0, exploration=10.0)
"""Of costs in units of the cost, and of information in hundredths of what is demanded."""


class EvolutionSearch(ClassSearch):
    """For parametric policies: iCEM with parameters in the place of actions. That it finds nothing is no proof."""

    planner: ICEM

    @classmethod
    def create(
        cls, policies: PolicyClass, expectation: Expectation, candidates: int, elites: int, iterations: int
    ) -> "EvolutionSearch":
        """A search of so many candidates in the first of so many iterations."""
        planner = ICEM(
            policies.low,
            policies.high,
            1,
            candidates,
            elites,
            iterations,
            WEIGHTS,
            spread=1.0,
            scoring=ClosedLoop(policies, expectation),
        )
        return cls(policies, expectation, planner)

    def solve(self, problem: Problem, state: tuple[()], key: PRNGKey) -> tuple[Solution, tuple[()]]:
        memory = self.planner.init(problem.constraint_count)
        plan, _ = self.planner.plan(problem, problem.starts[0], memory, key)
        theta = plan.actions[0]
        evaluation = evaluate_policy(problem, self.expectation, self.policies, theta)
        policy = ClassPolicy(self.policies, theta)
        metrics = {"evaluated": plan.evaluated, **cost_errors(problem, self.expectation, self.policies, theta)}
        return Solution(policy, evaluation, float(problem.threshold), metrics), ()


@eqx.filter_jit
def evaluate_policy(problem: Problem, expectation: Expectation, policies: PolicyClass, theta: Parameters) -> Evaluation:
    """All that Problem (1) asks of a policy, on every sample."""
    reward, information = policy_returns(problem, expectation, policies, theta)
    if problem.constraint_count == 0:
        return Evaluation(reward, jnp.zeros_like(reward), information)
    beyond = over_costs(surplus_costs(problem, expectation, policies, theta)[None]).beyond
    return Evaluation(reward, jnp.max(beyond, initial=0), information)


@eqx.filter_jit
def surplus_costs(
    problem: Problem, expectation: Expectation, policies: PolicyClass, theta: Parameters
) -> Float[Array, " C"]:
    """J_c - d + Delta_zeta of every safety constraint, the largest over all costs."""
    return jnp.max(class_costs(problem, expectation, policies, theta) - problem.bounds[None], axis=1)


@eqx.filter_jit
def class_costs(
    problem: Problem, expectation: Expectation, policies: PolicyClass, theta: Parameters
) -> Float[Array, "C k"]:
    """J_c of every safety constraint and every cost."""
    every = jnp.arange(problem.constraint_count, dtype=jnp.int32)
    costs = lambda m: policy_costs(problem, expectation, policies, theta, m)  # noqa: E731
    return jax.lax.map(costs, every, batch_size=min(BLOCK, len(every)))


def cost_errors(problem: Problem, expectation: Expectation, policies: PolicyClass, theta: Parameters) -> Metrics:
    """What J_c of a policy may be off by, for the ledger; nothing where nobody can tell."""
    if not isinstance(expectation, Quadrature) or problem.constraint_count == 0:
        return {}
    off = measured_error(problem, expectation, policies, theta, surplus_costs(problem, expectation, policies, theta))
    return {"quadrature_error": float(off.quadrature), "leaving": float(off.leaving)}


@dataclass(frozen=True)
class PolicySearchSettings:
    """What all solvers that search a class of policies have in common."""

    def policies(self, task: Task) -> PolicyClass:
        if task.policies is None:
            raise UserError(f"{task.name} has no class of policies to search; use solver=icem, which plans actions.")
        return task.policies

    def cost_error(self, task: Task) -> float:
        """By how much a computed J_c may be off; the tightening must cover it in addition to Delta_zeta."""
        return quadrature_error(task) if isinstance(make_expectation(task), Quadrature) else 0.0

    def against_safety(self, task: Task) -> Iterator[str]:
        if not isinstance(make_expectation(task), Quadrature):
            yield "expected costs are estimated from scenarios."

    def against_optimality(self, task: Task) -> Iterator[str]:
        yield "Problem (1) is solved by search, so that infeasibility is evidence and not proof."


@dataclass(frozen=True)
class ExactSettings(PolicySearchSettings):
    """Tries every policy of the task's lattice: what it calls infeasible is infeasible."""

    name: ClassVar[str] = "exact"

    def create(self, task: Task) -> ExactSearch:
        return ExactSearch(self.policies(task), make_expectation(task))

    def against_optimality(self, task: Task) -> Iterator[str]:
        yield from ()


@dataclass(frozen=True)
class EvolutionSettings(PolicySearchSettings):
    """Searches the task's policies by iCEM over their parameters."""

    name: ClassVar[str] = "evolution"

    candidates: int = declared(Whole(4, 1_000_000), 504, "parameter vectors in the first iteration")
    elites: int = declared(Whole(2, 100_000), 24, "best vectors that the next iteration is fitted to")
    iterations: int = declared(Whole(1, 1000), 4, "iterations per problem")

    def __post_init__(self) -> None:
        validate(self, "solver.")
        check_population(self.candidates, self.elites)

    def create(self, task: Task) -> EvolutionSearch:
        policies, expectation = self.policies(task), make_expectation(task)
        return EvolutionSearch.create(policies, expectation, self.candidates, self.elites, self.iterations)
