"""A user's system, opened and dressed: observations as vectors, all costs of a step in `info["cost"]`."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from ..errors import UserError
from ..systems.faults import FAILURES, Fault, describe
from ..systems.graphics import offer_backend
from .names import GYMNASIUM, find, is_local
from .plain import PlainEnv, as_pair
from .settings import OwnSettings
from .signals import Answer, Sources

__all__ = ["DressedEnv", "OwnSystem", "is_own"]

Env = gymnasium.Env[Any, Any]


def is_own(name: str) -> bool:
    """Whether a task of this name is a user's system, and not one of this package."""
    return ":" in name or name.endswith(".py")


@dataclass(frozen=True)
class OwnSystem:
    """A system by its name, with what was said of it."""

    spec: str
    settings: OwnSettings

    def open(self, watched: Callable[[Env], Env] = lambda env: env, render_mode: str | None = None) -> "DressedEnv":
        """Connects to it. Nothing is reset. A bystander may be put between the system and its dress.

        With a mode, the system is one that draws itself; a UserError says if it does not.
        """
        env = self._bare(render_mode)
        if render_mode is not None and env.render_mode != render_mode:
            env.close()
            raise UserError(
                f"the system {self.spec} cannot be drawn: it takes no render_mode='{render_mode}', as environments of "
                "Gymnasium do that draw themselves."
            )
        return DressedEnv(watched(env), Sources.of(self.settings))

    def _bare(self, render_mode: str | None) -> Env:
        if render_mode is not None:
            offer_backend()  # for what is drawn with MuJoCo; others ignore it
        if self.spec.startswith(GYMNASIUM):
            return self._registered(self.spec.removeprefix(GYMNASIUM), render_mode)
        return self._made(find(self.spec, "system"), render_mode)

    def _registered(self, identity: str, render_mode: str | None) -> Env:
        limit = {"max_episode_steps": self.settings.steps} if self.settings.steps else {}
        try:
            return gymnasium.make(identity, disable_env_checker=True, render_mode=render_mode, **limit)
        except FAILURES as error:
            raise UserError(f"gymnasium.make('{identity}') failed: {describe(error)}.") from error

    def _made(self, thing: Any, render_mode: str | None) -> Env:
        """An environment of what was found: itself, a pair of functions, or what a factory makes of nothing."""
        if isinstance(thing, gymnasium.Env):
            return _Kept(thing)
        if (pair := as_pair(thing)) is not None and not isinstance(thing, type):
            low, high = (part or None for part in (self.settings.action_low, self.settings.action_high))
            return PlainEnv(pair, low, high, len(self.settings.state_names) or None)
        if not callable(thing):
            raise UserError(
                f"the system {self.spec} is a {type(thing).__name__}; give an environment of Gymnasium, a function "
                "that makes one, or a pair of functions reset(rng), step(x, a, rng)."
            )
        try:
            made = thing(render_mode=render_mode) if _takes_mode(thing, render_mode) else thing()
        except FAILURES as error:
            raise UserError(f"the factory {self.spec} raised {describe(error)}.") from error
        if callable(made) and not isinstance(made, gymnasium.Env) and as_pair(made) is None:
            raise UserError(f"the factory {self.spec} made a {type(made).__name__}, which is no environment.")
        return made if isinstance(made, gymnasium.Env) else self._made(made, render_mode)

    @property
    def found_again(self) -> bool:
        """Whether another process can find all of it."""
        words = (self.spec, *(source for _, source in self.settings.costs), self.settings.reward)
        return not any(map(is_local, (*words, self.settings.simulator, self.settings.fallback)))


def _takes_mode(factory: Callable[..., Any], render_mode: str | None) -> bool:
    """Whether a mode is asked for, and the factory can be told."""
    try:
        return render_mode is not None and "render_mode" in inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some do not say what they take
        return False


class _Kept(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that its owner closes."""

    def close(self) -> None:
        pass


class DressedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The system as the learner wants it: vectors of double precision, the reward and the costs that were asked for.

    Actions are clipped to the limits of the system, which planners in single precision may exceed by a rounding.
    """

    def __init__(self, env: Env, sources: Sources) -> None:
        super().__init__(env)
        self._sources = sources
        self._x: np.ndarray | None = None
        space = getattr(env, "action_space", None)
        self._type = getattr(space, "dtype", None) or np.float64
        self._shape = getattr(space, "shape", None)
        if isinstance(space, gymnasium.spaces.Box):
            self._low, self._high = space.low.astype(np.float64), space.high.astype(np.float64)
            self.action_space = gymnasium.spaces.Box(self._low.reshape(-1), self._high.reshape(-1), dtype=np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        outcome: Any = self.env.reset(seed=seed) if options is None else self.env.reset(seed=seed, options=options)
        if not isinstance(outcome, tuple) or len(outcome) != 2:
            return outcome  # whoever asked complains
        self._x = self._vector(outcome[0])
        return self._x.copy(), outcome[1]

    def step(self, action: Any) -> Any:
        if self._x is None:
            raise gymnasium.error.ResetNeeded("call reset() before the first step().")
        a = np.asarray(action, float)
        sent = np.clip(a.reshape(a.shape if self._shape is None else self._shape), self._low, self._high).astype(
            self._type
        )
        outcome: Any = self.env.step(sent)
        if not isinstance(outcome, tuple) or len(outcome) not in {5, 6}:
            return outcome
        observation, reward, *charged, terminated, truncated, info = outcome
        answer = Answer(reward, info if isinstance(info, dict) else {}, *charged)
        x, self._x = self._x, self._vector(observation)
        costs = self._sources.charged(x, sent.reshape(-1).astype(float), self._x, answer)
        earned = self._sources.earned(x, sent.reshape(-1).astype(float), self._x, answer)
        return self._x.copy(), earned, terminated, truncated, {**answer.info, "cost": costs}

    def _vector(self, observation: Any) -> np.ndarray:
        """The observation as one vector: mappings and tuples part by part, in the order of Gymnasium."""
        space = getattr(self.env, "observation_space", None)
        try:
            if isinstance(observation, dict | tuple | list) and space is not None:
                return np.asarray(gymnasium.spaces.flatten(space, observation), np.float64)
            return np.array(observation, np.float64).reshape(-1)
        except FAILURES as error:
            raise Fault(f"the observation cannot be read as numbers: {describe(error)}") from error
