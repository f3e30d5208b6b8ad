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

__all__ = ["SolverState", "init_state", "pushed"]


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
        memory=memory,
        backup=backup,
        evaluated=jnp.zeros((), bool),
        visited=visited,
        region=Region(network, jnp.asarray(radius, PLAN), jnp.zeros(costs, PLAN), jnp.ones((), PLAN)),
    )


def pushed(recent: Float[Array, " recent"], value: float) -> Float[Array, " recent"]:
    """With a new value in front, without the oldest."""
    return jnp.asarray(np.concatenate([[value], np.asarray(recent)[:-1]]).astype(np.float32))
