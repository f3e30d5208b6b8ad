"""Factors that grow: the data of an episode are appended at a cost of N^2 per point, without factorising anew.

        [ L    0  ]        L_21 = (L^-1 K_12)^T
        [ L_21 L_22 ]      L_22 L_22^T = K_22 + sigma_w^2 I - L_21 L_21^T

Rows i >= count of a padded factor are rows of the identity.
"""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from ..types import Flag, Index, Scalar

__all__ = ["LAST_JITTER", "append", "inverse", "robust_cholesky", "solve", "whiten"]

FIRST_JITTER, LAST_JITTER = 1e-12, 1e-4


def append(
    factor: Float[Array, "n n"],
    count: Index,
    cross: Float[Array, "n T"],
    corner: Float[Array, "T T"],
    valid: Float[Array, " T"],
) -> tuple[Float[Array, "n n"], Scalar]:
    """The factor with T more rows, and the jitter that their diagonal needed.

    `cross` is k(Z, new), with zero rows for padding; `corner` is k(new, new) with the noise on its diagonal. Where
    `valid` is 0, the new row is padding as well: `cross` must have a zero column there, and `corner` a row and a column
    of the identity.
    """
    across = whiten(factor, cross)
    unit = jnp.max(jnp.where(valid > 0, jnp.diagonal(corner), 0))
    below, jitter = robust_cholesky(corner - across.T @ across, unit)
    identity = jnp.eye(len(corner), dtype=corner.dtype)
    below = jnp.where(valid[:, None] > 0, below, identity)  # a jitter is not for padding
    rows = jax.lax.dynamic_update_slice(across.T, below, (jnp.zeros_like(count), count))
    return jax.lax.dynamic_update_slice(factor, rows, (count, jnp.zeros_like(count))), jitter


def robust_cholesky(matrix: Float[Array, "T T"], unit: Scalar) -> tuple[Float[Array, "T T"], Scalar]:
    """The factor of matrix + jitter I. The jitter is 0 unless the plain factor fails, and then as small as helps.

    It grows tenfold, from 1e-12 of `unit`, the size of the entries before anything was subtracted from them: that is
    what rounding is relative to. If even `LAST_JITTER` does not help, the factor is left not finite, for the caller to
    refuse.
    """
    unit = jnp.maximum(unit, jnp.finfo(matrix.dtype).tiny)

    def attempt(jitter: Scalar) -> Float[Array, "T T"]:
        return jnp.linalg.cholesky(matrix + jitter * unit * jnp.eye(matrix.shape[0], dtype=matrix.dtype))

    def failed(state: tuple[Float[Array, "T T"], Scalar]) -> Flag:
        factor, jitter = state
        return ~jnp.all(jnp.isfinite(factor)) & (jitter < 0.5 * LAST_JITTER)  # powers of ten are rounded

    def grow(state: tuple[Float[Array, "T T"], Scalar]) -> tuple[Float[Array, "T T"], Scalar]:
        _, jitter = state
        larger = jnp.maximum(10 * jitter, FIRST_JITTER)
        return attempt(larger), larger

    none = jnp.zeros((), matrix.dtype)
    factor, jitter = jax.lax.while_loop(failed, grow, (attempt(none), none))
    return factor, jitter * unit


def inverse(factor: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """L^-1, so that L^-1 k is a product instead of a triangular solve."""
    return whiten(factor, jnp.eye(factor.shape[0], dtype=factor.dtype))


def whiten(factor: Float[Array, "n n"], right: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """L^-1 right.

    LAPACK reads matrices by columns, and XLA would copy a factor of 5000 points, 200 MB, to hand it over. Its
    transpose, read by columns, is the factor as it lies in memory.
    """
    return solve_triangular(factor.T, right, trans=1, lower=False)


def solve(factor: Float[Array, "n n"], right: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """(L L^T)^-1 right, without a copy of the factor as well."""
    return solve_triangular(factor.T, whiten(factor, right), lower=False)
