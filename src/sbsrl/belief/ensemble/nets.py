"""M networks that predict the change of the state, the reward and the costs, and what their outputs mean.

A member is two networks. The outputs of the first are, in this order: the mean change of the p predicted numbers of the
state and the mean reward, in units of the data; and the logarithm of the variance of the change, before it is bounded.
The second gives a logit per cost, and may be shown less: what a task says its costs depend on.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...networks import Network, apply_members, init_network
from ...types import PRNGKey

__all__ = ["Members", "Nets", "Outputs", "Range", "Said", "Scales", "cost_of", "log_variance", "nominal_outputs"]

INPUT_LIMIT = 5.0
"""Inputs are clipped to so many standard deviations of the data."""
LEAST_LOG_VARIANCE, MOST_LOG_VARIANCE = -14.0, 1.0
PRIOR_WIDTH = 32
LOGIT_SHIFT = 2.0
"""Logits start this far below 0: nothing costs unless the data say so."""
KNEE = 0.625
"""Where a cost begins to saturate, as a share of the most that a step can cost."""


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
    costs: Float[Array, "... k"]
    spread: Float[Array, "... p"]
    """Raw log variances of the change."""


class Members(NamedTuple):
    """What is trained, of all members."""

    motion: Network
    """Of change, reward and variance."""
    cost: Network
    """Of the logits of the costs."""


class Said(NamedTuple):
    """What the networks of all members give, before it is put together."""

    change: Float[Array, "M n p"]
    reward: Float[Array, "M n"]
    spread: Float[Array, "M n p"]
    logits: Float[Array, "M n k"]


class Nets(eqx.Module):
    """The members, with a frozen random network each that is added to its logits of the costs.

    Where there are no data the members agree on "no cost" unless something keeps them apart; a random prior does, and
    training cannot remove it there.
    """

    members: Members
    prior: Network
    prior_scale: Float[Array, ""]
    """0 is no prior."""
    prior_stretch: Float[Array, ""]
    """By how much its inputs are multiplied: over what distances it varies."""

    @classmethod
    def create(
        cls,
        key: PRNGKey,
        motion: tuple[int, ...],
        cost: tuple[int, ...],
        members: int,
        prior: tuple[int, float, float],
    ) -> "Nets":
        """`motion` and `cost` are the sizes of the layers of both networks, those of inputs and outputs included.

        `prior` is the number of its inputs, its scale and its stretch.
        """
        own, priced, frozen = jax.random.split(key, 3)
        return cls(
            members=Members(init_network(own, motion, members), init_network(priced, cost, members)),
            prior=init_network(frozen, (prior[0], PRIOR_WIDTH, cost[-1]), members),
            prior_scale=jnp.asarray(prior[1], PLAN),
            prior_stretch=jnp.asarray(prior[2], PLAN),
        )

    @property
    def count(self) -> int:
        """M."""
        return int(self.members.motion[0].weights.shape[0])

    def __call__(
        self, inputs: Float[Array, "*M n i"], deciding: Float[Array, "*M n c"], near: Float[Array, "*M n q"]
    ) -> Said:
        """What every member says: of the motion at these inputs, of the cost at those that decide it.

        `near` are the inputs of the random prior.
        """
        raw = apply_members(self.members.motion, inputs)
        p = raw.shape[-1] // 2
        prior = self.prior_scale * apply_members(self.prior, self.prior_stretch * near)
        logits = apply_members(self.members.cost, deciding) + prior - LOGIT_SHIFT
        return Said(raw[..., :p], raw[..., p], raw[..., p + 1 :], logits)


def nominal_outputs(outputs: Outputs) -> Outputs:
    """mu: the mean over the members, whose axis comes first."""
    return Outputs(*(jnp.mean(each, axis=0) for each in outputs))


def log_variance(raw: Float[Array, "..."]) -> Float[Array, "..."]:
    """Bounded on both sides: a network must not become infinitely sure, nor give up."""
    return LEAST_LOG_VARIANCE + (MOST_LOG_VARIANCE - LEAST_LOG_VARIANCE) * jax.nn.sigmoid(raw)


def cost_of(logits: Float[Array, "... k"], most: Float[Array, "... k"]) -> Float[Array, "... k"]:
    """Costs between 0 and the most that a step can cost."""
    return jnp.broadcast_to(most, logits.shape) * jnp.tanh(KNEE * jax.nn.softplus(logits))
