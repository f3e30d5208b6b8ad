"""One plan for a whole episode, followed with feedback: what a risk can be stated of (docs/risk.md)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax import EXACT, PLAN
from ..costs import charged, nothing_charged
from ..policy import Policy
from ..problem import Problem
from ..types import Actions, Flag, Index, PRNGKey, State
from .icem import ICEM, Memory
from .protocol import Solution
from .tracking import Regulator, Tracking

__all__ = ["EpisodePlanner", "Remembered", "episode_costs"]


class Remembered(NamedTuple):
    """What was found for the last problem: the next search begins there."""

    mean: Actions
    elites: Float[Array, "keep T da"]
    warm: Flag


class EpisodePlanner(eqx.Module):
    """Solves Problem (1) once for an episode, over plans of T steps that are followed with feedback."""

    planner: ICEM
    """Over whole episodes, with candidates that are `Tracked`."""
    regulator: Regulator

    def init(self, key: PRNGKey) -> Remembered:
        return Remembered(*self.planner.init(0)[:3])

    def solve(self, problem: Problem, state: Remembered, key: PRNGKey) -> tuple[Solution, Remembered]:
        """The best plan from the first of the initial states."""
        memory = Memory(*state, jnp.zeros(problem.constraint_count, PLAN))
        plan, after = self.planner.plan(problem, problem.starts[0], memory, key)
        policy = Tracking.of(problem, problem.starts[0], plan.actions, self.regulator)
        metrics = {"evaluated": plan.evaluated}
        return Solution(policy, plan.evaluation, float(problem.threshold), metrics), Remembered(*after[:3])

    def costs(self, problem: Problem, policy: Policy, noise: Float[Array, " dx"], key: PRNGKey) -> Float[Array, "M k"]:
        """What an episode costs on every sample, each from an initial state of its own, with noise in every step."""
        return episode_costs(problem, policy, noise, self.planner.horizon, key)


TOGETHER = 256
"""Samples on which an episode is played at once."""


@eqx.filter_jit
def episode_costs(
    problem: Problem, policy: Policy, noise: Float[Array, " dx"], horizon: int, key: PRNGKey
) -> Float[Array, "M k"]:
    """The costs of an episode of `policy` on sample m of the problem, from initial state m, for every m."""
    assert problem.samples is not None
    samples, how = problem.samples, problem.aggregations

    def one(m: Index, x: State, key: PRNGKey) -> Float[Array, " k"]:
        model = samples.member(m)

        def step(now: tuple[Array, Any, Array], key: PRNGKey) -> tuple[tuple[Array, Any, Array], None]:
            x, memory, costs = now
            act_key, noise_key = jax.random.split(key)
            a, memory, _ = policy.act(x, memory, act_key)
            a = a.astype(x.dtype)
            y = model(x, a) + noise.astype(x.dtype) * jax.random.normal(noise_key, x.shape, x.dtype)
            return (y, memory, charged(costs, model.costs(x, a, y).astype(PLAN)[None], how)), None

        begun = (x.astype(EXACT), policy.init(), nothing_charged(1, how))
        return jax.lax.scan(step, begun, jax.random.split(key, horizon))[0][-1][0]

    every = jnp.arange(len(samples), dtype=jnp.int32), problem.starts, jax.random.split(key, len(samples))
    return jax.lax.map(lambda each: one(*each), every, batch_size=min(TOGETHER, len(samples)))
