"""The policy that plans anew at every control step, with the planner's memory and the information gathered so far."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from .._jax import PLAN
from ..problem import Problem
from ..types import Action, PRNGKey, Scalar, State
from .icem import ICEM, Memory, Plan
from .protocol import Decision, Solution

__all__ = ["PolicyState", "RecedingHorizon", "ReplanningSolver"]


class PolicyState(NamedTuple):
    """What the policy carries through an episode."""

    memory: Memory
    step: int
    gathered: Scalar
    """The information of the steps already taken: it counts towards the threshold."""


class RecedingHorizon(eqx.Module):
    """pi_n: at every step solve Problem (1) from where the system really is, and take the first action.

    The exploration constraint is on the whole episode. A plan of H steps with R > H still to go must gather its
    share H/R of what is missing; once nothing is missing, the policy is greedy for the rest of the episode.
    Near the end plans look beyond it, so that the episode does not end on the way into trouble; but only
    information that can still be gathered counts.
    """

    planner: ICEM
    problem: Problem
    episode_steps: int = eqx.field(static=True)
    """T."""

    def demand(self, state: PolicyState) -> Scalar:
        """The information that the next plan must promise."""
        share = min(1.0, self.planner.horizon / self.remaining(state))
        return share * jnp.maximum(self.problem.threshold - state.gathered, 0)

    def remaining(self, state: PolicyState) -> int:
        """R: steps until the episode ends."""
        return max(self.episode_steps - state.step, 1)

    def plan(self, x: State, state: PolicyState, key: PRNGKey) -> tuple[Plan, Memory]:
        problem = self.problem.demanding(self.demand(state), self.remaining(state))
        return self.planner.plan(problem, x, state.memory, key)

    def act(self, x: State, state: PolicyState, key: PRNGKey) -> tuple[Decision, PolicyState]:
        plan, memory = self.plan(x, state, key)
        gained = _step_information(self.problem, x, plan.actions[0])
        after = PolicyState(memory, state.step + 1, state.gathered + gained)
        return Decision(plan.actions[0], plan.evaluation, gained, plan.evaluated), after


class ReplanningSolver(eqx.Module):
    """Solves Problem (1) by a policy that replans at every step; its first plan says what can be said beforehand."""

    planner: ICEM
    episode_steps: int = eqx.field(static=True)
    """T."""

    def solve(self, problem: Problem, x: State, key: PRNGKey) -> Solution:
        """Plans once from x; the policy starts its own search from what was found."""
        policy = RecedingHorizon(self.planner, problem, self.episode_steps)
        nothing = PolicyState(self.planner.forget(problem.sample_count), 0, jnp.zeros((), PLAN))
        plan, _ = policy.plan(x, nothing, key)
        start = nothing._replace(memory=nothing.memory._replace(mean=plan.actions))
        demand = policy.demand(nothing)
        return Solution(policy, x, start, plan.evaluation, float(demand))


@eqx.filter_jit
def _step_information(problem: Problem, x: State, a: Action) -> Scalar:
    return problem.uncertainty(x.astype(PLAN), a)
