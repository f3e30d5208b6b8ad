"""M networks that predict the change of the state, the reward and the costs, and what their outputs mean.

A member's outputs are, in this order: the mean change of the p predicted numbers of the state and the mean reward, in
units of the data; a logit per cost; and the logarithm of the variance of the change, before it is bounded.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...networks import Network, apply_members, init_network
from ...types import PRNGKey

__all__ = ["Nets", "Outputs", "Range", "Scales", "cost_of", "log_variance", "nominal_outputs"]

INPUT_LIMIT = 5.0
"""Inputs are clipped to so many standard deviations of the data."""
LEAST_LOG_VARIANCE, MOST_LOG_VARIANCE = -14.0, 1.0
LOGIT_SHIFT = 2.0
"""Logits start this far below 0: nothing costs unless the data say so."""
KNEE = 0.625
"""Of a cost without a known upper limit: where it begins to saturate, as a share of the cap."""


class Scales(eqx.Module):
    """The units of inputs and outputs, from the first data. They stay: parameters are learned in them."""

    input_mean: Float[Array, " dx"]
    input_std: Float[Array, " dx"]
    action_mean: Float[Array, " da"]
    action_std: Float[Array, " da"]
    change_mean: Float[Array, " p"]
    change_std: Float[Array, " p"]
    reward_mean: Float[Array, ""]
    reward_std: Float[Array, ""]


class Range(eqx.Module):
    """Between which predictions are kept: what was seen, a little widened. It grows with the data."""

    low: Float[Array, " p"]
    high: Float[Array, " p"]
    reward_low: Float[Array, ""]
    reward_high: Float[Array, ""]


class Outputs(NamedTuple):
    """What networks say of inputs: of all members, or of combinations of them."""

    change: Float[Array, "... p"]
    reward: Float[Array, "..."]
    logits: Float[Array, "... k"]
    spread: Float[Array, "... p"]
    """Raw log variances of the change."""


class Nets(eqx.Module):
    """The members, with a frozen random network each that is added to its logits.

    Where there are no data the members agree on "no cost" unless something keeps them apart; a random prior does, and
    training cannot remove it there.
    """

    members: Network
    prior: Network
    prior_scale: Float[Array, ""]
    """0 is no prior."""
    prior_stretch: Float[Array, ""]
    """By how much its inputs are multiplied: over what distances it varies."""

    @classmethod
    def create(
        cls,
        key: PRNGKey,
        sizes: tuple[int, int, int, int],
        hidden: tuple[int, ...],
        members: int,
        prior: tuple[float, float],
    ) -> "Nets":
        """`sizes` are those of state, action, predicted part and costs; `prior` is its scale and stretch."""
        dx, da, p, k = sizes
        own, frozen = jax.random.split(key)
        return cls(
            members=init_network(own, (dx + da, *hidden, 2 * p + 1 + k), members),
            prior=init_network(frozen, (p, 32, k), members),
            prior_scale=jnp.asarray(prior[0], PLAN),
            prior_stretch=jnp.asarray(prior[1], PLAN),
        )

    @property
    def count(self) -> int:
        """M."""
        return int(self.members[0].weights.shape[0])

    def __call__(self, inputs: Float[Array, "*M n i"], part: Float[Array, "*M n p"]) -> Outputs:
        """The outputs of every member. `part` are the inputs that are also predicted, which the prior depends on."""
        raw = apply_members(self.members, inputs)
        p = part.shape[-1]
        k = raw.shape[-1] - 2 * p - 1
        prior = self.prior_scale * apply_members(self.prior, self.prior_stretch * part)
        logits = raw[..., p + 1 : p + 1 + k] + prior - LOGIT_SHIFT
        return Outputs(raw[..., :p], raw[..., p], logits, raw[..., p + 1 + k :])


def nominal_outputs(outputs: Outputs) -> Outputs:
    """mu: the mean over the members, whose axis comes first."""
    return Outputs(*(jnp.mean(each, axis=0) for each in outputs))


def log_variance(raw: Float[Array, "..."]) -> Float[Array, "..."]:
    """Bounded on both sides: a network must not become infinitely sure, nor give up."""
    return LEAST_LOG_VARIANCE + (MOST_LOG_VARIANCE - LEAST_LOG_VARIANCE) * jax.nn.sigmoid(raw)


def cost_of(logits: Float[Array, "... k"], caps: Float[Array, " k"]) -> Float[Array, "... k"]:
    """Costs between 0 and their caps, whatever a combination of the members says."""
    caps = jnp.broadcast_to(caps, logits.shape)
    return caps * jnp.tanh(KNEE * jax.nn.softplus(logits))
