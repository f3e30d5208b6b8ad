"""Functions drawn from a Gaussian-process posterior, as objects that are called (Matheron's rule).

    g^m(z)  =  phi^m(z) . w^m        +  k(z, Z) v^m
               prior draw               update by the data
    v^m  =  (K + sigma_w^2 I)^-1 ( y - phi^m(Z) w^m - eps^m )

Every sample has its own features, weights and noise. Over all its randomness the prior draw has exactly the kernel as
its covariance. A kernel of finite rank has the same features phi for all; then k(z, Z) v = phi(z) . Phi^T v, and a
posterior sample is exact and has no sum over data at all: phi(z) . (w + Phi^T v).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from .._jax import EXACT, PLAN
from ..kernels import FeatureMap
from ..kernels.base import cast
from ..kernels.features import Inputs
from ..types import PRNGKey
from .centres import Centres, KernelSum
from .functions import Stack, blank
from .posterior import Posterior

__all__ = ["PathwiseFunction", "WeightedFeatures", "draw_posterior", "draw_prior"]


class WeightedFeatures(eqx.Module):
    """phi(z) . w: a draw from the prior, or from the posterior of a kernel of finite rank."""

    features: FeatureMap
    weights: Float[Array, "k D"]

    @classmethod
    def mean_of(
        cls, posterior: Posterior, solved: Float[Array, "n k"], precision: DTypeLike = PLAN
    ) -> "WeightedFeatures":
        """The posterior mean of a kernel of finite rank: w = Phi^T (K + sigma_w^2 I)^-1 y."""
        phi, at_data = _exact_features(posterior)
        return cast(cls(phi, (at_data.T @ solved).T), precision)

    def __call__(self, z: Inputs) -> Float[Array, "k *C"]:
        """Computed in the precision of the weights."""
        return (self.weights @ self.features(z.astype(self.weights.dtype))).astype(z.dtype)


class PathwiseFunction(eqx.Module):
    """A draw from the prior, corrected by the data."""

    prior: WeightedFeatures
    update: KernelSum

    def __call__(self, z: Inputs) -> Float[Array, "k *C"]:
        return self.prior(z) + self.update(z)


def draw_prior(
    key: PRNGKey, size: int, posterior: Posterior, features: int, estimator: str, precision: DTypeLike = PLAN
) -> Stack:
    """M functions from GP(0, k), whatever the data say. The same key gives the same functions in every episode."""
    drawn = _draw_weighted_features(key, size, posterior, features, estimator, precision)
    return Stack(drawn, blank(drawn))


def draw_posterior(
    key: PRNGKey,
    size: int,
    posterior: Posterior,
    centres: Centres,
    features: int,
    estimator: str,
    precision: DTypeLike = PLAN,
) -> Stack:
    """M functions from the posterior, to be computed in this precision.

    The prior draws are those of that precision, rounding included, and the updates are computed in float64 for those
    very functions: rounding cannot come between the two.
    """
    prior_key, noise_key = jax.random.split(key)
    drawn = _draw_weighted_features(prior_key, size, posterior, features, estimator, precision)
    shape = (size, *posterior.targets.shape)
    noise = posterior.noise * jax.random.normal(noise_key, shape, EXACT)

    def at_data(function: WeightedFeatures) -> Float[Array, "n k"]:
        return function(posterior.inputs.T.astype(precision)).T.astype(EXACT)

    missing = posterior.targets[None] - jax.lax.map(at_data, drawn) - noise
    missing = jnp.where(posterior.valid[None, :, None] > 0, missing, 0)
    solved = posterior.solve(jnp.moveaxis(missing, 0, 1).reshape(shape[1], -1))
    if posterior.kernel.rank is not None:
        return _absorb(drawn, solved, posterior)
    update = KernelSum.of(posterior, centres, solved, precision)
    weights = update.weights.reshape(size, shape[2], -1)
    first = PathwiseFunction(
        jax.tree.map(lambda leaf: leaf[0], drawn), eqx.tree_at(lambda f: f.weights, update, weights[0])
    )
    return Stack.varying(first, lambda f: (f.prior, f.update.weights), (drawn, weights))


def _draw_weighted_features(
    key: PRNGKey, size: int, posterior: Posterior, features: int, estimator: str, precision: DTypeLike
) -> WeightedFeatures:
    """M draws, stacked, in this precision."""

    def draw(key: PRNGKey) -> WeightedFeatures:
        feature_key, weight_key = jax.random.split(key)
        phi = posterior.kernel.features(feature_key, features, estimator)
        count = jax.eval_shape(phi, posterior.inputs[0]).shape[0]
        weights = jax.random.normal(weight_key, (posterior.targets.shape[1], count), EXACT)
        return cast(WeightedFeatures(phi, weights), precision)

    return jax.vmap(draw)(jax.random.split(key, size))


def _exact_features(posterior: Posterior) -> tuple[FeatureMap, Float[Array, "n p"]]:
    """phi of a kernel of finite rank, and Phi, with zeros for padding."""
    phi = posterior.kernel.features(jax.random.key(0), 0)  # exact ones need no key
    return phi, jnp.where(posterior.valid[:, None] > 0, jax.vmap(phi)(posterior.inputs), 0)


def _absorb(drawn: WeightedFeatures, solved: Float[Array, "n Mk"], posterior: Posterior) -> Stack:
    """w + Phi^T v."""
    size, outputs, _ = drawn.weights.shape
    _, at_data = _exact_features(posterior)
    update = (at_data.T @ solved).reshape(-1, size, outputs)
    exact = eqx.tree_at(
        lambda f: f.weights, drawn, drawn.weights + jnp.moveaxis(update, 0, -1).astype(drawn.weights.dtype)
    )
    return Stack(exact, blank(exact))
