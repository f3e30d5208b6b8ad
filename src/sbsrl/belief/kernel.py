"""The squared exponential kernel k(u, v) = exp(-|u - v|^2 / 2) on inputs measured in length scales."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from ..numerics import cos
from ..types import Index, Input, PRNGKey

__all__ = [
    "BLOCK",
    "FourierFeatures",
    "augment",
    "augment_query",
    "fourier_features",
    "fourier_frequencies",
    "gram",
    "kernel_values",
    "padded_size",
    "weighted_sum",
]

BLOCK = 128
"""Data points handled at once: the block of kernel values of a few hundred queries stays in the cache."""


def padded_size(points: int) -> int:
    """The smallest multiple of `BLOCK` that holds so many points, at least one block."""
    return max(1, -(-points // BLOCK)) * BLOCK


def gram(u: Float[Array, "n dz"], v: Float[Array, "m dz"]) -> Float[Array, "n m"]:
    """K_ij = k(u_i, v_j), from the differences, which loses no digits."""
    difference = u[:, None, :] - v[None, :, :]
    return jnp.exp(-0.5 * jnp.sum(difference**2, axis=-1))


def augment(inputs: Float[Array, "n dz"]) -> Float[Array, "dv n"]:
    """Columns (v, -|v|^2/2, 1), so that ln k(u, v) is the inner product with `augment_query(u)`."""
    norms = -0.5 * jnp.sum(inputs**2, axis=-1, keepdims=True)
    return jnp.concatenate([inputs, norms, jnp.ones_like(norms)], axis=-1).T


def augment_query(z: Input) -> Float[Array, " dv"]:
    """The vector (u, 1, -|u|^2/2)."""
    return jnp.concatenate([z, jnp.ones_like(z[:1]), -0.5 * jnp.sum(z**2, keepdims=True)])


def kernel_values(query: Float[Array, " dv"], columns: Float[Array, "dv b"]) -> Float[Array, " b"]:
    """k(z, z_i) from augmented vectors. The logarithm is cut at 0, which rounding may exceed far from the origin."""
    return jnp.exp(jnp.minimum(query @ columns, 0))


def weighted_sum(
    z: Input, augmented: Float[Array, "dv n"], weights: Float[Array, "n dx"], count: Index
) -> Float[Array, " dx"]:
    """sum_{i < count} k(z, z_i) w_i, in blocks, at a cost that follows `count` and not the padded size.

    The weights of padded rows must be 0.
    """
    query = augment_query(z)

    def add_block(i: Index, total: Float[Array, " dx"]) -> Float[Array, " dx"]:
        columns = jax.lax.dynamic_slice_in_dim(augmented, i * BLOCK, BLOCK, axis=1)
        w = jax.lax.dynamic_slice_in_dim(weights, i * BLOCK, BLOCK)
        return total + kernel_values(query, columns) @ w

    blocks = (count + (BLOCK - 1)) // BLOCK
    return jax.lax.fori_loop(0, blocks, add_block, jnp.zeros(weights.shape[1], weights.dtype))


FourierFeatures = Float[Array, "dz D"]
"""Frequencies omega_1 .. omega_D as columns."""


def fourier_frequencies(key: PRNGKey, size: int, features: int, dtype: DTypeLike) -> FourierFeatures:
    """Frequencies of the kernel's spectral density N(0, I), each twice: once for a cosine, once for a sine."""
    omega = jax.random.normal(key, (size, features // 2), dtype)
    return jnp.concatenate([omega, omega], axis=1)


def fourier_features(z: Input, omega: FourierFeatures) -> Float[Array, " D"]:
    """phi(z) with E[phi(u) . phi(v)] = k(u, v): sqrt(2/D) (cos w.z, sin w.z) (Rahimi and Recht)."""
    features = omega.shape[1]
    phase = jnp.asarray(np.repeat([0.0, -np.pi / 2], features // 2), omega.dtype)
    return np.sqrt(2 / features).item() * cos(z @ omega + phase)
