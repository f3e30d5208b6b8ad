"""Functions drawn from a Gaussian-process posterior, as objects that are called (Matheron's rule).

    f^m(z)  =  mu(z)  +  a ( phi^m(z) w^m        +  k(z, Z) v^m )
                             prior draw             update by the data
    v^m  =  (K + sigma_w^2 I)^-1 ( y - phi^m(Z) w^m - eps^m )

Every sample has its own frequencies, weights and noise. Over all its randomness the prior draw has exactly the
kernel as its covariance; a query costs O(features + data).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax import EXACT, PLAN
from ..task import Prior
from ..types import Action, Index, Input, PRNGKey, State
from .kernel import augment, fourier_features, fourier_frequencies, weighted_sum
from .posterior import Observations

__all__ = ["PathwiseFunction", "PathwiseSamples", "draw_samples", "scaled_input"]


def scaled_input(x: State, a: Action, prior: Prior) -> Input:
    """z = (x, a), measured in length scales."""
    z = jnp.concatenate([x, a])
    return z / jnp.asarray(prior.lengthscales, z.dtype)


class PathwiseFunction(eqx.Module):
    """One sampled dynamics f^m."""

    prior: Prior = eqx.field(static=True)
    inputs: Float[Array, "dv n"]
    count: Index
    frequencies: Float[Array, "dz D"]
    weights: Float[Array, "D dx"]
    update: Float[Array, "n dx"]

    def __call__(self, x: State, a: Action) -> State:
        z = scaled_input(x, a, self.prior)
        drawn = fourier_features(z, self.frequencies) @ self.weights
        learned = weighted_sum(z, self.inputs, self.update, self.count)
        return self.prior.mean(x, a) + jnp.asarray(self.prior.scale, x.dtype) * (drawn + learned)


class PathwiseSamples(eqx.Module):
    """M sampled dynamics; what they share, the data, is stored once."""

    prior: Prior = eqx.field(static=True)
    inputs: Float[Array, "dv n"]
    count: Index
    frequencies: Float[Array, "M dz D"]
    weights: Float[Array, "M D dx"]
    update: Float[Array, "M n dx"]

    def __len__(self) -> int:
        return self.weights.shape[0]

    def member(self, m: Index) -> PathwiseFunction:
        return PathwiseFunction(
            self.prior, self.inputs, self.count, self.frequencies[m], self.weights[m], self.update[m]
        )


@eqx.filter_jit
def draw_samples(key: PRNGKey, size: int, features: int, prior: Prior, data: Observations) -> PathwiseSamples:
    """M independent draws from the posterior given these observations.

    The prior draw is rounded to the planning precision first and the update is computed in float64 for that
    very function, so rounding cannot come between the two.
    """
    dz, dx = data.inputs.shape[1], data.targets.shape[1]

    def one(key: PRNGKey) -> tuple[Array, Array, Array]:
        frequency_key, weight_key, noise_key = jax.random.split(key, 3)
        omega = fourier_frequencies(frequency_key, dz, features, PLAN)
        w = jax.random.normal(weight_key, (features, dx), PLAN)
        eps = prior.noise * jax.random.normal(noise_key, data.targets.shape, EXACT)
        phi = jax.vmap(lambda z: fourier_features(z, omega.astype(EXACT)))(data.inputs)
        missing = (data.targets - phi @ w.astype(EXACT) - eps) * data.valid[:, None]
        return omega, w, data.solve(missing)

    omega, w, v = jax.lax.map(one, jax.random.split(key, size))
    return PathwiseSamples(prior, augment(data.inputs).astype(PLAN), data.count, omega, w, v.astype(PLAN))
