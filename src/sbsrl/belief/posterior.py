"""Exact Gaussian-process regression (eq. gp of the paper), on padded arrays so that nothing is recompiled.

All in float64 and in units of the prior's scale: k(z, z) = 1 and one noise sigma_w for every output.
Row i >= count is padding; in the factor it is a row of the identity.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float

from .._jax import EXACT
from ..types import Index, Input, Scalar
from .kernel import BLOCK, augment_query, gram, kernel_values

__all__ = ["Observations", "factorise", "inverse_factor", "valid_rows", "variance"]


class Observations(eqx.Module):
    """The data seen so far, with room for more, and the factor that every posterior quantity needs."""

    inputs: Float[Array, "n dz"]
    """z_i, measured in length scales."""
    targets: Float[Array, "n dx"]
    """(y_i - mu(z_i)) / a."""
    count: Index
    factor: Float[Array, "n n"]
    """L with L L^T = K + sigma_w^2 I."""
    jitter: Scalar
    """What had to be added to the diagonal for the factor to exist."""

    @classmethod
    def none(cls, capacity: int, input_size: int, output_size: int) -> "Observations":
        return cls(
            inputs=jnp.zeros((capacity, input_size), EXACT),
            targets=jnp.zeros((capacity, output_size), EXACT),
            count=jnp.zeros((), jnp.int32),
            factor=jnp.eye(capacity, dtype=EXACT),
            jitter=jnp.zeros((), EXACT),
        )

    @property
    def valid(self) -> Float[Array, " n"]:
        return valid_rows(self.inputs.shape[0], self.count)

    def append(self, inputs: Float[Array, "T dz"], targets: Float[Array, "T dx"], noise: float) -> "Observations":
        """The observations with these after them, factorised anew."""
        all_inputs = jax.lax.dynamic_update_slice_in_dim(self.inputs, inputs, self.count, 0)
        all_targets = jax.lax.dynamic_update_slice_in_dim(self.targets, targets, self.count, 0)
        count = self.count + len(inputs)
        factor, jitter = factorise(all_inputs, count, noise)
        return Observations(all_inputs, all_targets, count, factor, jitter)

    def solve(self, right: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """(K + sigma_w^2 I)^-1 right; rows of padding must be 0 and stay 0."""
        return cho_solve((self.factor, True), right)


FIRST_JITTER, LAST_JITTER = 1e-12, 1e-4


def valid_rows(capacity: int, count: Index) -> Float[Array, " n"]:
    """1 for data, 0 for padding."""
    return (jnp.arange(capacity, dtype=jnp.int32) < count).astype(jnp.float64)


def factorise(inputs: Float[Array, "n dz"], count: Index, noise: float) -> tuple[Float[Array, "n n"], Scalar]:
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


def inverse_factor(factor: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """L^-1, so that a variance is one product instead of a triangular solve."""
    return solve_triangular(factor, jnp.eye(factor.shape[0], dtype=factor.dtype), lower=True)


def variance(z: Input, augmented: Float[Array, "dv n"], inverse: Float[Array, "n n"], count: Index) -> Scalar:
    """sigma_n^2(z) = k(z, z) - |L^-1 k(z)|^2, at least 0.

    L^-1 is lower triangular and only its first `count` rows matter, so the product is taken in blocks: the cost is
    that of count^2 / 2 multiplications, whatever the capacity.
    """
    query, valid = augment_query(z), valid_rows(augmented.shape[1], count)
    blocks = (count + (BLOCK - 1)) // BLOCK

    def kernel_block(j: Index) -> Float[Array, " b"]:
        columns = jax.lax.dynamic_slice_in_dim(augmented, j * BLOCK, BLOCK, axis=1)
        return kernel_values(query, columns) * jax.lax.dynamic_slice_in_dim(valid, j * BLOCK, BLOCK)

    def fill(j: Index, k: Float[Array, " n"]) -> Float[Array, " n"]:
        return jax.lax.dynamic_update_slice_in_dim(k, kernel_block(j), j * BLOCK, 0)

    k = jax.lax.fori_loop(0, blocks, fill, jnp.zeros(augmented.shape[1], z.dtype))

    def explained(i: Index, total: Scalar) -> Scalar:
        rows = jax.lax.dynamic_slice_in_dim(inverse, i * BLOCK, BLOCK)

        def add_columns(j: Index, v: Float[Array, " b"]) -> Float[Array, " b"]:
            block = jax.lax.dynamic_slice_in_dim(rows, j * BLOCK, BLOCK, axis=1)
            return v + jax.lax.dynamic_slice_in_dim(k, j * BLOCK, BLOCK) @ block.T

        v = jax.lax.fori_loop(0, i + 1, add_columns, jnp.zeros(BLOCK, k.dtype))
        return total + v @ v

    return jnp.maximum(1.0 - jax.lax.fori_loop(0, blocks, explained, jnp.zeros((), k.dtype)), 0.0)
