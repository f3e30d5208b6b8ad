"""Slopes that cannot explode on their way back through an episode.

The slope of a loss by the state of a step is the slope by the next state times the derivative of the step. Where a
system is unstable these products grow without bound, on some rows by many orders of magnitude: the sum over all rows is
then the slope of a single one, in a direction that is noise. Limited step by step and row by row, all rows are heard.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["limited"]


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def limited(x: Float[Array, "n dx"], std: Float[Array, " dx"], most: float) -> Float[Array, "n dx"]:
    """x itself. Slopes by a row of it, in units of `std`, have at most the length `most` / n; 0 sets no limit."""
    return x


def _forward(x: Float[Array, "n dx"], std: Float[Array, " dx"], most: float) -> tuple[Array, Array]:
    return x, std


def _backward(most: float, std: Float[Array, " dx"], slope: Float[Array, "n dx"]) -> tuple[Array, Array]:
    if not most:
        return slope, jnp.zeros_like(std)
    length = jnp.sqrt(jnp.sum((slope * std[None]) ** 2, axis=1, keepdims=True))
    longest = most / slope.shape[0]
    return slope * (longest / jnp.maximum(length, longest)).astype(slope.dtype), jnp.zeros_like(std)


limited.defvjp(_forward, _backward)
