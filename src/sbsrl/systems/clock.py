"""A clock in the observation: policies without a memory can act in a rhythm of their own.

A rhythm is what walking machines are commonly given. The observation ends with sin and cos of the clock's angle, which
goes round once in so many control steps and begins at 0 with every episode.
"""

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT

__all__ = ["AT_FIRST", "NAMES", "Clocked", "advanced"]

NAMES = ("clock sin", "clock cos")
AT_FIRST = (0.0, 1.0)


def advanced(clock: Float[Array, "2"], period: int) -> Float[Array, "2"]:
    """The clock a step later."""
    s, c = np.sin(2 * np.pi / period), np.cos(2 * np.pi / period)
    before = clock.astype(EXACT)
    return jnp.stack([before[0] * c + before[1] * s, before[1] * c - before[0] * s]).astype(clock.dtype)


class Clocked(gymnasium.Wrapper[np.ndarray, np.ndarray, np.ndarray, np.ndarray]):
    """An environment whose observations end with a clock of this period, in control steps."""

    def __init__(self, env: gymnasium.Env[np.ndarray, np.ndarray], period: int) -> None:
        super().__init__(env)
        inner = env.observation_space
        assert isinstance(inner, gymnasium.spaces.Box)
        low, high = (np.concatenate([edge, np.full(2, one)]) for edge, one in ((inner.low, -1.0), (inner.high, 1.0)))
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        self._period, self._steps = period, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._steps = 0
        return self._timed(observation), info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        observation, *rest = self.env.step(action)
        self._steps += 1
        return (self._timed(observation), *rest)  # type: ignore[return-value]

    def _timed(self, observation: np.ndarray) -> np.ndarray:
        angle = 2 * np.pi * self._steps / self._period
        return np.concatenate([observation, [np.sin(angle), np.cos(angle)]])
