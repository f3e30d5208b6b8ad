"""Offline data as datasets of Minari, which other tools make and read (an extra: pip install 'sbsrl[minari]').

A dataset is named as `minari:ID` wherever a file of data could be: `sbsrl collect TASK --out minari:ID` writes one, and
`--set data=minari:ID` begins with one. Costs are the entry `cost` of the infos, one number per step, or one per cost.
"""

import re
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float

from .errors import UserError
from .offline import OfflineData
from .task import Task
from .transitions import Transitions, split_episodes

__all__ = ["PREFIX", "check_minari", "is_minari", "read_episodes", "read_minari", "write_minari"]

PREFIX = "minari:"
MADE_FOR = "Made by sbsrl for the task "


def is_minari(data: str | Path) -> bool:
    """Whether it names a dataset of Minari."""
    return str(data).startswith(PREFIX)


NAMES = re.compile(r"([\w-]+/)*[\w-]+-v\d+")


def check_minari(name: str) -> None:
    """Refuses a name under which nothing can be written, before anything is played for it."""
    minari = _minari()
    identity = name.removeprefix(PREFIX)
    if not NAMES.fullmatch(identity):
        raise UserError(f"{name} cannot be written: no dataset is called so; use a name such as {EXAMPLE}.")
    if identity in minari.list_local_datasets():
        raise UserError(f"{name} cannot be written: there is one already; use another name.")


def write_minari(data: OfflineData, task: Task, name: str) -> None:
    """Writes the episodes under this name, `minari:` first; refuses one that is taken, and data that are empty."""
    check_minari(name)
    if not len(data.transitions.actions):
        raise UserError(f"{name} is not written: there is no transition to keep.")
    minari = _minari()
    from minari.data_collector import EpisodeBuffer  # noqa: PLC0415

    episodes = [
        EpisodeBuffer(
            id=i,
            observations=np.concatenate([part.states, part.next_states[-1:]]),
            actions=part.actions,
            rewards=part.rewards,
            terminations=part.terminated,
            truncations=_only_last(part),
            infos={"cost": part.costs[:, 0] if part.costs.shape[1] == 1 else part.costs},
        )
        for i, part in enumerate(split_episodes(data.transitions))
    ]
    box = gymnasium.spaces.Box
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of metadata that a private dataset has no use for
        try:
            minari.create_dataset_from_buffers(
                name.removeprefix(PREFIX),
                episodes,
                observation_space=box(-np.inf, np.inf, (task.state_size,), np.float64),
                action_space=box(np.array(task.action_low), np.array(task.action_high), dtype=np.float64),
                algorithm_name=data.behaviour,
                description=f"{MADE_FOR}{task.name}",
            )
        except (ValueError, AssertionError, OSError) as error:
            raise UserError(f"{name} cannot be written ({_line(error)}); use another name such as {EXAMPLE}.") from None


EXAMPLE = "minari:race-car/careless-v0"


def _only_last(part: Transitions) -> np.ndarray:
    """An episode that did not end by itself is cut after its last step."""
    cut = np.zeros(len(part.actions), bool)
    cut[-1] = not part.terminated[-1]
    return cut


def read_minari(name: str, task: Task) -> OfflineData:
    """The data of a dataset, if they fit the task; refuses those that were made for another."""
    try:
        dataset = _dataset(name)
        made_for = str(dataset.storage.metadata.get("description", ""))
        if made_for.startswith(MADE_FOR) and made_for != f"{MADE_FOR}{task.name}":
            raise UserError(
                f"these offline data come from {made_for.removeprefix(MADE_FOR)}, and the task is {task.name}."
            )
        parts = [_transitions(episode, task, name) for episode in dataset.iterate_episodes()]
    except BROKEN as error:
        raise _unreadable(name, error) from None
    if not parts:
        raise UserError(f"{name} holds no episodes.")
    joined = Transitions(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    behaviour = str(dataset.storage.metadata.get("algorithm_name", "")) or "minari"
    return OfflineData(task.name, behaviour, 0, joined).check(task)


BROKEN = (OSError, ValueError, TypeError, KeyError)


def read_episodes(name: str) -> list[Any]:
    """All episodes of a dataset, as Minari gives them."""
    try:
        return list(_dataset(name).iterate_episodes())
    except BROKEN as error:
        raise _unreadable(name, error) from None


def _dataset(name: str) -> Any:
    return _minari().load_dataset(name.removeprefix(PREFIX))


def _unreadable(name: str, error: BaseException) -> UserError:
    return UserError(
        f"{name} cannot be read as offline data ({_line(error)}); 'minari list local' shows what there is."
    )


def _transitions(episode: Any, task: Task, name: str) -> Transitions:
    observations = episode.observations
    if not isinstance(observations, np.ndarray) or observations.shape[1:] != (task.state_size,):
        seen = f"arrays of shape {observations.shape[1:]}" if isinstance(observations, np.ndarray) else "no arrays"
        raise UserError(
            f"the observations of {name} are {seen}; {task.name} wants vectors of {task.state_size} numbers: flatten "
            "them before."
        )
    steps = len(episode.actions)
    x = observations.astype(np.float64)
    return Transitions(
        states=x[:-1],
        actions=np.asarray(episode.actions, np.float64).reshape(steps, -1),
        next_states=x[1:],
        rewards=np.asarray(episode.rewards, np.float64),
        costs=_costs(episode.infos, steps, len(task.costs), name),
        terminated=np.asarray(episode.terminations, bool),
    )


def _costs(infos: Any, steps: int, count: int, name: str) -> Float[np.ndarray, "N k"]:
    """One row per step; the entry of a reset, which some collectors add, is left out."""
    if not isinstance(infos, dict) or "cost" not in infos:
        raise UserError(f"{name} has no costs: put the cost of each step into info['cost'], and record again.")
    found = np.asarray(infos["cost"], np.float64).reshape(len(infos["cost"]), -1)[-steps:]
    if found.shape != (steps, count):
        raise UserError(f"the costs of {name} have shape {found.shape} in an episode; {(steps, count)} is wanted.")
    return found


def _minari() -> Any:
    try:
        import minari  # noqa: PLC0415  (an extra: only who uses it needs it)
    except ImportError as error:
        raise UserError(
            f"data that begin with {PREFIX} need Minari ({error}); install it: pip install 'sbsrl[minari]'."
        ) from None
    return minari


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
