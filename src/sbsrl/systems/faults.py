"""What may go wrong on the true system, and what is done about it: checks of all that is sent and received.

Steps are counted from 1: step n is the n-th call of `env.step`, and what it returns is the observation at step n.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
from jaxtyping import Float

from ..policy import Controller, Policy
from ..task import Task
from .deadline import DeadlineExceeded, within

__all__ = [
    "FAILURES",
    "Fault",
    "Guard",
    "Step",
    "describe",
    "read_action",
    "read_metrics",
    "read_observation",
    "read_step",
    "stop",
]


FAILURES = (Exception, SystemExit, GeneratorExit)
"""All that a system may raise but KeyboardInterrupt, which is the user's."""

STEP_TIMEOUT = 60.0
"""Seconds that a system may take to answer, unless something else is said."""
HURRY = 3.0
"""Seconds that it may take when the user has asked to stop."""
ROUNDING = 1e-6
"""By this share of its range an action may lie beyond its limits: planners compute in single precision."""


class Guard(NamedTuple):
    """What an episode on the true system has to keep to."""

    state_size: int
    costs: int
    """k: how many costs a step has."""
    step_timeout: float = 0.0
    """Seconds that `reset` and each `step` may take; 0 sets no limit."""
    safe_action: tuple[float, ...] | None = None
    """What is sent when the episode is cut short; None asks the fallback policy, and without one sends nothing."""
    state_names: tuple[str, ...] = ()
    """For messages; without them states have numbers, from 0."""
    fallback: Policy | None = None
    """A safe policy: its action at the last good observation is sent where no safe action is known."""
    action_limits: tuple[tuple[float, float], ...] | None = None
    """Between which each number of an action lies; None sets no limits."""
    region: tuple[tuple[float, float], ...] | None = None
    """Between which each number of an observation must stay; None sets no limits."""

    @classmethod
    def of(cls, task: Task, step_timeout: float = STEP_TIMEOUT) -> "Guard":
        """What the task says about it."""
        return cls(
            state_size=task.state_size,
            costs=len(task.costs),
            step_timeout=step_timeout,
            safe_action=task.safe_action,
            state_names=task.state_names,
            fallback=task.prior.policy,
            action_limits=tuple(zip(task.action_low, task.action_high, strict=True)),
            region=task.region,
        )

    def left(self, x: Float[np.ndarray, " dx"]) -> str | None:
        """Where an observation is outside the region, in words; None if it is inside."""
        for i, (value, (low, high)) in enumerate(zip(x, self.region or (), strict=False)):
            if not low <= value <= high:
                name = self.state_names[i] if i < len(self.state_names) else f"state {i}"
                return f"{name} is {value:g}, outside the allowed region from {low:g} to {high:g}"
        return None

    def in_a_hurry(self) -> "Guard":
        """The same with less patience, for a user who waits."""
        return self._replace(step_timeout=min(self.step_timeout, HURRY))


class Fault(Exception):  # noqa: N818  (the system's, or the policy's)
    """Why the episode cannot go on, in a sentence."""

    def __init__(self, reason: str, hangs: bool = False) -> None:
        super().__init__(reason)
        self.hangs = hangs
        """Whether a call of the system is still under way, so that it cannot be sent anything."""


class Step(NamedTuple):
    """What one step was and gave."""

    action: Float[np.ndarray, " da"]
    state: Float[np.ndarray, " dx"]
    reward: float
    costs: Float[np.ndarray, " k"]
    terminated: bool
    truncated: bool


def read_observation(observation: Any, when: str, guard: Guard) -> Float[np.ndarray, " dx"]:
    """The observation as a new array of `state_size` finite numbers; `when` says in a Fault which one it is."""
    x = _numbers(observation, f"the observation {when}")
    if x.shape != (guard.state_size,):
        raise Fault(f"the observation {when} has shape {x.shape}, not ({guard.state_size},)")
    _finite(x, f"the observation {when}", guard.state_names)
    return x


def read_action(action: Any, n: int, shape: tuple[int, ...] | None, guard: Guard) -> Float[np.ndarray, " da"]:
    """The policy's action for step n as a new array in double precision: of this shape, finite, within its limits."""
    return _action(action, f"the policy's action for step {n}", shape, guard)


def _action(action: Any, what: str, shape: tuple[int, ...] | None, guard: Guard) -> Float[np.ndarray, " da"]:
    a = _numbers(action, what)
    if a.shape != shape:
        raise Fault(f"{what} has shape {a.shape}, not {shape}; it was not sent")
    _finite(a, what, note="; it was not sent")
    for value, (low, high) in zip(a.ravel(), guard.action_limits or (), strict=False):
        room = ROUNDING * (high - low)
        if not low - room <= value <= high + room:
            raise Fault(f"{what} is {value:g}, not between {low:g} and {high:g}; it was not sent")
    return a


def read_metrics(metrics: Mapping[str, Any], n: int) -> Mapping[str, Any]:
    """The metrics as they are, not waited for: scalars, so that they can be converted after the episode."""
    for name, value in metrics.items():
        if not isinstance(value, int | float | np.generic | np.ndarray | jax.Array) or np.ndim(value):
            raise Fault(f"the policy's metric '{name}' for step {n} is not a scalar")
    return metrics


def read_step(action: Float[np.ndarray, " da"], outcome: Any, n: int, guard: Guard) -> Step:
    """What step n gave, from what `env.step` returned."""
    if not isinstance(outcome, tuple) or len(outcome) != 5:
        raise Fault(f"step {n} did not return observation, reward, terminated, truncated and info")
    observation, reward, terminated, truncated, info = outcome
    x = read_observation(observation, f"at step {n}", guard)
    return Step(action, x, _reward(reward, n), _costs(info, n, guard.costs), bool(terminated), bool(truncated))


def _reward(reward: Any, n: int) -> float:
    r = _numbers(reward, f"the reward of step {n}")
    if r.size != 1:
        raise Fault(f"the reward of step {n} is {r.size} numbers, not one")
    _finite(r.ravel(), f"the reward of step {n}")
    return float(r.ravel()[0])


def _costs(info: Any, n: int, k: int) -> Float[np.ndarray, " k"]:
    if not isinstance(info, Mapping) or "cost" not in info:
        raise Fault(f"the info of step {n} has no 'cost'")
    costs = np.atleast_1d(_numbers(info["cost"], f"the cost of step {n}"))
    if costs.shape != (k,):
        raise Fault(f"step {n} has costs of shape {costs.shape}, not ({k},)")
    _finite(costs, f"the cost of step {n}")
    return costs


def _numbers(value: Any, what: str) -> Float[np.ndarray, "..."]:
    try:
        if np.iscomplexobj(value):
            raise TypeError("complex numbers")
        return np.array(value, np.float64)
    except FAILURES as error:
        raise Fault(f"{what} is not made of numbers: it is of type {type(value).__name__}") from error


def _finite(values: Float[np.ndarray, " n"], what: str, names: tuple[str, ...] = (), note: str = "") -> None:
    with np.errstate(over="ignore"):
        wrong = np.flatnonzero(~np.isfinite(values.astype(np.float32)))  # the precision of planning
    if wrong.size:
        labels = [f"'{names[i]}'" if i < len(names) else f"entry {i}" for i in wrong]
        parts = ", ".join(f"{label} is {values[i]:g}" for label, i in zip(labels, wrong, strict=True))
        raise Fault(f"{what} is not finite: {parts}{note}")


def stop(env: gymnasium.Env[Any, Any], guard: Guard, hangs: bool = False, last: Any = None) -> str:
    """Sends the safe action once and says in words what came of it. It raises nothing but KeyboardInterrupt.

    `last` is the last good observation, at which a fallback policy is asked.

    While a call of the system hangs nothing can be sent: an environment may then have a method `halt`, which is called
    from another thread and should bring the machine to rest.
    """
    if hangs:
        return _halt(env, guard)
    try:
        action = _safe_action(env, guard, last)
    except Fault as fault:
        return str(fault)
    except FAILURES as error:
        return f"the fallback policy raised {describe(error)}, and no safe action was sent"
    return "no safe action is known, and none was sent" if action is None else _send(env, action, guard)


def _send(env: gymnasium.Env[Any, Any], action: Float[np.ndarray, " da"], guard: Guard) -> str:
    try:
        within(guard.step_timeout, env.step, action)
    except DeadlineExceeded:
        return f"the safe action did not return within {guard.step_timeout:g} s, and {_halt(env, guard)}"
    except FAILURES as error:
        return f"sending the safe action raised {describe(error)}"
    return "the safe action was sent"


def _safe_action(env: gymnasium.Env[Any, Any], guard: Guard, last: Any) -> Float[np.ndarray, " da"] | None:
    """The safe action, or that of the fallback policy, as if an episode began at the last good observation."""
    if guard.safe_action is not None:
        return np.asarray(guard.safe_action, np.float64)
    if guard.fallback is None or last is None:
        return None
    return _action(Controller(guard.fallback)(last), "the fallback policy's action", env.action_space.shape, guard)


def _halt(env: gymnasium.Env[Any, Any], guard: Guard) -> str:
    halt = getattr(env.unwrapped, "halt", None)
    if halt is None:
        return "no safe action could be sent, since the system does not answer"
    try:
        within(guard.step_timeout, halt)
    except FAILURES as error:
        return f"halt() raised {describe(error)}"
    return "the system was halted"


def describe(error: BaseException) -> str:
    """The kind of the error and its first line."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
