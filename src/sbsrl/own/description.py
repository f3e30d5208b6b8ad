"""What can be read off an opened system before anything is played: sizes, names, limits, how long an episode is."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from ..errors import UserError
from .settings import ROUNDING, OwnSettings

__all__ = ["Description", "describe_system"]

LONGEST = 1000
"""Control steps of an episode where neither the user nor the system says how many."""


class Description(NamedTuple):
    """The shape of a system."""

    state_names: tuple[str, ...]
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    horizon: int
    action_names: tuple[str, ...] = ()

    @property
    def state_size(self) -> int:
        return len(self.state_names)

    @property
    def action_size(self) -> int:
        return len(self.action_low)


def describe_system(env: gymnasium.Env[Any, Any], settings: OwnSettings, name: str) -> Description:
    """The shape; refuses what no planner can work with, and says what to do about it."""
    low, high = _limits(getattr(env, "action_space", None), settings, name)
    size = _size(getattr(env, "observation_space", None), name)
    if settings.state_names and len(settings.state_names) != size:
        raise UserError(
            f"state_names has {len(settings.state_names)} names, and an observation of {name} has {size} numbers."
        )
    if settings.action_names and len(settings.action_names) != len(low):
        raise UserError(f"action_names has {len(settings.action_names)} names, and {name} has {len(low)} actions.")
    return Description(
        state_names=settings.state_names or _own_names(env, size),
        action_low=low,
        action_high=high,
        horizon=_horizon(env, settings, name),
        action_names=settings.action_names or _action_names(len(low)),
    )


def _own_names(env: gymnasium.Env[Any, Any], size: int) -> tuple[str, ...]:
    """The names that the system has for its observations, else numbered ones."""
    given = getattr(env.unwrapped, "state_names", None)
    if isinstance(given, tuple | list) and len(given) == size:
        return tuple(map(str, given))
    return tuple(f"x{i}" for i in range(size))


def _action_names(size: int) -> tuple[str, ...]:
    return ("action",) if size == 1 else tuple(f"action{i}" for i in range(size))


def _limits(space: Any, settings: OwnSettings, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if isinstance(space, gymnasium.spaces.Discrete | gymnasium.spaces.MultiDiscrete | gymnasium.spaces.MultiBinary):
        raise UserError(
            f"the actions of {name} are {space}, and this program plans with numbers; wrap the system so that its "
            "action is a Box, such as a force that is rounded inside."
        )
    if not isinstance(space, gymnasium.spaces.Box):
        raise UserError(f"the actions of {name} are {space}; make them a Box of one dimension.")
    least, most = (np.asarray(part, float).reshape(-1) for part in (space.low, space.high))
    low, high = _given(settings.action_low, least, name), _given(settings.action_high, most, name)
    if wrong := [
        i for i, (a, b) in enumerate(zip(low, high, strict=True)) if not math.isfinite(a) or not math.isfinite(b)
    ]:
        raise UserError(
            f"action {wrong[0]} of {name} has no limits ({low[wrong[0]]:g} to {high[wrong[0]]:g}); give action_low and "
            "action_high, between which it may be chosen."
        )
    for i in range(len(low)):
        if not low[i] < high[i]:
            raise UserError(f"action {i} of {name} lies between {low[i]:g} and {high[i]:g}: swap the limits.")
        room = ROUNDING * (1 + abs(low[i]) + abs(high[i]))
        if low[i] < least[i] - room or high[i] > most[i] + room:
            raise UserError(
                f"action {i} of {name} is to lie between {low[i]:g} and {high[i]:g}, and the system takes {least[i]:g} "
                f"to {most[i]:g}; stay within that."
            )
    return tuple(low.tolist()), tuple(high.tolist())


def _given(given: Sequence[float], own: np.ndarray, name: str) -> np.ndarray:
    if not given:
        return own
    if len(given) != len(own):
        raise UserError(f"{len(given)} limits of actions were given, and {name} has {len(own)} numbers per action.")
    return np.array(given, float)


def _size(space: Any, name: str) -> int:
    try:
        return int(gymnasium.spaces.flatdim(space))
    except (ValueError, NotImplementedError, TypeError, AttributeError):
        raise UserError(
            f"the observations of {name} are {space}, which cannot be made a vector; wrap the system so that they are "
            "a Box."
        ) from None


def _horizon(env: gymnasium.Env[Any, Any], settings: OwnSettings, name: str) -> int:
    if settings.steps:
        return settings.steps
    spec, named = getattr(env, "spec", None), ("max_episode_steps", "_max_episode_steps")
    found = (env.get_wrapper_attr(word) for word in named if env.has_wrapper_attr(word))
    limit = getattr(spec, "max_episode_steps", None) or next(filter(None, found), None)
    if limit is None:
        raise UserError(f"{name} does not say how many steps an episode has; give steps, at most {LONGEST} or so.")
    return int(limit)
