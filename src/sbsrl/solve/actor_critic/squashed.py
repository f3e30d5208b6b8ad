"""A Gaussian squashed by tanh: the stochastic policy that a soft actor-critic trains, whose mode is what is played.

Actions are shares of half their range. u ~ N(mean, std^2), share = tanh(u), and by the change of variables

    log pi(share) = log N(u; mean, std^2) - sum_i log(1 - tanh(u_i)^2).
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["Drawn", "draw"]


class Drawn(NamedTuple):
    """Actions and how likely they were."""

    shares: Float[Array, "n da"]
    log_density: Float[Array, " n"]


def draw(mean: Float[Array, "n da"], log_std: Float[Array, " da"], noise: Float[Array, "n da"]) -> Drawn:
    """Actions from standard normal noise; gradients go through mean and standard deviation."""
    spread = jnp.broadcast_to(log_std, mean.shape)
    u = mean + jnp.exp(spread) * noise
    gaussian = -0.5 * noise**2 - spread - 0.5 * math.log(2 * math.pi)
    return Drawn(jnp.tanh(u), jnp.sum(gaussian - _log_slope(u), axis=1))


def _log_slope(u: Float[Array, "n da"]) -> Float[Array, "n da"]:
    """log(1 - tanh(u)^2), also where that is too small to be told from 0."""
    return 2 * (math.log(2.0) - u - jax.nn.softplus(-2 * u))
