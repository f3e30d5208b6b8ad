"""What of the next state a task knows beforehand, so that no network has to learn it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from jaxtyping import Array, Float

from .errors import UserError
from .types import Action, State
from .validation import Function, declared, validate

__all__ = ["Structure"]

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
