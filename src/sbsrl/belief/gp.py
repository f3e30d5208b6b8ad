"""The Gaussian-process belief: exact posterior around a prior mean, sampled functions, information."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT, PLAN
from ..errors import UserError
from ..task import Prior, Transitions
from ..types import Action, Index, PRNGKey, Scalar, State
from . import posterior
from .kernel import augment, padded_size, weighted_sum
from .pathwise import PathwiseSamples, draw_samples, scaled_input

__all__ = ["GPBelief", "Information", "PosteriorMean"]


class PosteriorMean(eqx.Module):
    """mu_n(z) = mu(z) + a k(z, Z) (K + sigma_w^2 I)^-1 y (eq. gp)."""

    prior: Prior = eqx.field(static=True)
    inputs: Float[Array, "dz+2 n"]
    count: Index
    weights: Float[Array, "n dx"]

    def __call__(self, x: State, a: Action) -> State:
        z = scaled_input(x, a, self.prior)
        learned = weighted_sum(z, self.inputs, self.weights, self.count)
        return self.prior.mean(x, a) + jnp.asarray(self.prior.scale, x.dtype) * learned


class Information(eqx.Module):
    """The paper's practical uncertainty: sum_j ln(1 + sigma_n,j^2 / sigma_w,j^2), in nats a step.

    It is computed in float64 whatever the precision of its arguments: near the data the variance is the small
    difference of two numbers close to 1.
    """

    prior: Prior = eqx.field(static=True)
    inputs: Float[Array, "n dz"]
    count: Index
    inverse: Float[Array, "n n"]

    def __call__(self, x: State, a: Action) -> Scalar:
        z = scaled_input(x.astype(EXACT), a.astype(EXACT), self.prior)
        ratio = posterior.variance(z, self.inputs, self.inverse, self.count) / self.prior.noise**2
        return (len(self.prior.scale) * jnp.log1p(ratio)).astype(x.dtype)


class GPBelief(eqx.Module):
    """All that is known after n episodes: the data, its factor, and what follows from them."""

    prior: Prior = eqx.field(static=True)
    features: int = eqx.field(static=True)
    inputs: Float[Array, "n dz"]
    """z_i, measured in length scales."""
    targets: Float[Array, "n dx"]
    """(y_i - mu(z_i)) / a."""
    count: Index
    factor: Float[Array, "n n"]
    jitter: Scalar

    @classmethod
    def create(cls, prior: Prior, capacity: int, features: int) -> "GPBelief":
        """The prior, with room for `capacity` transitions; conditioned on the prior's own data if it has any."""
        known = 0 if prior.data is None else len(prior.data.actions)
        n = padded_size(capacity + known)
        empty = cls(
            prior=prior,
            features=features,
            inputs=jnp.zeros((n, len(prior.lengthscales)), EXACT),
            targets=jnp.zeros((n, len(prior.scale)), EXACT),
            count=jnp.zeros((), jnp.int32),
            factor=jnp.eye(n, dtype=EXACT),
            jitter=jnp.zeros((), EXACT),
        )
        return empty if prior.data is None else empty.update(prior.data)

    @property
    def capacity(self) -> int:
        return self.inputs.shape[0]

    @property
    def nominal(self) -> PosteriorMean:
        weights = posterior.solve(self.factor, self.targets).astype(PLAN)
        return PosteriorMean(self.prior, augment(self.inputs).astype(PLAN), self.count, weights)

    @property
    def uncertainty(self) -> Information:
        return Information(self.prior, self.inputs, self.count, posterior.inverse_factor(self.factor))

    def samples(self, key: PRNGKey, count: int) -> PathwiseSamples:
        return draw_samples(
            key, count, self.features, self.prior, self.inputs, self.targets, self.factor, self.count
        )

    def update(self, data: Transitions) -> "GPBelief":
        """Appends the transitions and factorises anew; raises instead of returning a belief that is not finite."""
        self._check(data)
        after = _append(self, *(jnp.asarray(part, EXACT) for part in data))
        if not bool(jnp.all(jnp.isfinite(after.factor))):
            raise UserError(
                f"the Gram matrix of {int(after.count)} points is not positive definite even with jitter "
                f"{posterior.LAST_JITTER:g}; raise the prior's noise (now {self.prior.noise:g}) or its length scales' "
                "distance from the data's spacing."
            )
        return after

    def _check(self, data: Transitions) -> None:
        new = len(data.actions)
        for name, part in data._asdict().items():
            if not np.all(np.isfinite(part)):
                raise UserError(f"the {name} of the data are not all finite; remove or repair those transitions.")
        if int(self.count) + new > self.capacity:
            raise UserError(
                f"the belief has room for {self.capacity} transitions and would hold {int(self.count) + new}; "
                "create it with a larger capacity."
            )


@eqx.filter_jit
def _append(
    belief: GPBelief, x: Float[Array, "T dx"], a: Float[Array, "T da"], y: Float[Array, "T dx"]
) -> GPBelief:
    prior = belief.prior
    z = jax.vmap(lambda x, a: scaled_input(x, a, prior))(x, a)
    mismatch = (y - jax.vmap(prior.mean)(x, a)) / jnp.asarray(prior.scale, EXACT)[None, :]
    inputs = jax.lax.dynamic_update_slice_in_dim(belief.inputs, z, belief.count, 0)
    targets = jax.lax.dynamic_update_slice_in_dim(belief.targets, mismatch, belief.count, 0)
    count = belief.count + len(x)
    factor, jitter = posterior.factorise(inputs, count, prior.noise)
    return GPBelief(prior, belief.features, inputs, targets, count, factor, jitter)
