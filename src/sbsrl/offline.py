"""Offline data: transitions that are known before the first episode.

Assumption 3 of the paper asks for knowledge under which some policy is safe from the start; on cartpole its
experiments take it from data. A control step of the data is a control step of the agent.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ._jax import EXACT
from .archive import packed, read_arrays, write_arrays
from .atomic import disk
from .behaviours import BEHAVIOURS, Behaviour, record
from .errors import UserError, unknown
from .task import Task
from .transitions import Transitions
from .validation import Instance, Number, Whole, Word

__all__ = ["BEHAVIOURS", "MOST_TRANSITIONS", "Behaviour", "OfflineData", "collect", "find_data", "is_recipe"]

MOST_TRANSITIONS = 5_000
"""What an exact Gaussian process can hold, with as much room left for episodes."""

EPISODES, MOST_EPISODES = 25, 10_000
"""Of a task's own behaviour: how many there are unless something else is said, and at most."""
SEEDS = Whole(0, 2**32 - 1)

LABELS = ("task", "behaviour", "seed")
MOVES = ("states", "actions", "next_states")
OUTCOMES = ("rewards", "costs", "terminated")
UNRECORDED = {"rewards": np.zeros(0), "costs": np.zeros((0, 0)), "terminated": np.zeros(0, bool)}
"""What stands for outcomes that a file does not have."""


class OfflineData(NamedTuple):
    """Transitions, and where they come from.

    Older files have no outcomes, which are rewards, costs and terminated: these are empty until `check` knows the task.
    """

    task: str
    behaviour: str
    seed: int
    transitions: Transitions

    @property
    def recorded(self) -> bool:
        """Whether the outcomes were recorded."""
        return any(np.shape(getattr(self.transitions, name)) != UNRECORDED[name].shape for name in OUTCOMES)

    def save(self, path: str | Path) -> None:
        """As an archive of plain arrays."""
        with disk(Path(path)):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, **self._arrays)

    @property
    def content(self) -> bytes:
        """What `save` writes."""
        return packed("offline data", self._arrays)

    @property
    def _arrays(self) -> dict[str, Any]:
        parts = self.transitions._asdict()
        if not self.recorded:
            parts = {name: parts[name] for name in MOVES}
        return {"task": self.task, "behaviour": self.behaviour, "seed": self.seed, **parts}

    @classmethod
    def load(cls, path: str | Path) -> "OfflineData":
        """What `save` wrote; refuses anything else. Shapes are for `check` to judge."""
        arrays = read_arrays(path, what="offline data", remedy="make it with 'sbsrl collect'")
        if not set(OUTCOMES) & set(arrays):
            arrays |= UNRECORDED
        if missing := sorted({*LABELS, *Transitions._fields} - set(arrays)):
            raise UserError(
                f"{path} is no offline data set: it has no {', '.join(missing)}; make it with 'sbsrl collect', or save "
                "an sbsrl.OfflineData."
            )
        labels = [arrays[name] for name in LABELS]
        if any(label.shape for label in labels) or "".join(label.dtype.kind for label in labels) not in {"UUi", "UUu"}:
            raise UserError(f"the labels of {path} are not two words and a whole number; make it with 'sbsrl collect'.")
        transitions = Transitions(*(arrays[name] for name in Transitions._fields))
        return cls(str(arrays["task"]), str(arrays["behaviour"]), int(arrays["seed"]), transitions)

    def check(self, task: Task) -> "OfflineData":
        """These data, if they fit the task; refuses those of another task, of another shape or type, or with NaN.

        Outcomes that were not recorded are computed from the task's known reward and costs, none of them terminated.
        """
        if self.task != task.name:
            raise UserError(f"these offline data come from {self.task}, and the task is {task.name}.")
        rows = len(self.transitions.actions) if np.ndim(self.transitions.actions) else 0
        states, actions = (rows, task.state_size), (rows, task.action_size)
        self._check_parts(task, dict(zip(MOVES, (states, actions, states), strict=True)))
        if not rows:
            raise UserError("these offline data hold no transitions.")
        data = self if self.recorded else self._replace(transitions=_with_outcomes(task, self.transitions))
        shapes = ((rows,), (rows, len(task.costs)), (rows,))
        data._check_parts(task, dict(zip(OUTCOMES, shapes, strict=True)))
        return data

    def _check_parts(self, task: Task, shapes: dict[str, tuple[int, ...]]) -> None:
        for name, shape in shapes.items():
            part, kind = np.asarray(getattr(self.transitions, name)), "bool" if name == "terminated" else "float64"
            if part.shape != shape:
                raise UserError(f"the {name} of these offline data have shape {part.shape}; {task.name} wants {shape}.")
            if part.dtype.kind != np.dtype(kind).kind:
                raise UserError(f"the {name} of these offline data are {part.dtype}; save them as {kind}.")
            if not np.all(np.isfinite(part.astype(np.float32) if part.dtype.kind == "f" else part)):
                raise UserError(f"the {name} of these offline data are not all finite numbers (in single precision).")


def _with_outcomes(task: Task, moves: Transitions) -> Transitions:
    """The same transitions with what the task says that they earned and cost."""
    if task.signals is None:
        raise UserError(
            f"these offline data have no {', '.join(OUTCOMES)}, which {task.name} does not know as functions; collect "
            "them again, or add these arrays."
        )
    x, a, y = (jnp.asarray(getattr(moves, name), EXACT) for name in MOVES)
    rewards, costs = jax.vmap(task.signals.reward)(x, a, y), jax.vmap(task.signals.costs)(x, a, y)
    return moves._replace(rewards=np.asarray(rewards), costs=np.asarray(costs), terminated=np.zeros(len(x), bool))


def collect(
    task: Task,
    behaviour: str = "wander",
    transitions: int | np.integer = 100,
    seed: int | np.integer = 0,
    strength: float | np.floating | None = None,
    episodes: int | np.integer = EPISODES,
) -> OfflineData:
    """So many transitions under that behaviour, which uses this share of the action range (by default its own).

    Of one of the task's own behaviours so many whole episodes instead.
    """
    task = Instance(Task).read("task", task)
    behaviour = Word((*BEHAVIOURS, *task.behaviours)).read("behaviour", behaviour)
    seed = SEEDS.read("seed", seed)
    if behaviour in task.behaviours:
        return _record(task, behaviour, Whole(1, MOST_EPISODES).read("episodes", episodes), seed)
    chosen = BEHAVIOURS[behaviour]
    transitions = Whole(1, MOST_TRANSITIONS).read("transitions", transitions)
    strength = Number(0.0, 1.0).read("strength", chosen.strength if strength is None else strength)
    return OfflineData(task.name, behaviour, seed, chosen.make(task, transitions, strength, jax.random.key(seed)))


RECIPE = re.compile(r"([\w-]+):(\d+):(\d+)")


def is_recipe(data: str) -> bool:
    """Whether it says how to make data, and not where they are."""
    return RECIPE.fullmatch(data) is not None


def find_data(task: Task, data: str) -> OfflineData:
    """The data of a file, or those that BEHAVIOUR:EPISODES:SEED makes; refuses what does not fit the task."""
    if not is_recipe(data):
        return OfflineData.load(data).check(task)
    behaviour, episodes, seed = RECIPE.fullmatch(data).groups()  # type: ignore[union-attr]
    if behaviour not in task.behaviours:
        raise unknown(f"behaviour of {task.name}", behaviour, task.behaviours)
    if not task.simulated:
        raise UserError(
            f"data={data} would play episodes on the true {task.name}, which is no simulation: collect them with "
            "'sbsrl collect', and give the file."
        )
    count = Whole(1, MOST_EPISODES).read("episodes", int(episodes))
    return _record(task, behaviour, count, SEEDS.read("seed", int(seed)))


def _record(task: Task, behaviour: str, episodes: int, seed: int) -> OfflineData:
    """Whole episodes of one of the task's own behaviours."""
    return OfflineData(
        task.name, behaviour, seed, record(task, task.behaviours[behaviour], episodes, jax.random.key(seed))
    )
