"""Rollouts of a stochastic policy on models side by side: every sample keeps its own trajectory."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...belief.protocol import Rows
from ...networks import Network, apply
from ...problem import Problem
from ...types import PRNGKey
from ..network.episodes import earned
from ..network.network_policy import Units, standardised
from .squashed import Drawn, draw

__all__ = ["Rollout", "roll", "stochastic"]


class Rollout(NamedTuple):
    """H steps of every row, and the action after them."""

    states: Float[Array, "H1 n dx"]
    """x_0 .. x_H."""
    shares: Float[Array, "H1 n da"]
    """Actions as shares of half their range."""
    log_density: Float[Array, "H1 n"]
    signals: Float[Array, "H n v"]
    """Reward, costs and uncertainty, in units of what an episode is worth per step."""
    memory: Any
    """What the rows remember at the end."""


def stochastic(
    network: Network, log_std: Float[Array, " da"], units: Units, x: Float[Array, "n dx"], noise: Float[Array, "n da"]
) -> Drawn:
    """Actions of the policy while it learns, from standard normal noise. Without noise they are those it plays."""
    return draw(apply(network, standardised(units, x)), log_std, noise)


def roll(
    network: Network,
    log_std: Float[Array, " da"],
    units: Units,
    rows: Rows,
    problem: Problem,
    x: Float[Array, "n dx"],
    memory: Any,
    scale: Float[Array, " v"],
    steps: int,
    key: PRNGKey,
) -> Rollout:
    """So many steps on every row, from these states and what the rows remember. `scale` is the unit of each signal."""
    noise_key, hand_key = jax.random.split(key)
    noises = rows.noises(noise_key, steps, True)
    hands = jax.random.normal(hand_key, (steps + 1, x.shape[0], units.low.shape[0]), PLAN)
    middle, half = (units.high + units.low) / 2, (units.high - units.low) / 2

    def step(carry: tuple[Array, Any], now: tuple[Array, Array]) -> tuple[tuple[Array, Any], tuple[Array, ...]]:
        (x, memory), (noise, hand) = carry, now
        drawn = stochastic(network, log_std, units, x, hand)
        a = middle[None] + half[None] * drawn.shares
        moved, uncertainty, memory = rows.advanced(x, a, noise, memory)
        gained = earned(problem, x, a, moved, uncertainty)
        signals = jnp.concatenate([gained[:, None], moved.costs, uncertainty[:, None]], axis=1)
        return (moved.states, memory), (x, drawn.shares, drawn.log_density, signals / scale[None])

    (last, memory), (states, shares, densities, signals) = jax.lax.scan(step, (x, memory), (noises, hands[:-1]))
    after = stochastic(network, log_std, units, last, hands[-1])
    return Rollout(
        jnp.concatenate([states, last[None]]),
        jnp.concatenate([shares, after.shares[None]]),
        jnp.concatenate([densities, after.log_density[None]]),
        signals,
        memory,
    )
