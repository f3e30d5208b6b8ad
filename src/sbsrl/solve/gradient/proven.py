"""Policies to come back to when nothing new may be played: those that passed the gate and then really cost little."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..._jax import PLAN
from ...networks import Network

__all__ = ["Proven", "added", "is_newest", "newest", "nothing_proven", "played_again"]

MOST = 8
"""How many are remembered."""


class Proven(NamedTuple):
    """The newest first. Places without episodes are empty."""

    networks: Network
    """With a first axis over the places."""
    costs: Float[Array, "places k"]
    """What each policy really cost, the mean over its episodes."""
    episodes: Int[Array, " places"]

    @property
    def any(self) -> bool:
        return bool(self.episodes[0] > 0)


def nothing_proven(form: Network, costs: int) -> Proven:
    """No policy yet; `form` is a network of their form."""
    networks = jax.tree.map(lambda leaf: jnp.zeros((MOST, *leaf.shape), leaf.dtype), form)
    return Proven(networks, jnp.zeros((MOST, costs), PLAN), jnp.zeros(MOST, jnp.int32))


def newest(proven: Proven) -> Network:
    """The policy that is come back to."""
    network: Network = jax.tree.map(lambda leaf: leaf[0], proven.networks)
    return network


def is_newest(proven: Proven, network: Network) -> bool:
    """Whether this is the policy that is come back to."""
    pairs = zip(jax.tree.leaves(newest(proven)), jax.tree.leaves(network), strict=True)
    return proven.any and all(bool(jnp.array_equal(one, other)) for one, other in pairs)


def added(proven: Proven, network: Network, costs: Float[Array, " k"]) -> Proven:
    """With a policy that was played once; the oldest is forgotten if there are too many."""
    one = Proven(network, jnp.asarray(costs, PLAN), jnp.ones((), jnp.int32))
    push = lambda column, value: jnp.concatenate([value[None], column[:-1]])  # noqa: E731
    after: Proven = jax.tree.map(push, proven, one)
    return after


def played_again(proven: Proven, costs: Float[Array, " k"], most: Float[Array, " k"]) -> Proven:
    """After another episode of the newest one, which is forgotten if its mean costs are now above `most`."""
    count = proven.episodes[0]
    mean = proven.costs[0] + (jnp.asarray(costs, PLAN) - proven.costs[0]) / (count + 1).astype(PLAN)
    if bool(jnp.any(mean > most)):
        return jax.tree.map(lambda column: jnp.concatenate([column[1:], jnp.zeros_like(column[:1])]), proven)
    return proven._replace(costs=proven.costs.at[0].set(mean), episodes=proven.episodes.at[0].set(count + 1))
