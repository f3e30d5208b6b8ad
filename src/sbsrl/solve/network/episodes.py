"""Whole episodes of a policy on models side by side: J_r, J_c and J_s, with gradients."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...belief.protocol import Forgetful, Rows, Samples, Steps
from ...costs import charged, nothing_charged
from ...model import Model
from ...networks import Network
from ...problem import Bonus, Curiosity, Problem
from ...types import Index, PRNGKey
from .network_policy import Units, act
from .slopes import limited

__all__ = ["EachAsked", "Totals", "code_of", "earned", "episodes", "rows_of"]


class Totals(NamedTuple):
    """What an episode gave on every row."""

    rewards: Float[Array, " n"]
    costs: Float[Array, "n k"]
    """Aggregated as the task says."""
    information: Float[Array, " n"]


class EachAsked(Forgetful, eqx.Module):
    """Models of any kind side by side: rows of every sample, then rows of the nominal model."""

    problem: Problem
    each: int = eqx.field(static=True)
    nominal: int = eqx.field(static=True)

    def noises(self, key: PRNGKey, steps: int, training: bool) -> Float[Array, "T n 0"]:
        count = 0 if self.problem.samples is None else len(self.problem.samples)
        return jnp.zeros((steps, count * self.each + self.nominal, 0), PLAN)

    def steps(
        self, x: Float[Array, "n dx"], a: Float[Array, "n da"], noise: Float[Array, "n z"]
    ) -> tuple[Steps, Float[Array, " n"]]:
        count = x.shape[0] - self.nominal
        parts = [self._nominal(x[count:], a[count:])]
        if count and self.problem.samples is not None:
            own = [part[:count].reshape(-1, self.each, part.shape[1]) for part in (x, a)]
            numbers = jnp.arange(count // self.each, dtype=jnp.int32)
            sampled = jax.vmap(self._sample, in_axes=(None, 0, 0, 0))(self.problem.samples, numbers, *own)
            parts.insert(0, jax.tree.map(lambda part: part.reshape(count, *part.shape[2:]), sampled))
        states, rewards, costs = (jnp.concatenate(side) for side in zip(*parts, strict=True))
        return Steps(states, rewards, costs), jax.vmap(self.problem.uncertainty)(x, a)

    def _sample(self, samples: Samples, m: Index, x: Array, a: Array) -> Steps:
        return _asked(samples.member(m), x, a)

    def _nominal(self, x: Array, a: Array) -> Steps:
        return _asked(self.problem.nominal, x, a)


def _asked(model: Model, x: Float[Array, "n dx"], a: Float[Array, "n da"]) -> Steps:
    y = jax.vmap(model.__call__)(x, a)
    return Steps(y, jax.vmap(model.reward)(x, a, y), jax.vmap(model.costs)(x, a, y))


def rows_of(problem: Problem, each: int, nominal: int, played: bool = False) -> Rows:
    """So many rows of every sample, one sample after the other, then so many of the nominal model.

    They are as episodes are planned, or (`played`) as they will be played, where that differs.
    """
    source = problem.nominal if problem.samples is None else problem.samples
    if beside := (played and getattr(source, "beside_played", None)) or getattr(source, "beside", None):
        rows: Rows = beside(0 if problem.samples is None else each, nominal)
        return rows
    return EachAsked(problem, each, nominal)


def code_of(rows: Rows, count: int) -> Float[Array, "n c"]:
    """What tells the models of rows apart: their own code, or the number of the sample, as a unit vector."""
    if (code := getattr(rows, "code", None)) is not None:
        return code
    assert isinstance(rows, EachAsked)
    samples = (count - rows.nominal) // max(rows.each, 1)
    number = jnp.concatenate([jnp.repeat(jnp.arange(samples), rows.each), jnp.full(rows.nominal, samples)])
    return jax.nn.one_hot(number, samples + 1, dtype=PLAN)


def earned(
    problem: Problem,
    x: Float[Array, "n dx"],
    a: Float[Array, "n da"],
    moved: Steps,
    uncertainty: Float[Array, " n"],
) -> Float[Array, " n"]:
    """What a step earns on every row: its reward, or what the problem has in the place of rewards."""
    if problem.objective is None:
        return moved.rewards
    if isinstance(problem.objective, Curiosity):  # the rows know it already
        return uncertainty
    if isinstance(problem.objective, Bonus):
        return moved.rewards + problem.objective.weight * uncertainty
    return jax.vmap(problem.objective)(x, a, moved.states)


def episodes(
    network: Network,
    units: Units,
    rows: Rows,
    starts: Float[Array, "n dx"],
    problem: Problem,
    horizon: int,
    unsteadiness: float,
    training: bool,
    key: PRNGKey,
    steepest: float = 0.0,
) -> Totals:
    """An episode of every row from its start. Everything can be differentiated with respect to the network.

    All rows have noise of their own, which does not depend on the policy. `unsteadiness` is the standard deviation of
    what is added to actions, in shares of half their range. `steepest` limits slopes (`slopes.limited`).
    """
    n, da = starts.shape[0], units.low.shape[0]
    hand_key, noise_key = jax.random.split(key)
    hands = unsteadiness * jax.random.normal(hand_key, (horizon, n, da), PLAN) if unsteadiness else None
    noises = rows.noises(noise_key, horizon, training)
    counted = jnp.arange(horizon, dtype=jnp.int32) < problem.steps

    @jax.checkpoint
    def step(carry: Any, now: tuple[Array | None, Array, Array]) -> tuple[Any, None]:
        (x, memory, totals), (hand, noise, counts) = carry, now
        x = limited(x, units.std, steepest)
        a = act(network, units, x, hand)
        moved, uncertainty, memory = rows.advanced(x, a, noise, memory)
        after = Totals(
            totals.rewards + earned(problem, x, a, moved, uncertainty),
            charged(totals.costs, moved.costs, problem.aggregations),
            totals.information + jnp.where(counts, uncertainty, 0),
        )
        return (moved.states, memory, after), None

    nothing = Totals(jnp.zeros(n, PLAN), nothing_charged(n, problem.aggregations), jnp.zeros(n, PLAN))
    (_, _, totals), _ = jax.lax.scan(step, (starts, rows.begun(n), nothing), (hands, noises, counted))
    return totals
