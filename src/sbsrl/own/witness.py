"""What a system does when it is used, noted down by a bystander: for whoever looks for what is wrong with it."""

from time import perf_counter
from typing import Any

import gymnasium
import numpy as np

__all__ = ["Witness"]


class Witness(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The same system; all that it answers is noted as it was."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.outside: list[str] = []
        """Observations that are not in the space that the system declares, in words."""
        self.seconds: list[float] = []
        """How long each step took."""
        self.ended = False
        """Whether the system has said that the episode is over."""

    def reset(self, **options: Any) -> Any:
        outcome: Any = self.env.reset(**options)
        self.ended = False
        if isinstance(outcome, tuple) and outcome:
            self._note(outcome[0], "after the reset")
        return outcome

    def step(self, action: Any) -> Any:
        started = perf_counter()
        outcome: Any = self.env.step(action)
        self.seconds.append(perf_counter() - started)
        if isinstance(outcome, tuple) and len(outcome) in {5, 6}:
            self._note(outcome[0], f"at step {len(self.seconds)}")
            self.ended = bool(outcome[-3]) or bool(outcome[-2])
        return outcome

    def _note(self, observation: Any, when: str) -> None:
        space = getattr(self.env, "observation_space", None)
        if space is None:
            return
        plain = isinstance(space, gymnasium.spaces.Box) and not isinstance(observation, np.ndarray)
        if plain or not space.contains(observation):  # a Box casts what is no array, and warns
            self.outside.append(f"{when}: {_why(space, observation)}")


def _why(space: Any, observation: Any) -> str:
    """Why an observation is not in a space, as far as that can be said in a few words."""
    if not isinstance(space, gymnasium.spaces.Box):
        return f"{type(observation).__name__} is not in {type(space).__name__}"
    if not isinstance(observation, np.ndarray):
        return f"it is a {type(observation).__name__}, not an array"
    if observation.shape != space.shape:
        return f"its shape is {observation.shape}, not {space.shape}"
    if not np.can_cast(observation.dtype, space.dtype):
        return f"it is {observation.dtype}, and {space.dtype} is declared"
    beyond = np.flatnonzero(~((observation >= space.low) & (observation <= space.high)))  # NaN is neither
    i = int(beyond[0]) if len(beyond) else 0
    low, high, value = (float(np.asarray(part).ravel()[i]) for part in (space.low, space.high, observation))
    return f"number {i} is {value:g}, not between {low:g} and {high:g}"
