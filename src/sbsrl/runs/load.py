"""A run that is looked at again: its learner as it stands, or as it stood before one of its episodes."""

from pathlib import Path
from typing import Any

from ..errors import UserError
from ..learner import Experiment, Learner
from ..loop import prepared
from .borrowed_phase import KEPT
from .folder import RunFolder
from .shared_phase import SharedPhase
from .things import bind_again
from .train import Result, opened, relearned

__all__ = ["learner_before", "load"]


def load(path: str | Path, **things: Any) -> Result:
    """What a run has learned so far: `load(DIR).policy(observation)` is an action. Nothing is played or written.

    `things` are objects that the run began with and that have no name, as for `resume`.
    """
    with RunFolder.open(path) as folder:
        bind_again(folder.config, things)
        _, experiment, fresh = opened(_finished(folder))
        records = folder.records()
        learned = [record.line for record in records if record.planned]
        learner, lines, _ = folder.restore(fresh)
        if not learner.prepared:
            learner = _prepared(experiment, fresh, folder)
        for line in learned:
            if line >= lines:
                learner = relearned(experiment, learner, folder, line)
        return Result(experiment, folder.config, records, learner, folder.path, folder.interruptions())


def _finished(folder: RunFolder) -> RunFolder:
    """Refuses a run that has not got to know its system yet."""
    if "asked" in folder.config:
        raise UserError(f"{folder.path} has no learner yet; continue it with 'sbsrl resume {folder.path}'.")
    return folder


def learner_before(folder: RunFolder, line: int) -> tuple[Experiment, Learner]:
    """The experiment, and the learner as it was before the episode of that line.

    It learns again from the recorded episodes before: exact, since beliefs and solvers repeat themselves.
    """
    _, experiment, fresh = opened(_finished(folder))
    records = folder.records()
    before, after = (
        [record for record in part if record.planned and record.phase != "final"]
        for part in (records[:line], records[line:])
    )
    restored, lines, _ = folder.restore(fresh)
    if not after and all(record.line < lines for record in before):
        return experiment, restored  # nothing was learned since
    learner = _prepared(experiment, fresh, folder)
    for record in before:
        learner = relearned(experiment, learner, folder, record.line)
    return experiment, learner


def _prepared(experiment: Experiment, fresh: Learner, folder: RunFolder) -> Learner:
    """The learner after its offline phase, if it has one: as it was kept, or learned again."""
    kept = None if fresh.prepared else SharedPhase(folder.path / KEPT).load(fresh)
    return kept[0] if kept else prepared(experiment, fresh)[0]
