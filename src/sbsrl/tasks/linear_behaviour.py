"""A behaviour that was searched for on the simulation: actions linear in the observation, with an unsteady hand."""

from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT
from ..archive import read_arrays
from ..policy import Metrics
from ..types import Action, PRNGKey, Scalar, State

__all__ = ["Linear", "Searched", "read_searched"]

MEMORY = 0.8
"""Of the hand, per control step."""
FARTHEST = 5.0
"""Standard deviations beyond which an observation counts no more."""


class Searched(NamedTuple):
    """What a search left in a file: a policy, and observations with which episodes begin."""

    mean: Float[np.ndarray, " dx"]
    spread: Float[np.ndarray, " dx"]
    weights: Float[np.ndarray, "da dx"]
    offset: Float[np.ndarray, " da"]
    starts: Float[np.ndarray, "K dx"]

    def start(self, key: PRNGKey) -> State:
        """One of the observations with which episodes begin."""
        return jnp.asarray(self.starts, EXACT)[jax.random.randint(key, (), 0, len(self.starts))]


def read_searched(name: str) -> Searched:
    """The file of that name among those that come with the package."""
    arrays = read_arrays(Path(__file__).parent / "data" / f"{name}.npz")
    return Searched(*(arrays[part] for part in Searched._fields))


class Linear(eqx.Module):
    """a = clip(W z + b + hand), z the standardised observation, clipped as well.

    A clock at the end of the observation is not looked at.
    """

    mean: Float[Array, " dx"]
    spread: Float[Array, " dx"]
    weights: Float[Array, "da dx"]
    offset: Float[Array, " da"]
    low: Float[Array, " da"]
    high: Float[Array, " da"]
    unsteadiness: Scalar
    """Standard deviation of the hand, as a share of half the action range."""
    memory: float = MEMORY
    """Of the hand, per control step. Who clones a behaviour whose hand has one learns wrong gains: states show what the
    hand did, and so foretell what it does."""

    @classmethod
    def of(
        cls,
        searched: Searched,
        low: tuple[float, ...],
        high: tuple[float, ...],
        vigour: Scalar,
        unsteadiness: Scalar,
        memory: float = MEMORY,
    ) -> "Linear":
        """The policy of a file, whose weights are multiplied by its vigour."""
        mean, spread, weights, offset = (jnp.asarray(part, EXACT) for part in searched[:4])
        return cls(
            mean,
            spread,
            vigour * weights,
            offset,
            jnp.asarray(low, EXACT),
            jnp.asarray(high, EXACT),
            unsteadiness,
            memory,
        )

    def init(self) -> Float[Array, " da"]:
        return jnp.zeros_like(self.offset)

    def act(self, x: State, state: Float[Array, " da"], key: PRNGKey) -> tuple[Action, Float[Array, " da"], Metrics]:
        """The state is the hand's, which wanders."""
        action, hand = _act(self, x, state, key)
        return action, hand, {}


@eqx.filter_jit
def _act(policy: Linear, x: State, hand: Float[Array, " da"], key: PRNGKey) -> tuple[Action, Float[Array, " da"]]:
    shaken = jax.random.normal(key, hand.shape, EXACT) * (policy.high - policy.low) / 2
    memory = policy.memory
    hand = memory * hand + policy.unsteadiness * np.sqrt(1 - memory**2) * shaken
    x = x[: len(policy.mean)]
    z = jnp.clip((x - policy.mean) / policy.spread, -FARTHEST, FARTHEST)
    return jnp.clip(policy.weights @ z + policy.offset + hand, policy.low, policy.high), hand
