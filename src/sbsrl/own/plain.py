"""A system as a pair of functions of plain Python, as an environment of Gymnasium."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from ..errors import UserError

__all__ = ["Pair", "PlainEnv", "as_pair"]

Vector = np.ndarray


class Pair(NamedTuple):
    """`reset(rng)` gives the first state; `step(x, a, rng)` the next one, alone or with what the step earned and cost.

    A step may return y, (y, reward) or (y, reward, info), where info is a mapping, or the cost.
    """

    reset: Callable[[np.random.Generator], Any]
    step: Callable[[Vector, Vector, np.random.Generator], Any]
    low: Any = None
    high: Any = None
    """Limits of the action, if it says so."""
    states: Sequence[str] | None = None
    """Names of the states, if it says so."""


def as_pair(thing: Any) -> Pair | None:
    """A pair (reset, step), or something that has both, such as a module; None if it is neither."""
    if isinstance(thing, Pair):
        return thing
    if isinstance(thing, tuple | list) and len(thing) == 2 and all(map(callable, thing)):
        return Pair(*thing)
    reset, step = getattr(thing, "reset", None), getattr(thing, "step", None)
    if isinstance(thing, gymnasium.Env) or not (callable(reset) and callable(step)) or _arguments(step) != 3:
        return None
    return Pair(reset, step, *(getattr(thing, name, None) for name in ("low", "high", "states")))


def _arguments(function: Callable[..., Any]) -> int | None:
    """How many arguments a function must be given; None if it does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in plain and each.default is inspect.Parameter.empty for each in parameters)


class PlainEnv(gymnasium.Env[Vector, Vector]):
    """The pair behind the boundary: it never ends by itself, and all its randomness comes from the seed of a reset."""

    def __init__(self, pair: Pair, low: Any = None, high: Any = None, states: int | None = None) -> None:
        """With limits of actions and a number of states, where the pair has none of its own. Nothing is reset."""
        low, high = (pair.low if low is None else low), (pair.high if high is None else high)
        if low is None or high is None:
            raise UserError(
                "the system does not say between which limits its actions lie; give action_low and action_high."
            )
        self._pair = pair
        limits = np.atleast_1d(np.asarray(low, float)), np.atleast_1d(np.asarray(high, float))
        if limits[0].shape != limits[1].shape or limits[0].ndim != 1:
            raise UserError(f"the actions have {limits[0].size} lower and {limits[1].size} upper limits; give as many.")
        self.action_space = gymnasium.spaces.Box(*limits, dtype=np.float64)
        self.state_names = tuple(pair.states or ())
        size = states or len(self.state_names)
        if not size:
            raise UserError("the system does not say what its observations are; give state_names, one for each number.")
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self._x: Vector | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, dict[str, Any]]:
        super().reset(seed=seed)
        self._x = _vector(self._pair.reset(self.np_random))
        return self._x.copy(), {}

    def step(self, action: Any) -> tuple[Vector, Any, bool, bool, dict[str, Any]]:
        if self._x is None:
            raise gymnasium.error.ResetNeeded("call reset() before the first step().")
        outcome = self._pair.step(self._x.copy(), np.asarray(action, float), self.np_random)
        y, reward, info = _read(outcome)
        self._x = _vector(y)
        return self._x.copy(), reward, False, False, info


def _vector(x: Any) -> Vector:
    return np.array(x, float).reshape(-1)


def _read(outcome: Any) -> tuple[Any, Any, dict[str, Any]]:
    """State, reward and info of what a step returned; a reward that it does not have is 0."""
    if not isinstance(outcome, tuple):
        return outcome, 0.0, {}
    if len(outcome) not in {2, 3}:
        raise UserError(f"step returned {len(outcome)} values; return y, (y, reward) or (y, reward, cost).")
    y, reward, *rest = outcome
    if not rest:
        return y, reward, {}
    return y, reward, dict(rest[0]) if isinstance(rest[0], dict) else {"cost": rest[0]}
