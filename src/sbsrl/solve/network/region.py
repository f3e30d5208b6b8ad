"""A trust region: a policy acts nearly as the last one that proved itself, where the true system has been.

Pieces of episodes begin at states of earlier policies, and say something of a policy that would come to nearly the same
ones. How near that must be is found out: the radius grows with every policy that does what was foretold of it, and
shrinks with every one that does not.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...networks import Network
from ...types import Scalar
from .network_policy import Units, act

__all__ = ["adapted", "adapted_reserve", "difference", "within"]

GROWTH, SHRINKAGE = 1.25, 0.5
"""By which the radius is multiplied after a policy that did what was foretold, and after one that did not."""
LARGEST = 2.0
"""No two actions are farther apart than their whole range, in halves of it."""
HALVINGS = 12


def difference(one: Network, other: Network, units: Units, states: Float[Array, "n dx"]) -> Scalar:
    """How differently two policies act at these states: root mean square, as a share of half the actions' range."""
    half = (units.high - units.low) / 2
    apart = (act(one, units, states) - act(other, units, states)) / half[None]
    return jnp.sqrt(jnp.mean(apart**2))


@eqx.filter_jit
def within(network: Network, reference: Network, units: Units, states: Float[Array, "n dx"], radius: Scalar) -> Network:
    """The network itself if it is that near to the reference, else the farthest found between the two that is."""
    states = states.astype(PLAN)

    def between(share: Scalar) -> Network:
        mixed: Network = jax.tree.map(lambda old, new: old + share * (new - old), reference, network)
        return mixed

    def halve(limits: tuple[Scalar, Scalar], _: None) -> tuple[tuple[Scalar, Scalar], None]:
        low, high = limits
        middle = (low + high) / 2
        near = difference(between(middle), reference, units, states) <= radius
        return (jnp.where(near, middle, low), jnp.where(near, high, middle)), None

    (share, _), _ = jax.lax.scan(halve, (jnp.zeros((), PLAN), jnp.ones((), PLAN)), None, HALVINGS)
    share = jnp.where(difference(network, reference, units, states) <= radius, 1.0, share)
    return between(share.astype(PLAN))


MISSES, MOST_RESERVE, TOLERANCE = 0.1, 0.8, 0.1
"""Share of the episodes that may cost more than was foretold, in the long run; the largest reserve, and by how much an
episode may cost more and yet be as foretold, as shares of the budget."""


def adapted_reserve(reserve: Scalar, rate: float, over: Float[np.ndarray, " k"]) -> Scalar:
    """The reserve after an episode whose costs exceeded the dearest sample's by so many budgets (adaptive conformal).

    It grows by rate (1 - alpha) if that is more than is tolerated of any of them, and else falls by rate alpha: while
    it stays within its limits, a share alpha of the episodes is missed in the long run.
    """
    missed = bool(np.any(over > TOLERANCE))
    return jnp.asarray(np.clip(float(reserve) + rate * (missed - MISSES), 0, MOST_RESERVE), PLAN)


def adapted(radius: Scalar, first: float, foretold: bool) -> Scalar:
    """The radius after an episode of a new policy, between a tenth of the first one and as far as actions go."""
    after = float(radius) * (GROWTH if foretold else SHRINKAGE)
    return jnp.asarray(min(max(after, first / 10), LARGEST), PLAN)
