"""Critics of every sample: what a state and an action are worth in reward, costs and uncertainty, on model m.

Q_r(x, a, m) is a pair of networks for all models, Q_c and Q_sigma(x, a, m) are another one, which share all layers but
the last. They tell models apart by a code: the combination of the ensemble's members that a sample is, or its number,
so that they also serve samples that are drawn anew. Values are means per step,

    q = (1 - gamma) Q,    Q(x, a, m) = E[sum_t gamma^t y_t],    y_t the signal of step t in units of what an episode is
                                                                worth, divided by the T steps of an episode.

So q times the unit is what an episode costs if all its steps cost what the discounted mean of them says. This is the
one conversion between a budget d of an episode and a discounted critic: q * unit <= d, or Q <= (d / T) / (1 - gamma).
For a cost that is the same in every step it is exact; one that comes early counts more than one that comes late.

Targets follow the model's own trajectory of the policy before they ask a critic (lambda):

    G_t = (1 - gamma) y_t + gamma ((1 - lambda) q(x_{t+1}, a_{t+1}, m) + lambda G_{t+1}),

for the reward with the entropy of a_{t+1}: - (1 - gamma) alpha log pi(a_{t+1} | x_{t+1}). lambda = 0 is the paper's.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from ...networks import Network, apply_members, init_network
from ...optimisation import descend, usable
from ...types import PRNGKey, Scalar
from ..network.network_policy import Units, standardised
from ..network.segments import CODE

__all__ = ["TWO", "Critics", "Judged", "Pairs", "init_critics", "inputs", "learn", "q_values", "targets"]

TWO = 2
"""Networks in a pair, whose mean is the value: each alone overestimates what it was trained to be largest in."""
TRACKING = 0.03
"""How fast the followers follow, per update."""
MOST = 4.0
"""Targets of costs and uncertainty are at most so many of their units: what is beyond is as bad."""
CRITIC = optax.scale_by_adam()


class Pairs(NamedTuple):
    """Two networks for the reward, and two for costs and uncertainty together."""

    reward: Network
    others: Network


class Critics(NamedTuple):
    """Networks, slowly following copies that targets are made of, and the optimiser's state."""

    networks: Pairs
    followers: Pairs
    moments: Any


class Judged(NamedTuple):
    """States and actions on models, and what their values ought to be."""

    states: Float[Array, "n dx"]
    shares: Float[Array, "n da"]
    code: Float[Array, "n CODE"]
    """Of the model."""
    wanted: Float[Array, "n v"]


def init_critics(key: PRNGKey, states: int, actions: int, signals: int, width: int) -> Critics:
    """For states and actions of these sizes and so many signals: reward, costs, uncertainty."""
    reward_key, other_key = jax.random.split(key)
    inputs = (states + actions + CODE, width, width)
    networks = Pairs(
        init_network(reward_key, (*inputs, 1), members=TWO, last=0.1),
        init_network(other_key, (*inputs, signals - 1), members=TWO, last=0.1),
    )
    return Critics(networks, networks, CRITIC.init(networks))


def inputs(
    units: Units, x: Float[Array, "n dx"], shares: Float[Array, "n da"], code: Float[Array, "n CODE"]
) -> Float[Array, "n i"]:
    """What critics see: a state, an action, and which model."""
    return jnp.concatenate([standardised(units, x), shares, code], axis=1)


def q_values(networks: Pairs, seen: Float[Array, "n i"]) -> Float[Array, "2 n v"]:
    """q(x, a, m) of both networks of every signal."""
    return jnp.concatenate([apply_members(pair, seen) for pair in networks], axis=2)


def targets(
    signals: Float[Array, "H n v"],
    after: Float[Array, "H n v"],
    log_density: Float[Array, "H n"],
    temperature: Scalar,
    discount: float,
    trace: float,
) -> Float[Array, "H n v"]:
    """G_t. `after` and `log_density` are of the next state and action; reward is signal 0, the others are no gain."""
    entropy = -(1 - discount) * temperature * log_density

    def back(later: Array, now: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        signal, value, bonus = now
        ahead = ((1 - trace) * value + trace * later).at[:, 0].add(bonus)
        total = (1 - discount) * signal + discount * ahead
        return total, total

    _, found = jax.lax.scan(back, after[-1], (signals, after, entropy), reverse=True)
    return jnp.concatenate([found[..., :1], jnp.clip(found[..., 1:], 0, MOST)], axis=-1)


def learn(critics: Critics, units: Units, judged: Judged, rate: float) -> tuple[Critics, Scalar]:
    """The critics after one update towards what is wanted, and their loss before."""

    seen = inputs(units, judged.states, judged.shares, judged.code)

    def loss(networks: Pairs) -> Scalar:
        error = q_values(networks, seen) - judged.wanted[None]
        each = jnp.where(jnp.abs(error) < 1, 0.5 * error**2, jnp.abs(error) - 0.5)
        return jnp.sum(jnp.mean(each, axis=1))  # a sum, so that no network waits for another

    value, slopes = jax.value_and_grad(loss)(critics.networks)
    networks, moments = descend(CRITIC, usable(slopes), critics.moments, critics.networks, rate)
    followers = jax.tree.map(lambda old, new: (1 - TRACKING) * old + TRACKING * new, critics.followers, networks)
    return Critics(networks, followers, moments), value
