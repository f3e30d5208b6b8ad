"""One episode on the true system. Nothing outside of this function and its safe action resets or steps it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
from jaxtyping import Float, UInt32

from ..policy import Observant, Policy
from ..transitions import Ending, Episode
from ..types import PRNGKey
from .deadline import DeadlineExceeded, within
from .faults import FAILURES, Fault, Guard, Step, describe, read_action, read_metrics, read_observation, read_step, stop

__all__ = ["Guard", "Interrupted", "Played", "ResetFault", "run_episode"]

Env = gymnasium.Env[Any, Any]


class Played(NamedTuple):
    """What happened in an episode, and what the policy said about its decisions."""

    episode: Episode
    metrics: dict[str, list[float]]
    """By name, one number per step that is in the episode and has it."""


class ResetFault(Exception):  # noqa: N818  (it is the system's)
    """No episode began, because the system or the policy could not begin one: there is no initial state to record."""


class Interrupted(KeyboardInterrupt):
    """The user stopped the episode; `played` is what was played until then."""

    def __init__(self, played: Played) -> None:
        super().__init__(played.episode.reason)
        self.played = played


def run_episode(
    env: Env,
    policy: Policy,
    seed: int,
    key: PRNGKey,
    horizon: int,
    *,
    guard: Guard,
    on_step: Callable[[], None] = lambda: None,
) -> Played:
    """Resets the system once, with the seed, and lets the policy act for at most `horizon` steps.

    `key` is the randomness of the policy; `on_step` is called after each step. If the system or the policy fails, the
    policy sends nothing more, the safe action is sent once, and the steps before are returned, with the reason. Ctrl-C
    does the same and raises Interrupted. A system that cannot be reset raises ResetFault.
    """
    state = _begin(policy)
    log = _Log(guard, env.action_space.shape)
    try:
        ended, reason = _play_or_stop(env, policy, state, seed, key, horizon, log, on_step)
    except KeyboardInterrupt:
        ended, reason = "interrupted", f"the user stopped it; {_stop_anyway(env, log)}"
    except BaseException:  # not the system's fault, but it is moving
        _stop_anyway(env, log)
        raise
    if log.first is None:
        raise KeyboardInterrupt(reason) if ended == "interrupted" else ResetFault(reason)
    played = log.played(ended, reason)
    if ended == "interrupted":
        raise Interrupted(played)
    return played


def _begin(policy: Policy) -> Any:
    """The policy's state at the beginning of an episode. If it fails, the system is not reset."""
    try:
        return policy.init()
    except FAILURES as error:
        raise ResetFault(f"the policy raised {describe(error)} before the episode began") from error


class _Log:
    """What was played so far."""

    def __init__(self, guard: Guard, action_shape: tuple[int, ...] | None) -> None:
        self.guard, self.action_shape = guard, action_shape
        self.first: Float[np.ndarray, " dx"] | None = None
        self.steps: list[Step] = []
        self.decisions: list[Mapping[str, Any]] = []
        """The metrics of every decision, as the policy gave them."""

    @property
    def last(self) -> Float[np.ndarray, " dx"] | None:
        """The last good observation."""
        return self.steps[-1].state if self.steps else self.first

    def played(self, ended: Ending, reason: str) -> Played:
        steps = tuple(self.steps)  # a step that was given up may still add itself
        T, size = len(steps), self.action_shape or ()
        episode = Episode(
            states=np.array([self.first, *(step.state for step in steps)]),
            actions=np.array([step.action for step in steps], np.float64).reshape(T, *size),
            rewards=np.array([step.reward for step in steps], np.float64),
            costs=np.array([step.costs for step in steps], np.float64).reshape(T, self.guard.costs),
            ended=ended,
            reason=reason,
        )
        return Played(episode, _columns(self.decisions[:T]))


def _columns(decisions: list[Mapping[str, Any]]) -> dict[str, list[float]]:
    names = dict.fromkeys(name for metrics in decisions for name in metrics)
    return {name: [float(metrics[name]) for metrics in decisions if name in metrics] for name in names}


def _play_or_stop(
    env: Env,
    policy: Policy,
    state: Any,
    seed: int,
    key: PRNGKey,
    horizon: int,
    log: _Log,
    on_step: Callable[[], None],
) -> tuple[Ending, str]:
    """How the episode ended, and why if it was by a fault."""
    try:
        log.first = _reset(env, seed, log.guard)
        return _play(env, policy, state, key, horizon, log, on_step), ""
    except Fault as fault:
        return "fault", f"{fault}; {stop(env, log.guard, fault.hangs, log.last)}"


def _reset(env: Env, seed: int, guard: Guard) -> Float[np.ndarray, " dx"]:
    outcome = _call(guard, "the reset", lambda: env.reset(seed=seed))
    if not isinstance(outcome, tuple) or len(outcome) != 2:
        raise Fault("the reset did not return observation and info")
    x = read_observation(outcome[0], "after the reset", guard)
    if outside := guard.left(x):
        raise Fault(f"after the reset {outside}")
    return x


def _play(
    env: Env, policy: Policy, state: Any, key: PRNGKey, horizon: int, log: _Log, on_step: Callable[[], None]
) -> Ending:
    x, observant = log.first, isinstance(policy, Observant)
    for n in range(1, horizon + 1):
        action, state = _decide(policy, x, state, _plan_key(key, np.uint32(n - 1)), log)
        step = _call(log.guard, f"step {n}", _advance, env, action, log)
        if observant:
            state = _observe(policy, state, step)
        on_step()
        if outside := log.guard.left(step.state):
            raise Fault(f"after step {n} {outside}")
        if step.terminated:
            return "terminated"
        if step.truncated and n < horizon:
            return "truncated"
        x = step.state
    return "horizon"


def _observe(policy: Any, state: Any, step: Step) -> Any:
    """The policy's state after it was told what a step earned and cost."""
    try:
        return policy.observe(state, step.reward, step.costs)
    except FAILURES as error:
        raise Fault(f"the policy raised {describe(error)}, told of the outcome of a step") from error


@jax.jit
def _plan_key(key: PRNGKey, t: UInt32[Any, ""]) -> PRNGKey:
    """The randomness of decision t, from that of the episode."""
    plan_key, _ = jax.random.split(jax.random.fold_in(key, t))  # the other half was the noise of the system once
    return plan_key


def _decide(policy: Policy, x: Any, state: Any, key: PRNGKey, log: _Log) -> tuple[Float[np.ndarray, " da"], Any]:
    """The policy's next action, checked, and its state."""
    n = len(log.steps) + 1
    try:
        action, state, metrics = policy.act(jax.device_put(x), state, key)
        log.decisions.append(read_metrics(metrics, n))
        return read_action(action, n, log.action_shape, log.guard), state
    except Fault:
        raise
    except FAILURES as error:
        raise Fault(f"the policy raised {describe(error)}, asked for the action of step {n}") from error


def _advance(env: Env, action: Float[np.ndarray, " da"], log: _Log) -> Step:
    """One step, written down by the thread that makes it: Ctrl-C while it is waited for does not lose it."""
    outcome = env.step(action.copy())
    step = read_step(action, outcome, len(log.steps) + 1, log.guard)
    log.steps.append(step)
    return step


def _call(guard: Guard, what: str, function: Callable[..., Any], *args: Any) -> Any:
    """Calls the system. Whatever it raises is a Fault, and so is no answer in time."""
    try:
        return within(guard.step_timeout, function, *args)
    except Fault:
        raise
    except DeadlineExceeded as error:
        raise Fault(f"{what} did not return within {guard.step_timeout:g} s", hangs=True) from error
    except FAILURES as error:
        raise Fault(f"{what} raised {describe(error)}") from error


def _stop_anyway(env: Env, log: _Log) -> str:
    """`stop` within seconds, whatever the user presses meanwhile.

    A step that is still under way is waited for, since the safe action comes after it; if it hangs, `halt` is called.
    """
    try:
        return stop(env, log.guard.in_a_hurry(), last=log.last)
    except KeyboardInterrupt:
        return "whether the safe action arrived is not known, since the user stopped that too"
