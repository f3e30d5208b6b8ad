"""An episode of a run, played again on a system that draws itself.

The recorded actions are sent to a system that is opened anew and reset with the seed that the episode had. The run
itself is not touched: nothing is drawn while it learns, and nothing is written here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import UInt8

from ..costs import Cost
from ..errors import UserError
from ..learner import Experiment, Learner, changed, turn_of
from ..record import Record
from ..systems.drawable import MODE
from ..systems.faults import FAILURES, describe
from ..transitions import Episode
from .acquaintance import first_seed
from .evaluate import evaluation_turn
from .folder import RunFolder
from .things import bind_again
from .train import opened

__all__ = ["FIRST", "LAST", "Replay", "replays", "shown_steps"]

FIRST, LAST = "first", "last"
"""Words for episodes of a run."""
AGREEMENT = 1e-6
"""By which share, and by which number, an observation may differ from the recorded one: libraries round differently."""
USUAL_RATE = 25.0
"""Control steps per second where the system does not say."""


class Replay(NamedTuple):
    """An episode as it was recorded, and pictures of it."""

    task: str
    costs: tuple[Cost, ...]
    record: Record
    episode: Episode
    rate: float
    """Control steps per second of the system's own time."""
    pictures: Mapping[int, UInt8[np.ndarray, "h w 3"]]
    """By the number of steps before them: evenly from the reset on, and after the last step."""


def replays(path: str | Path, chosen: Sequence[str | int], most: float, **things: Any) -> Iterator[Replay]:
    """The chosen episodes of the run in a folder, by number or as 'first' and 'last', each once, one after the other.

    They have at most so many pictures per second of the system's own time, because drawing takes longer than playing.
    A system that cannot be drawn, or that answers otherwise than it did, is a UserError. `things` are objects that the
    run began with and that have no name, as for `resume`.
    """
    with RunFolder.open(path) as folder:
        bind_again(folder.config, things)
        records = _chosen(folder, chosen)
        _, experiment, fresh = opened(folder)
        for record in records:
            yield _replay(folder, experiment, record, _reset_seed(folder, fresh, record), most)


def _chosen(folder: RunFolder, chosen: Sequence[str | int]) -> list[Record]:
    if "asked" in folder.config:
        raise UserError(f"{folder.path} has not begun to learn; continue it with 'sbsrl resume {folder.path}'.")
    records = folder.records()
    if not records:
        raise UserError(f"{folder.path} has no episode yet.")
    known = {record.episode: record for record in records}
    ends = {FIRST: records[0].episode, LAST: records[-1].episode}
    numbers = dict.fromkeys(ends.get(word, word) if isinstance(word, str) else word for word in chosen)
    for number in numbers:
        if number not in known:
            raise UserError(f"{folder.path} has no episode {number}; it has {min(known)} to {max(known)}.")
    return [known[int(number)] for number in numbers]


def _replay(folder: RunFolder, experiment: Experiment, record: Record, seed: int, most: float) -> Replay:
    task, episode = experiment.task, folder.trajectory(record.line).episode
    if not len(episode.actions):
        raise UserError(f"nothing was played in episode {record.episode}, so there is nothing to show: {record.reason}")
    try:
        with closing(task.connect(MODE)) as env:
            rate = float(env.metadata.get("render_fps") or USUAL_RATE)
            shown = shown_steps(len(episode.actions), rate, most)
            pictures = dict(_pictures(env, episode, seed, shown, task.state_size - task.unobserved, record.episode))
    except UserError:
        raise
    except FAILURES as error:
        raise UserError(
            f"episode {record.episode} cannot be played again on {task.name}: it raised {describe(error)}."
        ) from error
    return Replay(task.name, task.costs, record, episode, rate, pictures)


def _reset_seed(folder: RunFolder, fresh: Learner, record: Record) -> int:
    """Of the system's reset in that episode: it follows from the seed of the run."""
    if record.line < folder.first_lines:
        return first_seed(folder.config["seed"], record.line)
    if record.phase == "evaluate":
        return evaluation_turn(fresh.key, record.line, record.episode).seed
    return turn_of(changed(fresh, episode=jnp.asarray(record.episode, fresh.episode.dtype))).seed


def shown_steps(steps: int, rate: float, most: float) -> list[int]:
    """The steps that are seen, so that there are at most so many pictures per second; the last one is among them."""
    every = max(1, math.ceil(rate / most))
    return [*range(0, steps, every), steps]


def _pictures(
    env: Any, episode: Episode, seed: int, shown: Sequence[int], size: int, number: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Plays the recorded actions, and compares the first `size` numbers of each observation with the recorded ones."""
    for t in range(len(episode.actions) + 1):
        observation = env.step(episode.actions[t - 1].copy())[0] if t else env.reset(seed=seed)[0]
        _compare(observation, episode.states, t, size, number)
        if t in shown:
            yield t, np.array(env.render())


def _compare(observation: Any, recorded: np.ndarray, t: int, size: int, number: int) -> None:
    seen, known = np.asarray(observation, float).reshape(-1)[:size], recorded[t, :size]
    if not np.allclose(seen, known, rtol=AGREEMENT, atol=AGREEMENT):
        i = int(np.argmax(np.abs(seen - known)))
        raise UserError(
            f"episode {number} cannot be shown: played again, the system gave {seen[i]:g} after step {t} as number {i} "
            f"of the observation, and {known[i]:g} is recorded. It does not repeat itself, or is not what it was."
        )
