"""Critics of every sample: what a state and an action are worth in reward, costs and uncertainty, on model m.

Q(x, a, m) is one pair of networks for all models and all signals. It tells models apart by a code: the combination of
the ensemble's members that a sample is, or its number, so that it also serves samples that are drawn anew. Values are
means per step,

    q = (1 - gamma) Q,    Q(x, a, m) = E[sum_t gamma^t y_t],    y_t the signal of step t in units of what an episode is
                                                                worth, divided by the T steps of an episode.

So q times the unit is what an episode costs if all its steps cost what the discounted mean of them says. This is the
one conversion between a budget d of an episode and a discounted critic: q * unit <= d, or Q <= (d / T) / (1 - gamma).
For a cost that is the same in every step it is exact; one that comes early counts more than one that comes late.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from ...networks import Network, apply_members, init_network
from ...optimisation import descend
from ...types import PRNGKey, Scalar
from ..gradient.network_policy import INPUT_LIMIT, Units
from ..gradient.segments import CODE

__all__ = ["Critics", "Steps", "init_critics", "learn", "q_values", "targets"]

TWO = 2
"""Networks, whose mean is the value: each alone overestimates what it was trained to be largest in."""
RATE, TRACKING = 1e-3, 0.01
CRITIC = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam())


class Critics(NamedTuple):
    """Two networks, slowly following copies that targets are made of, and the optimiser's state."""

    networks: Network
    followers: Network
    moments: Any


class Steps(NamedTuple):
    """Steps on models: where each began, what was done, what it gave, where it led."""

    states: Float[Array, "n dx"]
    shares: Float[Array, "n da"]
    signals: Float[Array, "n v"]
    """Reward, costs and uncertainty, in units of what an episode is worth per step."""
    next_states: Float[Array, "n dx"]
    code: Float[Array, "n CODE"]
    """Of the model."""


def init_critics(key: PRNGKey, states: int, actions: int, signals: int, width: int) -> Critics:
    """For states and actions of these sizes and so many signals."""
    networks = init_network(key, (states + actions + CODE, width, width, signals), members=TWO, last=0.1)
    return Critics(networks, networks, CRITIC.init(networks))


def q_values(
    networks: Network,
    units: Units,
    x: Float[Array, "n dx"],
    shares: Float[Array, "n da"],
    code: Float[Array, "n CODE"],
) -> Float[Array, "2 n v"]:
    """q(x, a, m) of both networks."""
    standard = (x - jnp.broadcast_to(units.mean, x.shape)) / jnp.broadcast_to(units.std, x.shape)
    inputs = jnp.concatenate([jnp.clip(standard, -INPUT_LIMIT, INPUT_LIMIT), shares, code], axis=1)
    return apply_members(networks, jnp.broadcast_to(inputs[None], (TWO, *inputs.shape)))


def targets(
    signals: Float[Array, "n v"],
    after: Float[Array, "2 n v"],
    log_density: Float[Array, " n"],
    temperature: Scalar,
    discount: float,
) -> Float[Array, "n v"]:
    """(1 - gamma) y + gamma q', of the reward (signal 0) with entropy: q' - (1 - gamma) alpha log pi(a' | x')."""
    ahead = jnp.mean(after, axis=0)
    soft = ahead.at[:, 0].add(-(1 - discount) * temperature * log_density)
    return (1 - discount) * signals + discount * soft


def learn(critics: Critics, units: Units, steps: Steps, wanted: Float[Array, "n v"]) -> tuple[Critics, Scalar]:
    """The critics after one update towards these targets, and their squared error before."""

    def loss(networks: Network) -> Scalar:
        error = q_values(networks, units, steps.states, steps.shares, steps.code) - wanted[None]
        return jnp.mean(jnp.where(jnp.abs(error) < 1, 0.5 * error**2, jnp.abs(error) - 0.5))

    value, slopes = jax.value_and_grad(loss)(critics.networks)
    networks, moments = descend(CRITIC, slopes, critics.moments, critics.networks, RATE)
    followers = jax.tree.map(lambda old, new: (1 - TRACKING) * old + TRACKING * new, critics.followers, networks)
    return Critics(networks, followers, moments), value
