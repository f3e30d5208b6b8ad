"""Offline data: transitions that are known before the first episode, and the behaviours that make them.

Assumption 3 of the paper asks for knowledge under which some policy is safe from the start; on cartpole its
experiments take it from data. Here all data come from the task's own `step`: a control step of the data is a
control step of the agent.
"""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np

from ._jax import EXACT
from .atomic import disk, write_atomically
from .errors import UserError, unknown
from .task import Task, Transitions, aggregate
from .types import Action, PRNGKey, State

__all__ = ["BEHAVIOURS", "Behaviour", "OfflineData", "collect"]


class OfflineData(NamedTuple):
    """Transitions, and where they come from."""

    task: str
    behaviour: str
    seed: int
    transitions: Transitions

    def save(self, path: str | Path) -> None:
        """As an archive of plain arrays."""
        path = Path(path)
        buffer = io.BytesIO()
        np.savez(buffer, task=self.task, behaviour=self.behaviour, seed=self.seed, **self.transitions._asdict())
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> "OfflineData":
        """What `save` wrote; refuses anything else."""
        try:
            with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
                arrays = dict(file)
        except (OSError, ValueError, TypeError, EOFError, BadZipFile) as error:
            raise UserError(f"{path} cannot be read as offline data ({error}); make it with 'sbsrl collect'.") from None
        wanted = {"task", "behaviour", "seed", *Transitions._fields}
        if missing := sorted(wanted - set(arrays)):
            raise UserError(
                f"{path} is no offline data set: it has no {', '.join(missing)}; make it with 'sbsrl collect', or save "
                "an sbsrl.OfflineData."
            )
        transitions = Transitions(*(arrays[name] for name in Transitions._fields))
        labels = [arrays[name] for name in ("task", "behaviour", "seed")]
        if any(label.shape for label in labels) or not np.issubdtype(arrays["seed"].dtype, np.integer):
            raise UserError(f"the labels of {path} are not two words and a whole number; make it with 'sbsrl collect'.")
        return cls(str(arrays["task"]), str(arrays["behaviour"]), int(arrays["seed"]), transitions)

    def check(self, task: Task) -> "OfflineData":
        """Refuses data of another task, or of another shape."""
        if self.task != task.name:
            raise UserError(f"these offline data come from {self.task}, and the task is {task.name}.")
        rows = len(self.transitions.actions) if np.ndim(self.transitions.actions) else 0
        wanted = ((rows, task.state_size), (rows, task.action_size), (rows, task.state_size))
        for name, part, shape in zip(Transitions._fields, map(np.asarray, self.transitions), wanted, strict=True):
            if np.shape(part) != shape:
                raise UserError(
                    f"the {name} of these offline data have shape {np.shape(part)}; {task.name} wants {shape}."
                )
            if not np.issubdtype(part.dtype, np.floating):
                raise UserError(f"the {name} of these offline data are {part.dtype}; save them as float64.")
            if not np.all(np.isfinite(part)):
                raise UserError(f"the {name} of these offline data are not all finite numbers.")
        if not rows:
            raise UserError("these offline data hold no transitions.")
        return self


class _Recorder:
    """Takes steps on the true system and keeps them."""

    def __init__(self, task: Task, count: int) -> None:
        self.task, self.count = task, count
        self.rows: list[tuple[State, Action, State]] = []
        self._step = jax.jit(lambda x, a, key: (y := task.step(x, a, key), task.cost(x, a, y)))

    @property
    def full(self) -> bool:
        return len(self.rows) >= self.count

    def step(self, x: State, a: Action, key: PRNGKey) -> tuple[State, float]:
        """The next state and what it cost."""
        y, cost = self._step(x, a, key)
        self.rows.append((x, a, y))
        return y, float(cost)

    def transitions(self) -> Transitions:
        return Transitions(*(np.stack(part) for part in zip(*self.rows, strict=True)))


HOLD = 3
"""Control steps for which a wandering action is held: shorter ones average out and go nowhere."""

SHARE_OF_BUDGET = 1 / 3
"""A wandering episode ends when this much of the budget is used up: far from any violation."""


def wander(recorder: _Recorder, strength: float, key: PRNGKey) -> None:
    """Episodes of random actions, each held for a while; one ends early when a third of the budget is used up."""
    task, episode = recorder.task, 0
    while not recorder.full:
        reset_key, action_key, step_key = jax.random.split(jax.random.fold_in(key, episode), 3)
        x, costs = task.reset(reset_key), list[float]()
        for t in range(task.horizon):
            a = _random_action(task, strength, jax.random.fold_in(action_key, t // HOLD))
            x, cost = recorder.step(x, a, jax.random.fold_in(step_key, t))
            costs.append(cost)
            if recorder.full or _used_up(task, costs):
                break
        episode += 1


def _used_up(task: Task, costs: Sequence[float]) -> bool:
    used = float(aggregate(jnp.asarray(costs), task.aggregation)) - task.least_cost
    return used > SHARE_OF_BUDGET * (task.budget - task.least_cost)


def scatter(recorder: _Recorder, strength: float, key: PRNGKey) -> None:
    """Single steps from states all over the place, which only a simulator can be asked for (as in the paper's runs)."""
    task = recorder.task
    if task.anywhere is None:
        raise UserError(f"{task.name} does not say from where steps could be asked for; use --behaviour wander.")
    for i in range(recorder.count):
        state_key, action_key, step_key = jax.random.split(jax.random.fold_in(key, i), 3)
        recorder.step(task.anywhere(state_key), _random_action(task, strength, action_key), step_key)


def _random_action(task: Task, strength: float, key: PRNGKey) -> Action:
    """Uniform in the middle part of the action range."""
    low, high = jnp.asarray(task.action_low, EXACT), jnp.asarray(task.action_high, EXACT)
    share = strength * jax.random.uniform(key, low.shape, EXACT, -1.0, 1.0)
    return (low + high) / 2 + share * (high - low) / 2


class Behaviour(NamedTuple):
    """A way to make data."""

    summary: str
    strength: float
    """The share of the action range that it uses, if nothing else is asked for."""
    fill: Callable[[_Recorder, float, PRNGKey], None]


BEHAVIOURS = {
    "wander": Behaviour("careful random actions from the initial state, ended at a third of the budget", 0.5, wander),
    "scatter": Behaviour("single steps from anywhere, which only a simulator can answer", 1.0, scatter),
}


def collect(
    task: Task, behaviour: str = "wander", transitions: int = 100, seed: int = 0, strength: float | None = None
) -> OfflineData:
    """So many transitions of the true system under that behaviour."""
    if behaviour not in BEHAVIOURS:
        raise unknown("behaviour", behaviour, BEHAVIOURS)
    chosen = BEHAVIOURS[behaviour]
    strength = chosen.strength if strength is None else strength
    if not 0 <= strength <= 1:
        raise UserError(f"strength={strength:g} is out of range; it is a share of the action range, between 0 and 1.")
    if not 0 <= seed < 2**32:
        raise UserError(f"seed {seed} is out of range; it must be between 0 and 4294967295.")
    if not (1 <= transitions <= MOST_TRANSITIONS and transitions == int(transitions)):
        raise UserError(
            f"transitions={transitions} is out of range; it must be a whole number from 1 to {MOST_TRANSITIONS}."
        )
    recorder = _Recorder(task, transitions)
    chosen.fill(recorder, strength, jax.random.key(seed))
    return OfflineData(task.name, behaviour, seed, recorder.transitions())


MOST_TRANSITIONS = 5_000
"""What an exact Gaussian process can hold, with as much room left for episodes."""
