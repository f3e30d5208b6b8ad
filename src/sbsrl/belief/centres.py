"""A few centres that stand for all the data, so that planning costs less and errs by less than the noise.

Trajectories are smooth, so most points are nearly combinations of others. A point becomes a centre only if its distance
from the span of the earlier centres, squared, in the RKHS, is more than a small share of sigma_w^2:

    d(z) = k(z, z) - k(z, R) K_RR^-1 k(R, z)  >  share * sigma_w^2

Functions sum_i v_i k(., z_i) are projected onto the centres. What is lost is below the noise by construction.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from .._jax import EXACT, PLAN
from ..kernels.base import Kernel, Vectors, cast, gram
from ..kernels.features import Inputs, columns
from ..types import Flag, Index, Scalar
from . import cholesky
from .blocks import kernel_vector, sized, triangular_product, valid_rows, weighted_sum
from .posterior import Posterior

__all__ = ["SHARE", "Centres", "KernelSum", "LowRankVariance"]

SHARE = 0.01
"""Share of sigma_w^2 by which a point may miss the span of the centres."""


class Centres(eqx.Module):
    """The chosen inputs and the factor of their Gram matrix."""

    inputs: Float[Array, "n dz"]
    count: Index
    factor: Float[Array, "n n"]

    @classmethod
    def empty(cls, capacity: int, dz: int) -> "Centres":
        """No centres, and room for so many."""
        return cls(jnp.zeros((capacity, dz), EXACT), jnp.zeros((), jnp.int32), jnp.eye(capacity, dtype=EXACT))

    def grow(
        self, kernel: Kernel, inputs: Float[Array, "T dz"], tolerance: Scalar, valid: Float[Array, " T"]
    ) -> "Centres":
        """Adds those of T points that are not within the tolerance of the span, the most distant first.

        Points whose `valid` is 0 are padding, and never chosen.
        """
        most = len(inputs)

        def add(size: int) -> tuple[Float[Array, "T dz"], Index, Float[Array, "T n"]]:
            """What is new: at most one centre for each of the points, as rows below those there are."""
            grown = self.first(size)._grow(kernel, inputs, tolerance, valid)
            part = lambda rows: jax.lax.dynamic_slice_in_dim(rows, self.count, most)  # noqa: E731
            return part(grown.inputs), grown.count, self._widened(part(grown.factor))

        chosen, count, rows = sized(len(self.inputs), self.count + most, add, least=most)
        put = lambda into, last: jax.lax.dynamic_update_slice_in_dim(into, last, self.count, 0)  # noqa: E731
        return Centres(put(self.inputs, chosen), count, put(self.factor, rows))

    def first(self, size: int) -> "Centres":
        """The same with room for fewer centres."""
        return Centres(self.inputs[:size], self.count, self.factor[:size, :size])

    def _widened(self, rows: Float[Array, "T s"]) -> Float[Array, "T n"]:
        """Rows of a factor of fewer centres as rows of this one's."""
        return jnp.pad(rows, ((0, 0), (0, len(self.inputs) - rows.shape[1])))

    def _grow(
        self, kernel: Kernel, inputs: Float[Array, "T dz"], tolerance: Scalar, valid: Float[Array, " T"]
    ) -> "Centres":
        both = valid_rows(self.inputs.shape[0], self.count)[:, None] * valid[None, :] > 0
        across = cholesky.whiten(self.factor, jnp.where(both, gram(kernel, self.inputs, inputs), 0))
        corner = jnp.where(valid[:, None] * valid[None, :] > 0, gram(kernel, inputs, inputs), 0)
        missing = jnp.diagonal(corner) - jnp.sum(across**2, axis=0)

        def is_far(state: tuple[Centres, Array, Array]) -> Flag:
            return jnp.max(state[2]) > tolerance

        def add(state: tuple[Centres, Array, Array]) -> tuple[Centres, Array, Array]:
            centres, across, missing = state
            i = jnp.argmax(missing)
            root = jnp.sqrt(missing[i])
            column = (corner[i] - across[:, i] @ across) / root
            row = across[:, i].at[centres.count].set(root)
            grown = Centres(
                centres.inputs.at[centres.count].set(inputs[i]),
                centres.count + 1,
                centres.factor.at[centres.count].set(row),
            )
            return grown, across.at[centres.count].set(column), (missing - column**2).at[i].set(0)

        return jax.lax.while_loop(is_far, add, (self, across, missing))[0]

    def project(
        self, kernel: Kernel, inputs: Float[Array, "n dz"], weights: Float[Array, "n m"]
    ) -> Float[Array, "n m"]:
        """c with sum_r c_r k(., r) the projection of sum_i w_i k(., z_i): (K_RR + eps diag K_RR)^-1 K_RZ w.

        The eps of single precision, by which values of the kernel are wrong in planning, keeps the coefficients small:
        without it they would amplify that error, for sigma_w << 1e-3 until nothing is left of the function.
        """
        used = jnp.any(weights != 0, axis=1)

        def compute(size: int) -> Float[Array, "n m"]:
            few = self.first(size)
            both = (valid_rows(size, self.count)[:, None] > 0) & used[None, :]
            onto = jnp.where(both, gram(kernel, few.inputs, inputs), 0) @ weights
            between = few.factor @ few.factor.T
            rounding = jnp.finfo(PLAN).eps.item() * jnp.diag(jnp.diagonal(between))
            solved = cholesky.solve(jnp.linalg.cholesky(between + rounding), onto)
            return jnp.pad(solved, ((0, len(self.inputs) - size), (0, 0)))

        return sized(len(self.inputs), self.count, compute)


class KernelSum(eqx.Module):
    """The function sum_r w_r k(., r), computed in the precision of its weights."""

    kernel: Kernel
    rows: Vectors
    count: Index
    weights: Float[Array, "k n"]

    @classmethod
    def at(cls, centres: Centres, kernel: Kernel, weights: Float[Array, "n k"]) -> "KernelSum":
        """Over the centres, in the precision of planning."""
        return cls._over(centres.inputs, centres.count, kernel, weights, PLAN)

    @classmethod
    def of(
        cls, posterior: Posterior, centres: Centres, weights: Float[Array, "n k"], precision: DTypeLike
    ) -> "KernelSum":
        """sum_i w_i k(., z_i) over the data, computed in this precision.

        In that of planning it is projected onto the centres. In double precision all data stay: weights are residuals
        divided by sigma_w^2, and of what a projection loses they make, for noise that small, more than the posterior's
        deviation.
        """
        if precision == EXACT:
            return cls._over(posterior.inputs, posterior.count, posterior.kernel, weights, EXACT)
        return cls.at(centres, posterior.kernel, centres.project(posterior.kernel, posterior.inputs, weights))

    @classmethod
    def _over(
        cls,
        inputs: Float[Array, "n dz"],
        count: Index,
        kernel: Kernel,
        weights: Float[Array, "n k"],
        precision: DTypeLike,
    ) -> "KernelSum":
        kernel = kernel.about(inputs, valid_rows(len(inputs), count))
        return cls(cast(kernel, precision), cast(kernel.rows(inputs), precision), count, weights.T.astype(precision))

    def __call__(self, z: Inputs) -> Float[Array, "k *C"]:
        own = z.astype(self.weights.dtype)
        return weighted_sum(self.kernel, own, self.rows, self.weights, self.count).astype(z.dtype)


class LowRankVariance(eqx.Module):
    """sigma_n^2(z) = k(z, z) - |S k(z, R)|^2 from R centres and a lower triangular S: R^2 / 2 products per query.

    With phi(z) = L_R^-1 k(R, z) and Phi = phi(Z)^T, the variance of the rank-R model around the exact prior is
    k(z, z) - phi^T W phi, W = I - sigma_w^2 (sigma_w^2 I + Phi^T Phi)^-1. It is computed in float64 whatever the
    precision of the input: near the data it is the small difference of two numbers close to 1.
    """

    kernel: Kernel
    rows: Vectors
    count: Index
    explained: Float[Array, "n n"]
    """S."""

    @classmethod
    def of(cls, posterior: Posterior, centres: Centres) -> "LowRankVariance":
        lower = sized(posterior.capacity, centres.count, lambda size: _explained(posterior, centres.first(size)))
        kernel = posterior.kernel.about(centres.inputs, valid_rows(posterior.capacity, centres.count))
        return cls(kernel, kernel.rows(centres.inputs), centres.count, lower)

    def __call__(self, z: Inputs) -> Float[Array, "*C"]:
        z = z.astype(EXACT)
        k = kernel_vector(self.kernel, z, self.rows, self.explained.shape[0], self.count)
        v = triangular_product(self.explained, k, self.count)
        return jnp.maximum(columns(lambda z: self.kernel(z, z), z) - jnp.sum(v**2, axis=0), 0)


def _explained(posterior: Posterior, centres: Centres) -> Float[Array, "n n"]:
    """S, from centres with room for no more than there must be."""
    size, noise = len(centres.inputs), posterior.noise
    valid = valid_rows(size, centres.count)
    both = valid[:, None] * posterior.valid[None, :] > 0
    between = jnp.where(both, gram(posterior.kernel, centres.inputs, posterior.inputs), 0)
    phi = cholesky.whiten(centres.factor, between)
    identity = jnp.eye(size, dtype=EXACT)
    root = cholesky.inverse(jnp.linalg.cholesky(noise**2 * identity + phi @ phi.T))
    weight = identity - noise**2 * (root.T @ root) * valid[:, None] * valid[None, :]
    lower = _lower_root(weight) @ cholesky.inverse(centres.factor)
    return jnp.pad(lower, (0, posterior.capacity - size))


def _lower_root(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The lower triangular T with T^T T = matrix (a Cholesky factor has T T^T)."""
    flipped, _ = cholesky.robust_cholesky(matrix[::-1, ::-1], jnp.ones((), matrix.dtype))
    return flipped[::-1, ::-1].T
