"""The posterior of weights: what data say of g(z) = phi(z) . w with w ~ N(0, I), now and after every update.

V_n = I + Phi^T Phi / sigma_w^2,   w ~ N(m_n, V_n^-1),   m_n = V_n^-1 Phi^T y / sigma_w^2,
mu_n(z) = phi(z) . m_n,   sigma_n(z) = |L_n^-1 phi(z)|,   L_n L_n^T = V_n,   information = 1/2 ln det V_n.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from .._jax import EXACT
from ..kernels import FeatureMap
from ..kernels.base import cast
from ..kernels.features import Inputs
from ..types import Index, Scalar
from . import cholesky
from .pathwise import WeightedFeatures
from .posterior import root
from .truncation import Interval

__all__ = ["BLOCK", "Posed", "WeightVariance", "Weights"]


BLOCK = 64
"""Episodes whose confidence sets are intersected at once."""


class Posed(NamedTuple):
    """What some of the data say of the weights."""

    mean: Float[Array, "k p"]
    precision: Float[Array, "p p"]
    information: Scalar
    """1/2 ln det V."""

    @classmethod
    def of(cls, precision: Float[Array, "p p"], moment: Float[Array, "k p"]) -> "Posed":
        mean = jnp.linalg.solve(precision, moment.T).T
        return cls(mean, precision, jnp.linalg.slogdet(precision)[1] / 2)


class Weights(eqx.Module):
    """What is known of the weights of the outputs that share a kernel: now, and after every update so far."""

    phi: FeatureMap
    noise: Scalar
    precision: Float[Array, "p p"]
    """V_n."""
    moment: Float[Array, "k p"]
    """y^T Phi / sigma_w^2."""
    squares: Float[Array, " k"]
    """|y|^2 / sigma_w^2."""
    mean: Float[Array, "E1 k p"]
    """m_0, m_1, .. m_n, then anything."""
    inverse: Float[Array, "E1 p p"]
    """L_0^-1, L_1^-1, .."""
    beta: Float[Array, " E1"]
    now: Index
    """n."""
    count: Index
    """N: how many observations there were."""

    @classmethod
    def empty(cls, phi: FeatureMap, size: int, outputs: int, noise: Scalar, bound: float, episodes: int) -> "Weights":
        """The prior: w ~ N(0, I)."""
        eye = jnp.eye(size, dtype=EXACT)
        return cls(
            phi=phi,
            noise=noise,
            precision=eye,
            moment=jnp.zeros((outputs, size), EXACT),
            squares=jnp.zeros(outputs, EXACT),
            mean=jnp.zeros((episodes + 1, outputs, size), EXACT),
            inverse=jnp.broadcast_to(eye, (episodes + 1, size, size)),
            beta=jnp.full(episodes + 1, bound, EXACT),
            now=jnp.zeros((), jnp.int32),
            count=jnp.zeros((), jnp.int32),
        )

    def append(
        self, inputs: Float[Array, "T dz"], targets: Float[Array, "T k"], valid: Float[Array, " T"]
    ) -> "Weights":
        """After T more points; beta_n is left to be set. Where `valid` is 0 there is padding, which must be finite."""
        features = jnp.where(valid[None, :] > 0, self.phi(inputs.T) / self.noise, 0)
        precision = self.precision + features @ features.T
        moment = self.moment + targets.T @ features.T / self.noise
        inverse = cholesky.inverse(jnp.linalg.cholesky(precision))
        put = lambda past, new: jax.lax.dynamic_update_index_in_dim(past, new, self.now + 1, 0)  # noqa: E731
        return Weights(
            phi=self.phi,
            noise=self.noise,
            precision=precision,
            moment=moment,
            squares=self.squares + jnp.sum((targets / self.noise) ** 2 * valid[:, None], axis=0),
            mean=put(self.mean, moment @ inverse.T @ inverse),
            inverse=put(self.inverse, inverse),
            beta=self.beta,
            now=self.now + 1,
            count=self.count + jnp.sum(valid > 0, dtype=jnp.int32),
        )

    def with_width(self, beta: Scalar) -> "Weights":
        return eqx.tree_at(lambda w: w.beta, self, self.beta.at[self.now].set(beta))

    def information(self) -> Scalar:
        """1/2 ln det V_n."""
        return -jnp.sum(jnp.log(jnp.diagonal(self.inverse[self.now])))

    def misfit(self) -> Float[Array, " k"]:
        """Q_n = |y|^2 / sigma_w^2 - |m_n|^2_{V_n}, which is y^T (K + sigma_w^2 I)^-1 y."""
        return self.squares - jnp.sum(self.mean[self.now] * self.moment, axis=1)

    def before_and_since(self, update: Index) -> tuple["Posed", "Posed"]:
        """What the data up to this update say alone, and what those after it do."""
        eye = jnp.eye(len(self.precision), dtype=EXACT)
        root = cholesky.inverse(self.inverse[update])
        before = root @ root.T
        since = self.precision - before + eye
        moment = self.mean[update] @ before
        return Posed.of(before, moment), Posed.of(since, self.moment - moment)

    def function(self, weights: Float[Array, "k p"], precision: DTypeLike) -> WeightedFeatures:
        """phi . w, to be computed in this precision."""
        return cast(WeightedFeatures(self.phi, weights), precision)

    def interval(self, z: Inputs, first: Index, count: int) -> Interval:
        """The intersection of mu_i -+ beta_i sigma_i for i = first .. first + count - 1, as far as they are past."""
        features = self.phi(z.astype(EXACT))
        part = lambda past: jax.lax.dynamic_slice_in_dim(past, first, count)  # noqa: E731
        mean = jnp.tensordot(part(self.mean), features, 1)
        deviation = jax.vmap(_length)(jnp.tensordot(part(self.inverse), features, 1))
        shape = (-1, *(1,) * (mean.ndim - 1))
        width = part(self.beta).reshape(shape) * deviation[:, None]
        past = (first + jnp.arange(count, dtype=jnp.int32) <= self.now).reshape(shape)
        low, high = jnp.where(past, mean - width, -jnp.inf), jnp.where(past, mean + width, jnp.inf)
        return Interval(jnp.max(low, axis=0), jnp.min(high, axis=0))

    def __call__(self, z: Inputs) -> Interval:
        """The intersection of all confidence sets so far, in blocks: early episodes are cheap."""
        size = min(BLOCK, self.beta.shape[0])

        def narrow(i: Index, so_far: Interval) -> Interval:
            first = jnp.minimum(i * size, self.beta.shape[0] - size)
            part = self.interval(z, first, size)
            return Interval(jnp.maximum(so_far.low, part.low), jnp.minimum(so_far.high, part.high))

        everything = jnp.full((self.moment.shape[0], *z.shape[1:]), jnp.inf, EXACT)
        return jax.lax.fori_loop(0, self.now // size + 1, narrow, Interval(-everything, everything))


class WeightVariance(eqx.Module):
    """sigma_n^2(z) = |L_n^-1 phi(z)|^2."""

    phi: FeatureMap
    inverse: Float[Array, "p p"]

    def __call__(self, z: Inputs) -> Float[Array, "*C"]:
        return jnp.sum((self.inverse @ self.phi(z.astype(EXACT))) ** 2, axis=0)


def _length(v: Float[Array, "p *C"]) -> Float[Array, "*C"]:
    return root(jnp.sum(v**2, axis=0))
