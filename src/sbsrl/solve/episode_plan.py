"""One plan for a whole episode, followed with feedback: what a risk can be stated of (docs/risk.md).

A search over a whole episode ends in the basin where it begins: how often a pendulum swings before it stands is decided
early and does not change any more. So short searches are made from several beginnings, on few of the samples, and the
best of them is gone on with on all.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax import EXACT, PLAN
from ..belief.protocol import Samples
from ..costs import charged, nothing_charged
from ..model import Model
from ..policy import Policy
from ..problem import Evaluation, Problem
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


class First(eqx.Module):
    """The first few of many samples."""

    samples: Samples
    count: int = eqx.field(static=True)

    def __len__(self) -> int:
        return self.count

    def member(self, m: Index) -> Model:
        return self.samples.member(m)


class EpisodePlanner(eqx.Module):
    """Solves Problem (1) once for an episode, over plans of T steps that are followed with feedback."""

    planner: ICEM
    """Over whole episodes, with candidates that are `Tracked`."""
    regulator: Regulator
    scouts: int = eqx.field(static=True, default=8)
    """Short searches, the first of which begins where the last problem's ended."""
    glance: int = eqx.field(static=True, default=30)
    """On so many samples."""

    def init(self, key: PRNGKey) -> Remembered:
        return Remembered(*self.planner.init(0)[:3])

    def solve(self, problem: Problem, state: Remembered, key: PRNGKey) -> tuple[Solution, Remembered]:
        """The best plan from the first of the initial states."""
        *scout_keys, key = jax.random.split(key, self.scouts + 1)
        begun = self._scouted(problem, state, scout_keys)
        memory = Memory(*begun, jnp.zeros(problem.constraint_count, PLAN))
        plan, after = self.planner.plan(problem, problem.starts[0], memory, key)
        policy = Tracking.of(problem, problem.starts[0], plan.actions, self.regulator)
        metrics = {"evaluated": plan.evaluated}
        return Solution(policy, plan.evaluation, float(problem.threshold), metrics), Remembered(*after[:3])

    def _scouted(self, problem: Problem, state: Remembered, keys: list[PRNGKey]) -> Remembered:
        """What the best of the short searches remembers."""
        few, planner = _at_a_glance(problem, self.glance), replace(self.planner, patience=1)
        cold = planner.init(few.constraint_count)
        begin = (Memory(*state, cold.binding), *(cold for _ in keys[1:]))
        found = [planner.plan(few, few.starts[0], memory, key) for memory, key in zip(begin, keys, strict=True)]
        best = Remembered(*max(found, key=lambda each: _rank(each[0].evaluation))[1][:3])
        known = jnp.where(state.warm, state.elites[0], best.elites[-1])  # what looks good on few may not be on all
        return best._replace(elites=best.elites.at[-1].set(known))

    def costs(self, problem: Problem, policy: Policy, noise: Float[Array, " dx"], key: PRNGKey) -> Float[Array, "M k"]:
        """What an episode costs on every sample, each from an initial state of its own, with noise in every step."""
        return episode_costs(problem, policy, noise, self.planner.horizon, key)


def _at_a_glance(problem: Problem, count: int) -> Problem:
    """The problem with no more than so many samples."""
    if problem.samples is None or len(problem.samples) <= count:
        return problem
    return replace(problem, samples=First(problem.samples, count))


def _rank(evaluation: Evaluation) -> tuple[bool, float]:
    """What is feasible comes before what is not; of the one the most valuable, of the other what violates least."""
    violation = float(evaluation.violation)
    return (True, float(evaluation.value)) if violation <= 0 else (False, -violation)


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
