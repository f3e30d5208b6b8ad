"""Transitions as arrays of a fixed number of rows, so that episodes that end early recompile nothing."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT
from ..transitions import Transitions

__all__ = ["Rows", "padded_rows"]


class Rows(NamedTuple):
    """What a Gaussian process uses of T transitions, some of which may be padding."""

    x: Float[Array, "T dx"]
    a: Float[Array, "T da"]
    y: Float[Array, "T dx"]
    valid: Float[Array, " T"]
    """1 for data, which come first, 0 for padding."""


def padded_rows(data: Transitions, size: int) -> Rows:
    """The transitions, of which there must be one, and copies of the last one after them up to `size` rows.

    Copies, as functions that are finite at the data are finite there as well. If there are `size` transitions or more,
    nothing is added.
    """
    count = len(data.actions)
    missing = max(size - count, 0)

    def pad(part: Float[np.ndarray, "N d"]) -> Float[Array, "T d"]:
        return jnp.asarray(np.pad(np.asarray(part, float), ((0, missing), (0, 0)), mode="edge"), EXACT)

    valid = np.arange(count + missing) < count
    return Rows(pad(data.states), pad(data.actions), pad(data.next_states), jnp.asarray(valid, EXACT))
