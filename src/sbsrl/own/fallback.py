"""A user's controller as a policy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..policy import Metrics
from ..types import PRNGKey

__all__ = ["Fallback"]


class Fallback:
    """A function of an observation, kept within the limits of the action. It remembers nothing."""

    def __init__(
        self, function: Callable[[np.ndarray], Any], low: tuple[float, ...], high: tuple[float, ...], states: int
    ) -> None:
        """`states` numbers of what it is given are the observation."""
        self._function, self._states = function, states
        self._low, self._high = np.array(low, float), np.array(high, float)

    def init(self) -> tuple[()]:
        return ()

    def act(self, x: Any, state: tuple[()], key: PRNGKey) -> tuple[Any, tuple[()], Metrics]:
        """The function's action; one that is not a number is passed on, for others to refuse."""
        action = np.array(self._function(np.array(x, float)[: self._states]), float).reshape(-1)
        return np.clip(action, self._low, self._high) if len(action) == len(self._low) else action, (), {}
