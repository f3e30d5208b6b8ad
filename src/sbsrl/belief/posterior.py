"""Exact Gaussian-process regression (eq. gp of the paper), on padded arrays so that nothing is recompiled.

All in float64 and in units of the prior's scale: k(z, z) = 1 and one noise sigma_w for every output.
Row i >= count is padding; in the factor it is a row of the identity.
"""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float

from ..types import Index, Input, Scalar
from .kernel import gram

__all__ = ["factorise", "inverse_factor", "solve", "variance"]

FIRST_JITTER, LAST_JITTER = 1e-12, 1e-4


def valid_rows(capacity: int, count: Index) -> Float[Array, " n"]:
    """1 for data, 0 for padding."""
    return (jnp.arange(capacity) < count).astype(jnp.float64)


def factorise(
    inputs: Float[Array, "n dz"], count: Index, noise: float
) -> tuple[Float[Array, "n n"], Scalar]:
    """L with L L^T = K + sigma_w^2 I, and the jitter that had to be added: 0 unless the plain factor fails.

    The jitter grows tenfold until the factor is finite. If it exceeds `LAST_JITTER`, the factor is left not
    finite, for the caller to refuse.
    """
    valid = valid_rows(inputs.shape[0], count)
    k = gram(inputs, inputs) * valid[:, None] * valid[None, :]
    diagonal = jnp.where(valid > 0, noise**2, 1.0)

    def attempt(jitter: Scalar) -> Float[Array, "n n"]:
        return jnp.linalg.cholesky(k + jnp.diag(diagonal + jitter * valid))

    def failed(state: tuple[Float[Array, "n n"], Scalar]) -> Array:
        factor, jitter = state
        return ~jnp.all(jnp.isfinite(factor)) & (jitter < LAST_JITTER)

    def grow(state: tuple[Float[Array, "n n"], Scalar]) -> tuple[Float[Array, "n n"], Scalar]:
        _, jitter = state
        larger = jnp.maximum(10 * jitter, FIRST_JITTER)
        return attempt(larger), larger

    none = jnp.zeros((), inputs.dtype)
    return jax.lax.while_loop(failed, grow, (attempt(none), none))


def solve(factor: Float[Array, "n n"], right: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """(K + sigma_w^2 I)^-1 right; rows of padding must be 0 and stay 0."""
    return cho_solve((factor, True), right)


def inverse_factor(factor: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """L^-1, so that a variance is one product instead of a triangular solve."""
    return solve_triangular(factor, jnp.eye(factor.shape[0], dtype=factor.dtype), lower=True)


def variance(
    z: Input, inputs: Float[Array, "n dz"], inverse: Float[Array, "n n"], count: Index
) -> Scalar:
    """sigma_n^2(z) = k(z, z) - |L^-1 k(z)|^2, at least 0."""
    k = gram(z[None, :], inputs)[0] * valid_rows(inputs.shape[0], count)
    v = inverse @ k
    return jnp.maximum(1.0 - v @ v, 0.0)
