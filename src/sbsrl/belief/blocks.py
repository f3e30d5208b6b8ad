"""Sums over the data on padded arrays: nothing is recompiled as data arrive, and little is wasted.

Arrays have room for all data of a run and a counter says how much is filled. Every sum exists in a few sizes, and the
smallest that holds the data is used, so the cost follows the data and not the room. On a CPU a few large operations are
much faster than a loop over blocks. All of it can be differentiated, both ways.

A query is one input [dz], or C of them as columns [dz, C].
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..kernels.base import Kernel, Vectors
from ..kernels.features import Inputs, columns
from ..types import Index
from . import cholesky

__all__ = [
    "BLOCK",
    "kernel_vector",
    "padded_size",
    "sized",
    "triangular_product",
    "triangular_solution",
    "valid_rows",
    "weighted_sum",
]

Tree = TypeVar("Tree")

BLOCK = 64
"""Arrays have a multiple of so many rows."""


def padded_size(points: int) -> int:
    """The smallest multiple of `BLOCK` that holds so many points, at least one block."""
    return max(1, -(-points // BLOCK)) * BLOCK


def valid_rows(capacity: int, count: Index) -> Float[Array, " n"]:
    """1 for data, 0 for padding."""
    return (jnp.arange(capacity, dtype=jnp.int32) < count).astype(jnp.float64)


def sizes(capacity: int) -> tuple[int, ...]:
    """64, 128, 160, 192, 224, 256, 320, ...: all that matters below the capacity, and the capacity."""
    steps = [BLOCK] + [quarters * BLOCK // 2 * 2**k for k in range(32) for quarters in (4, 5, 6, 7)]
    return (*(size for size in steps if size < capacity), capacity)


def sized(capacity: int, count: Index, compute: Callable[[int], Tree], least: int = 1) -> Tree:
    """compute(size) with the smallest power of two that holds `count`, for what is done once an episode.

    No size is below `least`. The results must have the same shapes for every size.
    """
    powers = [2 * BLOCK * 2**k for k in range(32)]
    return _smallest((*(size for size in powers if least <= size < capacity), capacity), count, compute)


def _smallest(available: tuple[int, ...], count: Index, compute: Callable[[int], Tree]) -> Tree:
    """compute(size) with the smallest size that is at least `count`."""
    which = jnp.sum(jnp.asarray(available[:-1], jnp.int32) < count, dtype=jnp.int32)
    return jax.lax.switch(which, [lambda size=size: compute(size) for size in available])


def _fill(values: Float[Array, "s *C"], capacity: int) -> Float[Array, "n *C"]:
    """Zeros below."""
    return jnp.pad(values, [(0, capacity - len(values))] + [(0, 0)] * (values.ndim - 1))


def _first(tree: Vectors, size: int) -> Vectors:
    return jax.tree.map(lambda leaf: leaf[:size], tree)


def weighted_sum(
    kernel: Kernel, z: Inputs, rows: Vectors, weights: Float[Array, "k n"], count: Index
) -> Float[Array, "k *C"]:
    """sum_{i < count} k(z, z_i) w_i. The weights of padding must be 0."""
    query = columns(kernel.query, z)
    return _smallest(
        sizes(weights.shape[1]),
        count,
        lambda size: weights[:, :size] @ kernel.link(_first(rows, size), query),
    )


def kernel_vector(kernel: Kernel, z: Inputs, rows: Vectors, capacity: int, count: Index) -> Float[Array, "n *C"]:
    """k(z, z_i) for i < count, then zeros."""
    query = columns(kernel.query, z)

    def compute(size: int) -> Float[Array, "n *C"]:
        values = kernel.link(_first(rows, size), query)
        inside = (jnp.arange(size, dtype=jnp.int32) < count).reshape(-1, *(1,) * (z.ndim - 1))
        return _fill(jnp.where(inside, values, 0), capacity)

    return _smallest(sizes(capacity), count, compute)


PANELS = 4
"""Into so many horizontal strips a triangular matrix is cut, to skip most of its zeros."""


def triangular_product(lower: Float[Array, "n n"], v: Float[Array, "n *C"], count: Index) -> Float[Array, "n *C"]:
    """S v for a lower triangular S and a v that is 0 from `count` on; so is the result."""
    capacity = v.shape[0]

    def compute(size: int) -> Float[Array, "n *C"]:
        ends = [size * (i + 1) // PANELS for i in range(PANELS)]
        starts = [0, *ends[:-1]]
        strips = [lower[start:end, :end] @ v[:end] for start, end in zip(starts, ends, strict=True)]
        return _fill(jnp.concatenate(strips), capacity)

    return _smallest(sizes(capacity), count, compute)


def triangular_solution(lower: Float[Array, "n n"], v: Float[Array, "n *C"], count: Index) -> Float[Array, "n *C"]:
    """L^-1 v for a lower triangular L and a v that is 0 from `count` on; so is the result."""
    capacity, columns = v.shape[0], v.reshape(len(v), -1)

    def compute(size: int) -> Float[Array, "n C"]:
        return _fill(cholesky.whiten(lower[:size, :size], columns[:size]), capacity)

    return _smallest(sizes(capacity), count, compute).reshape(v.shape)
