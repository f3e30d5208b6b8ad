"""Problem (1) over a class of policies, as the paper analyses it: whole episodes, from the initial distribution.

pi_n = argmax over Pi of J_r(pi, mu_n)
subject to  J_c(pi, f_n^m) <= d - Delta_zeta  for all m,   J_{s_n}(pi, mu_n) >= d_sigma^n
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._jax import PLAN
from ..policies import Parameters, PolicyClass
from ..problem import Evaluation, Problem
from ..types import Action, Index, PRNGKey, Scalar, State
from .icem import ICEM
from .judge import ClosedLoop
from .protocol import Decision, Solution
from .returns import Returns, policy_excess, policy_returns

__all__ = ["ClassPolicy", "EvolutionSearch", "ExactSearch", "Found", "JudgedPolicies", "evaluate_policy"]


BLOCK = 512
"""Samples that are evaluated at once."""


class ClassPolicy(eqx.Module):
    """pi_theta, with what its solver knows about it. It has no state of its own."""

    problem: Problem
    policies: PolicyClass
    theta: Parameters
    evaluation: Evaluation
    evaluated: Scalar

    def act(self, x: State, state: None, key: PRNGKey) -> tuple[Decision, None]:
        action, gained = _act(self.policies, self.theta, self.problem, x)
        return Decision(action, self.evaluation, gained, self.evaluated), None


@eqx.filter_jit
def _act(policies: PolicyClass, theta: Parameters, problem: Problem, x: State) -> tuple[Action, Scalar]:
    action = policies(theta.astype(x.dtype), x)
    return action, problem.uncertainty(x, action)


class JudgedPolicies(NamedTuple):
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


class ExactSearch(eqx.Module):
    """The exact solution for a finite class: policies in the order of their reward, until one is safe on every sample.

    Those that see enough come first. If none of them is safe, Problem (1) is infeasible, and that is proved, not only
    not found; the solution is then the greedy policy.
    """

    policies: PolicyClass
    returns: Returns
    probes: int = eqx.field(static=True, default=8)
    block: int = eqx.field(static=True, default=BLOCK)
    """Samples, or policies on the nominal dynamics, that are evaluated at once."""

    def solve(self, problem: Problem, x: State, key: PRNGKey) -> Solution:
        found = self.search(problem)
        theta = self.policies.lattice()[found.place]
        policy = ClassPolicy(problem, self.policies, theta, found.evaluation, found.evaluated)
        return Solution(policy, x, None, found.evaluation, float(problem.threshold))

    @eqx.filter_jit
    def search(self, problem: Problem) -> Found:
        """The policy of the lattice that solves Problem (1)."""
        lattice, judged = self.policies.lattice(), self.judge(problem)
        enough = judged.information >= problem.threshold
        rewards = judged.rewards
        ranked = jnp.lexsort((-rewards, ~enough)).astype(jnp.int32)  # those that see enough first, then by reward
        size = problem.sample_count
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
        return Found(best, Evaluation(rewards[best], violation, judged.information[best]), share)

    def judge(self, problem: Problem) -> JudgedPolicies:
        """J_r and J_s of all policies."""
        rewards, information = jax.lax.map(
            lambda theta: policy_returns(problem, self.returns, self.policies, theta),
            self.policies.lattice(),
            batch_size=self.block,
        )
        return JudgedPolicies(rewards, information)

    def excesses(self, problem: Problem, theta: Parameters, members: Int[Array, " q"]) -> Float[Array, " q"]:
        """The excess of one policy on these samples."""
        return jax.lax.map(
            lambda m: policy_excess(problem, self.returns, self.policies, theta, m), members, batch_size=self.block
        )

    def violations(self, problem: Problem) -> Float[Array, " P"]:
        """max_m of the excess of every policy: 0 for those in Pi_safe^n."""
        every = jnp.arange(problem.sample_count, dtype=jnp.int32)
        return jax.lax.map(lambda theta: jnp.max(self.excesses(problem, theta, every)), self.policies.lattice())

    def _scan(self, problem: Problem, ranked: Float[Array, "P k"]) -> _Scan:
        """The first safe policy is the one before `position`; if there is none, the violation stays positive."""
        size = problem.sample_count
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


class EvolutionSearch(eqx.Module):
    """For parametric policies: iCEM with parameters in the place of actions. That it finds nothing is no proof."""

    policies: PolicyClass
    returns: Returns
    planner: ICEM

    @classmethod
    def create(
        cls, policies: PolicyClass, returns: Returns, candidates: int, elites: int, iterations: int
    ) -> "EvolutionSearch":
        """A search of so many candidates in the first of so many iterations."""
        judge = ClosedLoop(policies, returns)
        return cls(
            policies,
            returns,
            ICEM(policies.low, policies.high, 1, candidates, elites, iterations, spread=1.0, judge=judge),
        )

    def solve(self, problem: Problem, x: State, key: PRNGKey) -> Solution:
        plan, _ = self.planner.plan(problem, x, self.planner.forget(problem.sample_count), key)
        theta = plan.actions[0]
        evaluation = evaluate_policy(problem, self.returns, self.policies, theta)
        policy = ClassPolicy(problem, self.policies, theta, evaluation, plan.evaluated)
        return Solution(policy, x, None, evaluation, float(problem.threshold))


@eqx.filter_jit
def evaluate_policy(problem: Problem, returns: Returns, policies: PolicyClass, theta: Parameters) -> Evaluation:
    """All that Problem (1) asks of a policy, on every sample."""
    reward, information = policy_returns(problem, returns, policies, theta)
    if problem.sample_count == 0:
        return Evaluation(reward, jnp.zeros_like(reward), information)
    every = jnp.arange(problem.sample_count, dtype=jnp.int32)
    excesses = jax.lax.map(
        lambda m: policy_excess(problem, returns, policies, theta, m), every, batch_size=min(BLOCK, len(every))
    )
    return Evaluation(reward, jnp.max(excesses, initial=0), information)
