"""Coloured noise: actions that change slowly explore further than white noise of the same strength (iCEM)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from ..types import PRNGKey

__all__ = ["coloured_basis", "coloured_noise"]


def coloured_basis(length: int, exponent: float) -> Float[np.ndarray, "H H"]:
    """A matrix G such that G eps, eps ~ N(0, I), has a power spectrum ~ 1/f^exponent and unit variance.

    The columns are the real Fourier vectors of the period `length`, weighted with f^(-exponent/2) (Timmer and
    Koenig 1995). The constant column gets the weight of the lowest frequency.
    """
    time = np.arange(length)
    columns = []
    for k in range(length // 2 + 1):
        weight = max(k, 1) ** (-exponent / 2)
        angle = 2 * np.pi * k * time / length
        columns.append(weight * np.cos(angle))
        if 0 < k < length / 2:
            columns.append(weight * np.sin(angle))
    basis = np.stack(columns, axis=1)
    return basis / np.sqrt(np.sum(basis**2, axis=1, keepdims=True))


def coloured_noise(
    key: PRNGKey, count: int, basis: Float[np.ndarray, "H H"], size: int, dtype: DTypeLike
) -> Float[Array, "N H da"]:
    """`count` sequences of `size`-dimensional noise, coloured along time."""
    white = jax.random.normal(key, (count, size, basis.shape[0]), dtype)
    return jnp.swapaxes(white @ jnp.asarray(basis.T, dtype), 1, 2)
