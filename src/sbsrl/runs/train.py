"""Running an experiment: in memory, in a folder, or where a folder left off."""

from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np

from ..errors import UserError
from ..ledger import make_interruption
from ..loop import Experiment, Learner, Outcome, Play, Shortfall, Turn, algorithm_1, greedy_policy
from ..policy import Controller, Policy
from ..record import Record
from ..specification import Specification
from ..systems.episode import Guard, Interrupted, Played, ResetFault, run_episode
from ..task import Task
from ..transitions import Episode
from .certificate import certificate, first_episode_warning
from .config import changed_versions, make_config, read_config
from .folder import RunFolder
from .view import RunView

__all__ = ["Halted", "Observer", "Result", "resume", "train"]


class Halted(UserError):  # noqa: N818  (a state of the run, not a mistake)
    """A run that must not go on by itself: the system failed, or the data contradict what it relies on."""


@runtime_checkable
class Observer(Protocol):
    """Whoever wants to see a run as it happens."""

    def started(self, view: RunView, folder: Path | None) -> None: ...

    def note(self, text: str) -> None: ...

    def stepped(self) -> None: ...

    def finished_episode(self, record: Record) -> None: ...


class Unobserved:
    """Hears everything and does nothing."""

    def started(self, view: RunView, folder: Path | None) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def stepped(self) -> None:
        pass

    def finished_episode(self, record: Record) -> None:
        pass


@dataclass(frozen=True, eq=False)
class Result:
    """What a run leaves behind."""

    experiment: Experiment
    records: list[Record]
    learner: Learner
    folder: Path | None
    view: RunView

    @cached_property
    def policy(self) -> Controller:
        """The greedy policy of what was learned: `policy(observation)` is an action, `policy.reset()` a new episode."""
        return Controller(greedy_policy(self.experiment, self.learner))


class _Run:
    """One run: its parts, and where it stands."""

    def __init__(
        self,
        experiment: Experiment,
        config: dict[str, Any],
        learner: Learner,
        folder: RunFolder | None,
        observer: Observer,
    ) -> None:
        self.experiment, self.config, self.learner = experiment, config, learner
        self.folder, self.observer = folder, observer
        self.records: list[Record] = folder.records() if folder else []
        self.interruptions = folder.interruptions() if folder else []

    def to_the_end(self) -> Result:
        """Plays what is left of the run."""
        self.observer.started(self._view(), self.folder.path if self.folder else None)
        if not self.records and (warning := first_episode_warning(self.experiment)):
            self.observer.note(warning)
        with closing(self.experiment.task.open()) as env:
            for outcome in algorithm_1(self.experiment, self.learner, self._player(env)):
                self._keep(outcome)
        self._write_certificate()
        self._check_end()
        path = self.folder.path if self.folder else None
        return Result(self.experiment, self.records, self.learner, path, self._view())

    def _player(self, env: gymnasium.Env) -> Play:
        """Plays episodes on the true system; one that the user stops is kept before the run stops, too."""
        task = self.experiment.task
        guard = Guard.of(task, self.experiment.settings.run.step_timeout)

        def play(policy: Policy, turn: Turn) -> Played:
            try:
                return run_episode(
                    env, policy, turn.seed, turn.key, task.horizon, guard=guard, on_step=self.observer.stepped
                )
            except ResetFault as fault:
                return Played(_nothing_played(task, str(fault)), {})
            except Interrupted as stopped:
                if self.folder:
                    episode = stopped.played.episode
                    self.folder.add_interruption(make_interruption(task, turn.episode, episode), episode)
                raise

        return play

    def _keep(self, outcome: Outcome) -> None:
        self.learner = outcome.learner
        record = outcome.record._replace(line=len(self.records))
        if self.folder:
            record = self.folder.add(outcome)
        self.records.append(record)
        self._write_certificate()
        if outcome.shortfall and record.episode == 0:
            self.observer.note(exploration_warning(outcome.shortfall))
        self.observer.finished_episode(record)

    def _write_certificate(self) -> None:
        if self.folder:
            self.folder.write_json("certificate.json", self._certificate())

    def _view(self) -> RunView:
        made = self._certificate() if self.records else None
        return RunView(self.config, self.records, made, interruptions=self.interruptions)

    def _certificate(self) -> dict[str, Any]:
        return certificate(self.experiment, self.records, self.interruptions)

    def _check_end(self) -> None:
        """Says so if the run stopped before its end."""
        again = f"; continue with 'sbsrl resume {self.folder.path}'" if self.folder else ""
        if self.records and self.records[-1].ended == "fault":
            raise Halted(
                f"episode {self.records[-1].episode} was cut short: {self.records[-1].reason}. What was played is "
                f"kept; look after the system{again}."
            )
        if self.learner.contradicted and self.experiment.settings.run.inconsistent == "stop":
            warning = next((r.calibration_warning for r in reversed(self.records) if r.calibration_warning), None)
            raise Halted(
                f"the run stopped: {warning or 'the offline data contradict the prior'}. The prior claims to know more "
                "than it does: raise its bound, scale or noise and start anew, or use inconsistent=prior."
            )


def _nothing_played(task: Task, reason: str) -> Episode:
    """The episode of a system that could not be reset."""
    states, actions = np.zeros((0, task.state_size)), np.zeros((0, task.action_size))
    return Episode(states, actions, np.zeros(0), np.zeros((0, len(task.costs))), "fault", reason)


def train(spec: Specification, out: Path | None = None, observer: Observer | None = None) -> Result:
    """Runs to the end; with `out`, in a new run folder that can be resumed however the run stops."""
    experiment, learner = spec.start()
    observer, config = observer or Unobserved(), make_config(spec, experiment.task)
    if out is None:
        return _Run(experiment, config, learner, None, observer).to_the_end()
    data = Path(spec.settings.run.data).read_bytes() if spec.settings.run.data else None
    with RunFolder.create(out, config, data) as folder:
        return _Run(experiment, config, learner, folder, observer).to_the_end()


def resume(path: str | Path, observer: Observer | None = None, insist: bool = False) -> Result:
    """Continues exactly where the run stopped: the outcome is the one it would have had.

    With `insist` a configuration that was edited is accepted.
    """
    observer = observer or Unobserved()
    with RunFolder.open(path) as folder:
        folder.lock()
        config = folder.config
        asked = read_config(folder.path / "config.json", config, insist)
        experiment, fresh = _with_own_data(asked, folder).start()
        if changed := changed_versions(config.get("versions")):
            observer.note(f"versions changed since the run began ({changed}): results may differ in the last digits.")
        if insist:  # what was edited is what the run is from now on
            config = make_config(asked, experiment.task)
            folder.write_json("config.json", config)
        learner = _restore(experiment, fresh, folder, observer, insist)
        return _Run(experiment, config, learner, folder, observer).to_the_end()


def _restore(experiment: Experiment, fresh: Learner, folder: RunFolder, observer: Observer, insist: bool) -> Learner:
    """The learner after all episodes of the ledger: from the checkpoint, then from trajectories that it lacks."""
    folder.repair()
    learner, lines, note = folder.restore(fresh, insist)
    missing = len(folder.records()) - lines
    if note:
        episodes = f"{missing} recorded episode{'' if missing == 1 else 's'}"
        observer.note(f"{note.rstrip('.')}; the learner is rebuilt from {episodes}.")
    for line in range(lines, lines + missing):
        learner = _relearn(experiment, learner, folder, line)
    return learner


def _relearn(experiment: Experiment, learner: Learner, folder: RunFolder, line: int) -> Learner:
    """The learner after an episode that was played already; exact, since solvers and beliefs repeat themselves."""
    recorded = Played(folder.trajectory(line), {})
    for outcome in algorithm_1(experiment, learner, lambda policy, turn: recorded):
        return outcome.learner
    raise UserError(f"{folder.path / 'episodes.jsonl'} has a line after the end of the run, line {line}; restore it.")


def exploration_warning(shortfall: Shortfall) -> str:
    """A plain word for runs that cannot even begin to explore as much as they are asked to."""
    return (
        f"the exploration threshold, {shortfall.threshold:.4g}, is out of reach: the best plan that was found "
        f"promises {shortfall.attainable:.4g} per episode. Exploration is off from the start; use a smaller threshold."
    )


def _with_own_data(spec: Specification, folder: RunFolder) -> Specification:
    """The offline data are those that the run began with, whatever became of the file they were read from."""
    if not spec.settings.run.data:
        return spec
    run = replace(spec.settings.run, data=str(folder.data))
    return replace(spec, settings=replace(spec.settings, run=run))
