"""What of the next state and of the costs a task knows beforehand, so that no network has to learn it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._jax import PLAN
from .errors import UserError
from .types import Action, State
from .validation import Function, declared, validate

__all__ = ["CostStructure", "Structure"]

Part = Float[Array, " p"]
"""The part of a state that is predicted."""


@dataclass(frozen=True, eq=False)
class Structure:
    """Which part of a state changes in a way that must be learned, and how the rest follows from it.

    For a window of observations only the newest frame is new; the others move by one place.
    """

    part: tuple[int, ...]
    """Indices of the state whose change is predicted."""
    complete: Callable[[State, Action, Part], State] = declared(Function())
    """The next state, from the state, the action and the new values of the part."""

    def __post_init__(self) -> None:
        validate(self, "the structure's ")
        if not self.part or len(set(self.part)) < len(self.part) or min(self.part) < 0:
            raise UserError(f"the part of a state that is predicted is {self.part}; name indices, each once.")

    @staticmethod
    @lru_cache
    def whole(size: int) -> "Structure":
        """Nothing is known: all of the next state is predicted. The same object for the same size."""
        return Structure(tuple(range(size)), lambda x, a, new: new)


@dataclass(frozen=True, eq=False)
class CostStructure:
    """What is known of costs that must be learned: what decides them, and what a step costs at most.

    Obstacles, say, are places, whatever the speed. Networks that are shown the speed as well learn from contacts of a
    slow car and from free ways of a fast one that fast contacts are free.
    """

    inputs: tuple[int, ...]
    """Indices of (x, a) on which the shares of these limits depend that are charged."""
    most: Callable[[State], Float[Array, " k"]] | None = declared(Function(optional=True), None)
    """The most that a step from a state can cost; None: the limits of the costs, or what data show."""
    features: Callable[[Float[Array, " i"]], Float[Array, " q"]] | None = declared(Function(optional=True), None)
    """What of these inputs decides, as numbers of the order of 1; None: they themselves, in units of the data.

    What is nearest, say, of things in all directions: a maximum is hard to learn.
    """

    def __post_init__(self) -> None:
        validate(self, "the structure of the costs: ")
        if not self.inputs or len(set(self.inputs)) < len(self.inputs) or min(self.inputs) < 0:
            raise UserError(f"costs are said to depend on the inputs {self.inputs}; name indices of (x, a), each once.")

    @property
    def size(self) -> int:
        """How many numbers decide."""
        if self.features is None:
            return len(self.inputs)
        return self.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the features, where there are any."""
        assert self.features is not None
        found: tuple[int, ...] = jax.eval_shape(self.features, jax.ShapeDtypeStruct((len(self.inputs),), PLAN)).shape
        return found

    def deciding(self, x: Float[Array, "*n dx"], a: Float[Array, "*n da"]) -> Float[Array, "*n q"]:
        """These numbers, where there are features."""
        assert self.features is not None
        raw = jnp.concatenate([x, a], axis=-1)[..., np.array(self.inputs)]
        return jnp.vectorize(self.features, signature="(i)->(q)")(raw)
