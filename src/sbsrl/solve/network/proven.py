"""Policies that were tried: they passed the gate and then really cost little.

One is come back to when nothing new may be played, and one may be returned in the end.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._jax import PLAN
from ...networks import Network, equal

__all__ = ["Best", "Proven", "added", "best", "is_newest", "newest", "nothing_proven", "played_again"]

MOST = 8
"""How many are remembered."""


class Proven(NamedTuple):
    """The newest first. Places without episodes are empty."""

    networks: Network
    """With a first axis over the places."""
    costs: Float[Array, "places k"]
    """What each policy really cost, the mean over its episodes."""
    returns: Float[Array, " places"]
    """What each really earned, the mean over its episodes."""
    episodes: Int[Array, " places"]

    @property
    def any(self) -> bool:
        return bool(np.asarray(self.episodes)[0] > 0)


Costs = Float[np.ndarray, " k"]


def nothing_proven(form: Network, costs: int) -> Proven:
    """No policy yet; `form` is a network of their form."""
    networks = jax.tree.map(lambda leaf: jnp.zeros((MOST, *leaf.shape), leaf.dtype), form)
    return Proven(networks, jnp.zeros((MOST, costs), PLAN), jnp.zeros(MOST, PLAN), jnp.zeros(MOST, jnp.int32))


def newest(proven: Proven) -> Network:
    """The policy that is come back to."""
    network: Network = _columns(lambda column: column[0], proven.networks)
    return network


def is_newest(proven: Proven, network: Network) -> bool:
    """Whether this is the policy that is come back to."""
    return proven.any and equal(newest(proven), network)


class Best(NamedTuple):
    """The policy that really earned most."""

    network: Network
    earned: float


def best(proven: Proven) -> Best:
    """Of those that are remembered; there must be one."""
    earned = np.where(np.asarray(proven.episodes) > 0, np.asarray(proven.returns), -np.inf)
    place = int(np.argmax(earned))
    return Best(_columns(lambda column: column[place], proven.networks), float(earned[place]))


def added(proven: Proven, network: Network, costs: Costs, earned: float) -> Proven:
    """With a policy that was played once; the oldest is forgotten if there are too many."""
    one = Proven(network, jnp.asarray(costs, PLAN), jnp.asarray(earned, PLAN), jnp.ones((), jnp.int32))
    after: Proven = _columns(lambda column, value: np.concatenate([value[None], column[:-1]]), proven, one)
    return after


def played_again(proven: Proven, costs: Costs, earned: float, most: Costs) -> Proven:
    """After another episode of the newest one, which is forgotten if its mean costs are now above `most`."""
    means, returns, episodes = (np.array(part) for part in (proven.costs, proven.returns, proven.episodes))
    episodes[0] += 1
    means[0] += (costs - means[0]) / episodes[0]
    returns[0] += (earned - returns[0]) / episodes[0]
    if np.any(means[0] > most):
        before: Proven = _columns(lambda column: np.concatenate([column[1:], np.zeros_like(column[:1])]), proven)
        return before
    return proven._replace(costs=jnp.asarray(means), returns=jnp.asarray(returns), episodes=jnp.asarray(episodes))


def _columns(function: Callable[..., np.ndarray], *trees: Any) -> Any:
    """The function of every column, on the host: between two episodes nothing is compiled for it."""
    return jax.tree.map(lambda *leaves: jnp.asarray(function(*map(np.asarray, leaves))), *trees)
