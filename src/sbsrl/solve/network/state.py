"""What a solver of networks remembers between episodes."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._jax import PLAN
from ...networks import Network
from ...types import Flag, Scalar
from .gate import CLONED
from .improver import OPTIMISER
from .outlook import Visited
from .proven import Proven, nothing_proven
from .region import Region
from .segments import Critic

__all__ = ["COMPARED", "SolverState", "init_state", "pushed", "times_dearer"]


class SolverState(NamedTuple):
    """What is remembered between episodes."""

    network: Network
    moments: Any
    multipliers: Float[Array, " k"]
    """The mean over the samples, which are drawn anew: none of the new ones is one of the old."""
    curiosity: Scalar
    cloned: Network
    """Of the behaviour of the data."""
    prior: Network
    """What the offline phase made of it: the prior policy of filters and monitors."""
    proven: Proven
    """Policies that passed the check and then really cost little."""
    played: Network
    origin: Int[Array, ""]
    """Of what was played."""
    cleared: Flag
    """Whether what was played had passed the gate."""
    promised: Scalar
    """The return that the samples promised of what was played."""
    optimism: Float[Array, " recent"]
    """By how much such promises exceeded what was earned, in the last episodes."""
    foretold: Float[Array, " k"]
    """What what was played would cost, the mean over the samples."""
    compared: Float[Array, "compared 2 k"]
    """What was really paid, and what had been foretold, in the last episodes of policies that had passed the gate; at
    first what the data cost, and what is foretold of their clone."""
    memory: Any
    """Of the improver."""
    backup: Critic
    """Of the prior policy: used where episodes go over to it."""
    evaluated: Flag
    """Whether that has learned anything."""
    visited: Visited
    """States of the last episodes, where pieces begin."""
    region: Region
    """In which new policies must be."""


RECENT = 8
"""Episodes over which promises are compared with what was earned."""
COMPARED = 16
"""The same for costs, which differ more from episode to episode."""


def init_state(
    network: Network, costs: int, memory: Any, backup: Critic, visited: Visited, radius: float
) -> SolverState:
    """With a network that has learned nothing."""
    return SolverState(
        network=network,
        moments=OPTIMISER.init(network),
        multipliers=jnp.zeros(costs, PLAN),
        curiosity=jnp.zeros((), PLAN),
        cloned=network,
        prior=network,
        proven=nothing_proven(network, costs),
        played=network,
        origin=jnp.asarray(CLONED, jnp.int32),
        cleared=jnp.zeros((), bool),
        promised=jnp.zeros((), PLAN),
        optimism=jnp.zeros(RECENT, PLAN),
        foretold=jnp.zeros(costs, PLAN),
        compared=jnp.zeros((COMPARED, 2, costs), PLAN),
        memory=memory,
        backup=backup,
        evaluated=jnp.zeros((), bool),
        visited=visited,
        region=Region(network, jnp.asarray(radius, PLAN), jnp.zeros(costs, PLAN), jnp.ones((), PLAN)),
    )


def times_dearer(compared: Float[Array, "compared 2 k"]) -> Float[Array, " k"]:
    """How many times what was foretold was really paid, all episodes together; 1 if it was less.

    Costs are taken to be positive. What models forget makes real costs a multiple of what they foretell: a bound that
    is divided by this can be kept by whoever can make the cost small, which one cannot from which it is subtracted.
    """
    paid, foretold = jnp.sum(compared, axis=0)
    return jnp.maximum(paid, foretold + NOTHING) / (foretold + NOTHING)


NOTHING = 1e-6


def pushed(recent: Float[Array, "recent ..."], value: float | Float[np.ndarray, "..."]) -> Float[Array, "recent ..."]:
    """With a new value in front, without the oldest."""
    return jnp.asarray(np.concatenate([np.asarray(value)[None], np.asarray(recent)[:-1]]).astype(np.float32))
