"""A policy that is a network, and its clone of a behaviour."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from ..._jax import EXACT, PLAN
from ...networks import Layer, Network, apply
from ...optimisation import descend
from ...policy import Metrics
from ...types import Action, PRNGKey, Scalar, State

__all__ = ["NetworkPolicy", "Units", "act", "clone", "constant", "standardised"]

INPUT_LIMIT = 5.0
"""Inputs are clipped to so many standard deviations of the data."""


class Units(eqx.Module):
    """In which a policy's network sees states and gives actions."""

    mean: Float[Array, " dx"]
    std: Float[Array, " dx"]
    low: Float[Array, " da"]
    high: Float[Array, " da"]


def standardised(units: Units, x: Float[Array, "n dx"]) -> Float[Array, "n dx"]:
    """States as networks see them."""
    seen = (x - jnp.broadcast_to(units.mean, x.shape)) / jnp.broadcast_to(units.std, x.shape)
    return jnp.clip(seen, -INPUT_LIMIT, INPUT_LIMIT)


def act(
    network: Network, units: Units, x: Float[Array, "n dx"], hand: Float[Array, "n da"] | None = None
) -> Float[Array, "n da"]:
    """The actions of a policy at these states, within their limits; `hand` is added, as shares of half the range."""
    shares = jnp.tanh(apply(network, standardised(units, x)))
    if hand is not None:
        shares = jnp.clip(shares + hand, -1.0, 1.0)
    middle, half = (units.high + units.low) / 2, (units.high - units.low) / 2
    return jnp.broadcast_to(middle, shares.shape) + jnp.broadcast_to(half, shares.shape) * shares


class NetworkPolicy(eqx.Module):
    """pi: a network of the state, without memory and without noise."""

    network: Network
    units: Units

    def init(self) -> tuple[()]:
        return ()

    def act(self, x: State, state: tuple[()], key: PRNGKey) -> tuple[Action, tuple[()], Metrics]:
        return _act(self, x), (), {}

    def actions(self, x: Float[Array, "n dx"]) -> Float[Array, "n da"]:
        return act(self.network, self.units, x)


@eqx.filter_jit
def _act(policy: NetworkPolicy, x: State) -> Action:
    return act(policy.network, policy.units, x.astype(PLAN)[None])[0]


MOST_SHARE = 0.999
"""Of half the range of actions: tanh gives no more."""


def constant(network: Network, units: Units, action: Float[Array, " da"]) -> Network:
    """A network of the same shape that always gives this action."""
    middle, half = (units.high + units.low) / 2, (units.high - units.low) / 2
    share = jnp.clip((action.astype(PLAN) - middle) / half, -MOST_SHARE, MOST_SHARE)
    *hidden, last = jax.tree.map(jnp.zeros_like, network)
    return (*hidden, last._replace(bias=jnp.arctanh(share)))


CLONING_RATE, CLONING_BATCH = 1e-3, 256
CLONING = optax.scale_by_adam()


def clone(
    network: Network,
    units: Units,
    states: Float[Array, "N dx"],
    actions: Float[Array, "N da"],
    updates: int,
    key: PRNGKey,
) -> Network:
    """The network after learning to act as in the data: squared errors of actions, in shares of half their range.

    A linear one is solved for: what hardly varies decides about balance, and would be learned last.
    """
    if len(network) > 1:
        return _learned(network, units, states, actions, updates, key)
    return (_solved(units, states, actions),) if updates else network


RIDGE = 1e-6
"""Of the squared weights, per transition."""


@eqx.filter_jit
def _solved(units: Units, states: Float[Array, "N dx"], actions: Float[Array, "N da"]) -> Layer:
    """The affine map before the tanh whose squared errors are least."""
    middle, half = (units.high + units.low) / 2, (units.high - units.low) / 2
    shares = jnp.clip((actions - middle[None]) / half[None], -MOST_SHARE, MOST_SHARE)
    z = standardised(units, states).astype(EXACT)
    inputs = jnp.concatenate([z, jnp.ones((len(z), 1), EXACT)], axis=1)
    gram = inputs.T @ inputs + RIDGE * len(z) * jnp.eye(inputs.shape[1], dtype=EXACT)
    found = jnp.linalg.solve(gram, inputs.T @ jnp.arctanh(shares.astype(EXACT))).astype(PLAN)
    return Layer(found[:-1], found[-1])


@eqx.filter_jit
def _learned(
    network: Network,
    units: Units,
    states: Float[Array, "N dx"],
    actions: Float[Array, "N da"],
    updates: int,
    key: PRNGKey,
) -> Network:
    half = (units.high - units.low) / 2

    def loss(network: Network, rows: Array) -> Scalar:
        error = (act(network, units, states[rows]) - actions[rows]) / jnp.broadcast_to(half, actions[rows].shape)
        return jnp.mean(error**2)

    def update(carry: tuple[Network, optax.OptState], key: PRNGKey) -> tuple[tuple[Network, optax.OptState], None]:
        network, moments = carry
        rows = jax.random.randint(key, (CLONING_BATCH,), 0, states.shape[0])
        return descend(CLONING, jax.grad(loss)(network, rows), moments, network, CLONING_RATE), None

    (network, _), _ = jax.lax.scan(update, (network, CLONING.init(network)), jax.random.split(key, updates))
    return network
