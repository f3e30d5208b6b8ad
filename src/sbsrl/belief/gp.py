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
from .posterior import Observations

__all__ = ["GPBelief", "Information", "PosteriorMean"]


class PosteriorMean(eqx.Module):
    """mu_n(z) = mu(z) + a k(z, Z) (K + sigma_w^2 I)^-1 y (eq. gp)."""

    prior: Prior = eqx.field(static=True)
    inputs: Float[Array, "dv n"]
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
    inputs: Float[Array, "dv n"]
    count: Index
    inverse: Float[Array, "n n"]

    def __call__(self, x: State, a: Action) -> Scalar:
        z = scaled_input(x.astype(EXACT), a.astype(EXACT), self.prior)
        ratio = posterior.variance(z, self.inputs, self.inverse, self.count) / self.prior.noise**2
        return (len(self.prior.scale) * jnp.log1p(ratio)).astype(x.dtype)


class GPBelief(eqx.Module):
    """All that is known after n episodes."""

    prior: Prior = eqx.field(static=True)
    features: int = eqx.field(static=True)
    data: Observations

    @classmethod
    def create(cls, prior: Prior, capacity: int, features: int) -> "GPBelief":
        """The prior, with room for `capacity` transitions; conditioned on the prior's own data if it has any."""
        known = 0 if prior.data is None else len(prior.data.actions)
        room = padded_size(capacity + known)
        belief = cls(prior, features, Observations.none(room, len(prior.lengthscales), len(prior.scale)))
        return belief if prior.data is None else belief.update(prior.data)

    def nominal(self) -> PosteriorMean:
        weights = self.data.solve(self.data.targets).astype(PLAN)
        return PosteriorMean(self.prior, augment(self.data.inputs).astype(PLAN), self.data.count, weights)

    def uncertainty(self) -> Information:
        inverse = posterior.inverse_factor(self.data.factor)
        return Information(self.prior, augment(self.data.inputs), self.data.count, inverse)

    def samples(self, key: PRNGKey, count: int) -> PathwiseSamples:
        return draw_samples(key, count, self.features, self.prior, self.data)

    def update(self, data: Transitions) -> "GPBelief":
        """Appends the transitions and factorises anew; raises rather than return a belief that is not finite."""
        self._check(data)
        after = _append(self, *(jnp.asarray(part, EXACT) for part in data))
        if not jnp.all(jnp.isfinite(after.data.factor)):
            raise UserError(
                f"the Gram matrix of {int(after.data.count)} points is not positive definite even with a jitter of "
                f"{posterior.LAST_JITTER:g}; raise the prior's noise, which is {self.prior.noise:g}."
            )
        return after

    def _check(self, data: Transitions) -> None:
        for name, part in data._asdict().items():
            if not np.all(np.isfinite(part)):
                raise UserError(f"the {name} of the data are not all finite; remove or repair those transitions.")
        room, total = self.data.inputs.shape[0], int(self.data.count) + len(data.actions)
        if total > room:
            raise UserError(
                f"the belief has room for {room} transitions and would hold {total}; create it with more capacity."
            )


@eqx.filter_jit
def _append(belief: GPBelief, x: Float[Array, "T dx"], a: Float[Array, "T da"], y: Float[Array, "T dx"]) -> GPBelief:
    prior = belief.prior
    inputs = jax.vmap(lambda x, a: scaled_input(x, a, prior))(x, a)
    targets = (y - jax.vmap(prior.mean)(x, a)) / jnp.asarray(prior.scale, EXACT)[None, :]
    return GPBelief(prior, belief.features, belief.data.append(inputs, targets, prior.noise))
