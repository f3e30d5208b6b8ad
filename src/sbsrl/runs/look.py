"""One episode of a run, with what its samples foretold: enough to draw it."""

from pathlib import Path
from typing import Any, NamedTuple

from ..errors import UserError
from ..foresight import Forecast, foretell
from ..learner import Experiment, Learner, context_of, keys_of
from ..record import Record
from ..transitions import Episode
from .folder import RunFolder
from .load import learner_before
from .things import bind_again
from .train import Result, opened

__all__ = ["Look", "look_at", "look_at_last"]

AHEAD = 25
"""Steps of a forecast where no planner says how far it looks."""


class Look(NamedTuple):
    """An episode, and what was foretold."""

    experiment: Experiment
    record: Record
    episode: Episode
    forecast: Forecast | None
    """None where nothing could be foretold: before there was a belief, or where nothing was played."""


def look_at(path: str | Path, episode: int | None = None, **things: Any) -> Look:
    """The episode of that number, or the last one; the learner is what it was before that episode.

    `things` are objects that the run began with and that have no name, as for `resume`.
    """
    with RunFolder.open(path) as folder:
        bind_again(folder.config, things)
        record = _found(folder, episode)
        played = folder.trajectory(record.line).episode
        if record.line < folder.first_lines:
            return Look(opened(folder)[1], record, played, None)
        experiment, learner = learner_before(folder, record.line)
        return Look(experiment, record, played, _foretold(experiment, learner, record, played))


def _found(folder: RunFolder, episode: int | None) -> Record:
    records = folder.records()
    if not records:
        raise UserError(f"{folder.path} has no episode yet.")
    if episode is None:
        return records[-1]
    for record in records:
        if record.episode == episode:
            return record
    numbers = [record.episode for record in records]
    raise UserError(f"{folder.path} has no episode {episode}; it has {min(numbers)} to {max(numbers)}.")


def look_at_last(result: Result) -> Look | None:
    """The final episode of a run that has just ended, in its folder; None if it did not get there."""
    if result.folder is None or not result.records or result.records[-1].phase != "final":
        return None
    record = result.records[-1]
    with RunFolder.open(result.folder) as folder:
        played = folder.trajectory(record.line).episode
    return Look(result.experiment, record, played, _foretold(result.experiment, result.learner, record, played))


def _foretold(experiment: Experiment, learner: Learner, record: Record, played: Episode) -> Forecast | None:
    if not len(played.actions):
        return None
    settings = experiment.settings
    context = context_of(experiment, learner, final=record.phase in {"final", "evaluate"})
    samples = experiment.method.problem(context).samples
    if samples is None:
        samples = learner.belief.samples(context.key, settings.method.samples)
    return foretell(samples, played, getattr(settings.solver, "horizon", AHEAD), keys_of(learner).noise)
