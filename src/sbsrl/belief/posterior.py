"""Exact Gaussian-process regression with one kernel (eq. gp of the paper), on padded arrays, in float64.

    mu_n(z)      = k(z)^T (K + sigma_w^2 I)^-1 y
    sigma_n^2(z) = k(z, z) - k(z)^T (K + sigma_w^2 I)^-1 k(z)

With L L^T = K + sigma_w^2 I, v = L^-1 k(z) and u = L^-1 y these are v . u and k(z, z) - |v|^2. The rows of L and u of
the first i points do not depend on later ones, so the posteriors after *every* episode come from the same v, as partial
sums (the prefix trick).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax import EXACT
from ..kernels.base import Kernel, Vectors, gram
from ..kernels.features import Inputs, columns
from ..types import Index, Scalar
from . import cholesky
from .blocks import kernel_vector, triangular_product, triangular_solution, valid_rows

__all__ = ["Moments", "Posterior", "Variance", "padded_gram", "root"]


class Posterior(eqx.Module):
    """All that one kernel knows of k outputs that share it, with room for more data."""

    kernel: Kernel
    noise: Scalar
    """sigma_w."""
    inputs: Float[Array, "n dz"]
    targets: Float[Array, "n k"]
    """y - mu, in units of the prior's scale; 0 for padding."""
    count: Index
    factor: Float[Array, "n n"]
    """L."""
    whitened: Float[Array, "n k"]
    """u = L^-1 y."""
    jitter: Scalar
    """The most that had to be added to a diagonal entry for the factor to exist."""

    @classmethod
    def empty(cls, kernel: Kernel, noise: Scalar, capacity: int, dz: int, outputs: int) -> "Posterior":
        """The prior, with room for so many points."""
        return cls(
            kernel=kernel,
            noise=noise,
            inputs=jnp.zeros((capacity, dz), EXACT),
            targets=jnp.zeros((capacity, outputs), EXACT),
            count=jnp.zeros((), jnp.int32),
            factor=jnp.eye(capacity, dtype=EXACT),
            whitened=jnp.zeros((capacity, outputs), EXACT),
            jitter=jnp.zeros((), EXACT),
        )

    @classmethod
    def given(
        cls,
        kernel: Kernel,
        noise: Scalar,
        inputs: Float[Array, "n dz"],
        targets: Float[Array, "n k"],
        count: Index,
    ) -> "Posterior":
        """The posterior of padded data, factorised at once."""
        matrix = padded_gram(kernel, noise, inputs, count)
        unit = jnp.max(jnp.where(valid_rows(inputs.shape[0], count) > 0, jnp.diagonal(matrix), 0))
        factor, jitter = cholesky.robust_cholesky(matrix, unit)
        whitened = cholesky.whiten(factor, targets)
        return cls(kernel, noise, inputs, targets, count, factor, whitened, jitter)

    @property
    def capacity(self) -> int:
        return self.inputs.shape[0]

    @property
    def valid(self) -> Float[Array, " n"]:
        return valid_rows(self.capacity, self.count)

    def append(
        self, inputs: Float[Array, "T dz"], targets: Float[Array, "T k"], valid: Float[Array, " T"] | None = None
    ) -> "Posterior":
        """The posterior after T more points. If they cannot be factorised, the factor is not finite.

        Points whose `valid` is 0 are padding: they come after the data, nothing depends on them, and the next points
        take their place. Without `valid` all are data.
        """
        valid = jnp.ones(len(inputs), EXACT) if valid is None else valid
        known = self.valid[:, None] * valid[None, :] > 0
        cross = jnp.where(known, gram(self.kernel, self.inputs, inputs), 0)
        corner = _regularised(self.kernel, self.noise, inputs, valid)
        factor, jitter = cholesky.append(self.factor, self.count, cross, corner, valid)
        seen = jnp.where(valid[:, None] > 0, targets, 0)
        return Posterior(
            kernel=self.kernel,
            noise=self.noise,
            inputs=jax.lax.dynamic_update_slice_in_dim(self.inputs, inputs, self.count, 0),
            targets=jax.lax.dynamic_update_slice_in_dim(self.targets, seen, self.count, 0),
            count=self.count + jnp.sum(valid > 0, dtype=jnp.int32),
            factor=factor,
            whitened=self._whitened_with(factor, targets, valid),
            jitter=jnp.maximum(self.jitter, jitter),
        )

    def _whitened_with(
        self, factor: Float[Array, "n n"], targets: Float[Array, "T k"], valid: Float[Array, " T"]
    ) -> Float[Array, "n k"]:
        """u_2 = L_22^-1 (y_2 - L_21 u_1) below u_1, and 0 for padding, on which no other row depends."""
        rows = jax.lax.dynamic_slice_in_dim(factor, self.count, len(targets))
        corner = jax.lax.dynamic_slice_in_dim(rows, self.count, len(targets), axis=1)
        new = cholesky.whiten(corner, targets - rows @ self.whitened)
        seen = jnp.where(valid[:, None] > 0, new, 0)
        return jax.lax.dynamic_update_slice_in_dim(self.whitened, seen, self.count, 0)

    def solve(self, right: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """(K + sigma_w^2 I)^-1 right; rows of padding must be 0 and stay 0."""
        return cholesky.solve(self.factor, right)

    def information(self) -> Scalar:
        """1/2 ln det(I + K / sigma_w^2): what the data taught about one output, in nats."""
        gained = jnp.log(jnp.diagonal(self.factor) / self.noise)
        return jnp.sum(jnp.where(self.valid > 0, gained, 0))


def padded_gram(kernel: Kernel, noise: Scalar, inputs: Float[Array, "n dz"], count: Index) -> Float[Array, "n n"]:
    """K + sigma_w^2 I of the data, and the identity for padding."""
    return _regularised(kernel, noise, inputs, valid_rows(inputs.shape[0], count))


def _regularised(
    kernel: Kernel, noise: Scalar, inputs: Float[Array, "n dz"], valid: Float[Array, " n"]
) -> Float[Array, "n n"]:
    """The same of points that are data where `valid` is 1."""
    both = valid[:, None] * valid[None, :] > 0
    k = jnp.where(both, gram(kernel, inputs, inputs), 0)  # at padding the kernel need not be finite
    return k + jnp.diag(jnp.where(valid > 0, noise**2, 1))


def root(variance: Float[Array, "..."]) -> Float[Array, "..."]:
    """The square root, with the derivative 0 where it has none: at points about which nothing is unknown."""
    certain = variance <= 0
    return jnp.where(certain, 0, jnp.sqrt(jnp.where(certain, 1, variance)))


class Moments(eqx.Module):
    """mu_n and sigma_n^2 of a posterior, exactly, at a cost of count^2 / 2 per query; also of earlier episodes.

    Products with L^-1 take about half the time that solving with L does, but their rounding grows as 1 / sigma_w^2:
    where the noise is `delicate`, v is solved for.
    """

    kernel: Kernel
    rows: Vectors
    lower: Float[Array, "n n"]
    """L^-1, or L where v is solved for."""
    whitened: Float[Array, "n k"]
    count: Index
    delicate: bool = eqx.field(static=True)

    @classmethod
    def of(cls, posterior: Posterior, delicate: bool = False) -> "Moments":
        kernel = posterior.kernel.about(posterior.inputs, posterior.valid)
        return cls(
            kernel=kernel,
            rows=kernel.rows(posterior.inputs),
            lower=posterior.factor if delicate else cholesky.inverse(posterior.factor),
            whitened=posterior.whitened,
            count=posterior.count,
            delicate=delicate,
        )

    def __call__(self, z: Inputs) -> tuple[Float[Array, "k *C"], Float[Array, "*C"]]:
        """mu_n(z), sigma_n^2(z)."""
        v = self._whiten(z)
        return self.whitened.T @ v, jnp.maximum(self._prior(z) - jnp.sum(v**2, axis=0), 0)

    def prefixes(self, z: Inputs, before: Float[Array, "E n"]) -> tuple[Float[Array, "E k *C"], Float[Array, "E *C"]]:
        """mu_i(z), sigma_i^2(z) for every i, where before[i, q] is 1 if point q is among those that i knows."""
        v = self._whiten(z)
        terms = v[:, None] * self.whitened.reshape(*self.whitened.shape, *(1,) * (z.ndim - 1))
        return jnp.tensordot(before, terms, 1), jnp.maximum(self._prior(z)[None] - before @ v**2, 0)

    def _prior(self, z: Inputs) -> Float[Array, "*C"]:
        return columns(lambda z: self.kernel(z, z), z)

    def _whiten(self, z: Inputs) -> Float[Array, "n *C"]:
        """v = L^-1 k(z)."""
        k = kernel_vector(self.kernel, z, self.rows, self.lower.shape[0], self.count)
        whiten = triangular_solution if self.delicate else triangular_product
        return whiten(self.lower, k, self.count)


class Variance(eqx.Module):
    """sigma_n^2(z), exactly."""

    moments: Moments

    def __call__(self, z: Inputs) -> Float[Array, "*C"]:
        return self.moments(z.astype(EXACT))[1]
