"""A trust region: a policy acts nearly as the last one that proved itself, where the true system has been.

Pieces of episodes begin at states of earlier policies, and say something of a policy that would come to nearly the same
ones. How near that must be is found out: the radius grows with every policy that does what was foretold of it, and
shrinks with every one that does not. And models are asked for differences only: what the reference really cost more
than they say, its neighbours are believed to cost more as well.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...networks import Network
from ...types import Scalar
from .network_policy import Units, act

__all__ = ["Region", "after_another", "difference", "moved", "shortfall", "shrunk", "within"]

GROWTH, SHRINKAGE = 1.25, 0.5
"""By which the radius is multiplied after a policy that did what was foretold, and after one that did not."""
LARGEST, SMALLEST = 2.0, 0.1
"""No two actions are farther apart than their whole range, in halves of it; the radius is never below this share of the
first one."""
HALVINGS = 12


class Region(NamedTuple):
    """Where policies may be."""

    reference: Network
    """The last policy that did what was foretold of it."""
    radius: Scalar
    """How differently from it others may act: root mean square, as a share of half the actions' range."""
    costs: Float[Array, " k"]
    """What it really cost, the mean over its episodes; at first those of the data that it is a clone of."""
    episodes: Scalar


def difference(one: Network, other: Network, units: Units, states: Float[Array, "n dx"]) -> Scalar:
    """How differently two policies act at these states: root mean square, as a share of half the actions' range."""
    half = (units.high - units.low) / 2
    apart = (act(one, units, states) - act(other, units, states)) / half[None]
    return jnp.sqrt(jnp.mean(apart**2))


@eqx.filter_jit
def within(network: Network, region: Region, units: Units, states: Float[Array, "n dx"]) -> Network:
    """The network itself if it is within the region, else the farthest found on the way to it that is."""
    states, reference = states.astype(PLAN), region.reference

    def between(share: Scalar) -> Network:
        mixed: Network = jax.tree.map(lambda old, new: old + share * (new - old), reference, network)
        return mixed

    def near(one: Network) -> Array:
        return difference(one, reference, units, states) <= region.radius

    def halve(limits: tuple[Scalar, Scalar], _: None) -> tuple[tuple[Scalar, Scalar], None]:
        low, high = limits
        middle = (low + high) / 2
        inside = near(between(middle))
        return (jnp.where(inside, middle, low), jnp.where(inside, high, middle)), None

    (share, _), _ = jax.lax.scan(halve, (jnp.zeros((), PLAN), jnp.ones((), PLAN)), None, HALVINGS)
    return between(jnp.where(near(network), 1.0, share).astype(PLAN))


def shortfall(region: Region, foretold: Float[Array, " k"]) -> Float[Array, " k"]:
    """By how much more the reference really costs than is foretold of it, if it does."""
    return jnp.maximum(region.costs - foretold, 0)


def after_another(region: Region, costs: Float[np.ndarray, " k"]) -> Region:
    """After another episode of the reference."""
    episodes = float(region.episodes) + 1
    mean = np.asarray(region.costs) + (costs - np.asarray(region.costs)) / np.float32(episodes)
    return region._replace(costs=jnp.asarray(mean, PLAN), episodes=jnp.asarray(episodes, PLAN))


def moved(region: Region, network: Network, costs: Float[np.ndarray, " k"]) -> Region:
    """About a policy that did what was foretold, and wider."""
    radius = min(float(region.radius) * GROWTH, LARGEST)
    return Region(network, jnp.asarray(radius, PLAN), jnp.asarray(costs, PLAN), jnp.ones((), PLAN))


def shrunk(region: Region, first: float) -> Region:
    """After a policy that did not do what was foretold."""
    return region._replace(radius=jnp.asarray(max(float(region.radius) * SHRINKAGE, SMALLEST * first), PLAN))
