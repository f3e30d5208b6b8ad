"""Behaviours that make offline data: careful ones on the true system, and questions to a simulator."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from ._jax import EXACT
from .costs import Cost, aggregate
from .errors import UserError
from .policy import Metrics, Policy
from .systems.episode import Guard, Interrupted, ResetFault, run_episode
from .task import Task
from .transitions import Episode, Transitions
from .types import Action, PRNGKey, State

__all__ = ["BEHAVIOURS", "HOLD", "SHARE_OF_BUDGET", "Behaviour", "CollectionInterrupted", "CutShort", "record"]

HOLD = 3
"""Control steps for which a wandering action is held: shorter ones average out and go nowhere."""

SHARE_OF_BUDGET = 1 / 3
"""A wandering episode ends when this much of a budget is used up: far from any violation."""


class Wanderer(eqx.Module):
    """A policy of random actions, each held for a while. Its state is the number of steps taken."""

    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)
    strength: float
    key: PRNGKey

    def init(self) -> int:
        return 0

    def act(self, x: State, state: int, key: PRNGKey) -> tuple[Action, int, Metrics]:
        """The key of the episode decides, not that of the step."""
        action = random_action(self.low, self.high, self.strength, jax.random.fold_in(self.key, state // HOLD))
        return action, state + 1, {}


class Careful(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The same system, but an episode is cut short as soon as a third of one of the budgets is used up."""

    def __init__(self, env: gymnasium.Env[Any, Any], costs: Sequence[Cost], horizon: int) -> None:
        super().__init__(env)
        self.costs, self.horizon = costs, horizon
        self._seen: list[Any] = []

    def reset(self, **options: Any) -> Any:
        self._seen = []
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        outcome: Any = self.env.step(action)
        if not isinstance(outcome, tuple) or len(outcome) != 5:
            return outcome  # whoever asked for the step complains
        *others, truncated, info = outcome
        self._seen.append(info.get("cost") if isinstance(info, dict) else None)
        return *others, truncated or self._used_up(), info

    def _used_up(self) -> bool:
        """Whether more than a third of what lies between the least possible cost and the budget is gone, for any."""
        try:
            seen = np.array([np.atleast_1d(np.asarray(each, float)) for each in self._seen])
        except (TypeError, ValueError):
            return False
        if seen.shape != (len(self._seen), len(self.costs)):
            return False
        totals = [float(aggregate(jnp.asarray(seen[:, i]), cost.aggregation)) for i, cost in enumerate(self.costs)]
        return any(self._share(cost, total) > SHARE_OF_BUDGET for cost, total in zip(self.costs, totals, strict=True))

    def _share(self, cost: Cost, total: float) -> float:
        floor = cost.least(self.horizon)
        if not np.isfinite(floor):
            floor = min(0.0, cost.budget)
        return (total - floor) / max(cost.budget - floor, np.finfo(float).tiny)


class CutShort(UserError):  # noqa: N818  (what was played is not a mistake)
    """Data could not be collected to the end; `transitions` are those until then, perhaps none."""

    def __init__(self, reason: str, transitions: Transitions) -> None:
        super().__init__(reason)
        self.transitions = transitions

    def __reduce__(self) -> tuple[type["CutShort"], tuple[str, Transitions]]:
        """How it comes back from a worker: without this it cannot, and takes the whole pool with it."""
        return type(self), (str(self), self.transitions)


class CollectionInterrupted(KeyboardInterrupt):
    """The same because of Ctrl-C."""

    def __init__(self, reason: str, transitions: Transitions) -> None:
        super().__init__(reason)
        self.transitions = transitions


def wander(task: Task, count: int, strength: float, key: PRNGKey) -> Transitions:
    """Episodes of random actions on the true system; each ends as any other does, and early at a third of a budget."""
    played = [_nothing(task)]
    with closing(Careful(task.open(), task.costs, task.horizon)) as env:
        while (left := count - sum(len(part.actions) for part in played)) > 0:
            episode, reason = _wander_once(task, env, left, strength, jax.random.fold_in(key, len(played) - 1))
            played.append(episode.transitions)
            if reason:
                raise (CollectionInterrupted if episode.ended == "interrupted" else CutShort)(reason, _joined(played))
    return _joined(played)


def _joined(parts: Sequence[Transitions]) -> Transitions:
    return Transitions(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _nothing(task: Task) -> Transitions:
    states, actions = np.zeros((0, task.state_size)), np.zeros((0, task.action_size))
    return Transitions(states, actions, states, np.zeros(0), np.zeros((0, len(task.costs))), np.zeros(0, bool))


def _wander_once(task: Task, env: Careful, most: int, strength: float, key: PRNGKey) -> tuple[Episode, str]:
    """One episode of at most so many steps, and why it was cut short, if it was."""
    reset_key, action_key, _ = jax.random.split(key, 3)
    policy = Wanderer(task.action_low, task.action_high, strength, action_key)
    seed = int(jax.random.bits(reset_key, dtype=jnp.uint32)) >> 1
    return _play(task, env, policy, min(task.horizon, most), seed, key)


def _play(
    task: Task, env: gymnasium.Env[Any, Any], policy: Policy, steps: int, seed: int, key: PRNGKey
) -> tuple[Episode, str]:
    """One episode of at most so many steps, and why it was cut short, if it was."""
    try:
        episode = run_episode(env, policy, seed, key, steps, guard=Guard.of(task)).episode
    except ResetFault as fault:
        nothing = _nothing(task)
        return Episode(np.zeros((1, task.state_size)), nothing.actions, nothing.rewards, nothing.costs), str(fault)
    except Interrupted as stopped:
        return stopped.played.episode, stopped.played.episode.reason
    return episode, episode.reason


def record(task: Task, behaviour: Callable[[PRNGKey], Policy], episodes: int, key: PRNGKey) -> Transitions:
    """So many whole episodes of a behaviour on the true system."""
    played = [_nothing(task)]
    with closing(task.open()) as env:
        for i in range(episodes):
            reset_key, policy_key, act_key = jax.random.split(jax.random.fold_in(key, i), 3)
            seed = int(jax.random.bits(reset_key, dtype=jnp.uint32)) >> 1
            episode, reason = _play(task, env, behaviour(policy_key), task.horizon, seed, act_key)
            played.append(episode.transitions)
            if reason:
                raise (CollectionInterrupted if episode.ended == "interrupted" else CutShort)(reason, _joined(played))
    return _joined(played)


def scatter(task: Task, count: int, strength: float, key: PRNGKey) -> Transitions:
    """Single steps from states all over the place, asked of the task's equations (as in the paper's runs)."""
    equations, sample_state = task.equations, task.sample_state
    if equations is None or sample_state is None:
        lacks = "has no equations that could be asked" if equations is None else "does not say from where to ask"
        raise UserError(f"{task.name} {lacks} for single steps; use --behaviour wander.")

    @jax.jit
    def ask(x: Any, a: Any, key: Any) -> Any:
        y = equations.step(x, a, key)
        return x, a, y, equations.signals.reward(x, a, y), equations.signals.costs(x, a, y), jnp.zeros((), bool)

    rows = []
    for i in range(count):
        state_key, action_key, step_key = jax.random.split(jax.random.fold_in(key, i), 3)
        a = random_action(task.action_low, task.action_high, strength, action_key)
        rows.append(ask(sample_state(state_key), a, step_key))
    return Transitions(*(np.stack(part) for part in zip(*rows, strict=True)))


def random_action(low: tuple[float, ...], high: tuple[float, ...], strength: float, key: PRNGKey) -> Action:
    """Uniform in the middle part of the action range."""
    least, most = jnp.asarray(low, EXACT), jnp.asarray(high, EXACT)
    share = strength * jax.random.uniform(key, least.shape, EXACT, -1.0, 1.0)
    return (least + most) / 2 + share * (most - least) / 2


class Behaviour(NamedTuple):
    """A way to make data."""

    summary: str
    strength: float
    """The share of the action range that it uses, if nothing else is asked for."""
    make: Callable[[Task, int, float, PRNGKey], Transitions]
    """So many transitions, with that strength and key."""


BEHAVIOURS = {
    "wander": Behaviour("careful random actions from the initial state, ended at a third of the budget", 0.5, wander),
    "scatter": Behaviour("single steps from anywhere, which only a simulator can answer", 1.0, scatter),
}
