"""Running an experiment: in memory, in a folder, or where a folder left off."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

from ..choice import Shortfall
from ..errors import UserError
from ..learner import Experiment, Learner, Turn, calibration_warning
from ..leaves import nan_in
from ..ledger import make_interruption
from ..loop import Outcome, Play, algorithm_1, greedy_policy, prepared
from ..offline import is_recipe
from ..policy import Controller, Policy
from ..record import Interruption, Record
from ..solve.protocol import Preparing
from ..specification import Specification
from ..systems.episode import Guard, Interrupted, Played, ResetFault, run_episode
from ..tasks import Given, given_files
from ..transitions import nothing_played
from .borrowed_phase import KEPT, borrow
from .certificate import certificate, first_episode_warning
from .config import make_config, read_config, what_changed
from .folder import DATA, PRIOR, RunFolder
from .judge import judge, judging_key
from .shared_phase import SharedPhase
from .system import LazySystem
from .view import RunView

__all__ = [
    "Halted",
    "Observer",
    "Result",
    "Unobserved",
    "certified",
    "go_on",
    "opened",
    "relearned",
    "train",
    "train_after",
]


class Halted(UserError):  # noqa: N818  (a state of the run, not a mistake)
    """A run that must not go on by itself: the system failed, or the data contradict what it relies on."""


@runtime_checkable
class Observer(Protocol):
    """What a run tells while it happens: that it started, notes, each step, each finished episode."""

    def started(self, view: RunView, folder: Path | None) -> None: ...

    def note(self, text: str) -> None: ...

    def stepped(self) -> None: ...

    def finished_episode(self, record: Record) -> None: ...


class Unobserved:
    """An observer that ignores what it is told."""

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
    config: Mapping[str, Any]
    records: list[Record]
    learner: Learner
    folder: Path | None
    interruptions: Sequence[Interruption] = ()
    final: Policy | None = None
    """The policy of the final episode, if that was played just now."""

    @cached_property
    def policy(self) -> Controller:
        """The greedy policy of what was learned: `policy(observation)` is an action, `policy.reset()` a new episode."""
        found = self.final or greedy_policy(self.experiment, self.learner)
        return Controller(found, unobserved=self.experiment.task.unobserved)

    @cached_property
    def view(self) -> RunView:
        """The run as tables and pictures see it."""
        made = certified(self.experiment, self.records, self.learner, self.interruptions) if self.records else None
        return RunView(self.config, self.records, made, interruptions=self.interruptions)


def certified(
    experiment: Experiment, records: Sequence[Record], learner: Learner, interruptions: Sequence[Interruption]
) -> dict[str, Any]:
    """The certificate of a run with this learner."""
    return certificate(experiment, records, interruptions, calibration_warning(learner.belief))


class _Run:
    """One run: its parts, and where it stands."""

    def __init__(
        self,
        experiment: Experiment,
        config: dict[str, Any],
        learner: Learner,
        folder: RunFolder | None,
        observer: Observer,
        shared: SharedPhase | None = None,
        first: Sequence[Record] = (),
    ) -> None:
        self.experiment, self.config, self.learner, self.shared = experiment, config, learner, shared
        self.folder, self.observer = folder, observer
        self.records: list[Record] = folder.records() if folder else list(first)
        self.interruptions = folder.interruptions() if folder else []
        self.final: Policy | None = None

    @property
    def result(self) -> Result:
        path = self.folder.path if self.folder else None
        return Result(self.experiment, self.config, self.records, self.learner, path, self.interruptions, self.final)

    def to_the_end(self) -> Result:
        """Plays what is left of the run."""
        self.observer.started(self.result.view, self.folder.path if self.folder else None)
        if all(r.episode < 0 for r in self.records) and (warning := first_episode_warning(self.experiment)):
            self.observer.note(warning)
        self._prepare()
        self._check_learner()
        with LazySystem(self.experiment.task, self.observer.note) as system:
            for outcome in algorithm_1(self.experiment, self.learner, self._player(system)):
                self._keep(outcome)
        self._write_certificate()
        self._check_end()
        return self.result

    def _prepare(self) -> None:
        """Learns offline, unless that is done; what was learned is kept."""
        if self.learner.prepared:
            return
        with self.shared.held() if self.shared else nullcontext():
            known = self._borrowed() or (self.shared and self.shared.load(self.learner))
            self.learner, metrics = known or self._learned_offline()
        if self.folder:
            SharedPhase(self.folder.path / KEPT).keep(self.learner, metrics)
            self.folder.save_offline(self.learner, metrics)

    def _borrowed(self) -> tuple[Learner, Mapping[str, float]] | None:
        """What another run learned offline, if that was asked for."""
        path = self.experiment.settings.run.offline
        if not path:
            return None
        self.learner, metrics = borrow(self.config, _given(self.experiment).data, Path(path), self.learner)
        return self.learner, metrics if "prior/true_return" in metrics else {**metrics, **self._judged_offline()}

    def _learned_offline(self) -> tuple[Learner, Mapping[str, float]]:
        """The offline phase itself, which is kept for the other runs that share it."""
        started = perf_counter()
        self.learner, metrics = prepared(self.experiment, self.learner)
        metrics = {"seconds": perf_counter() - started, **metrics, **self._judged_offline()}
        if self.shared:
            self.shared.save(self.learner, metrics)
        return self.learner, metrics

    def _judged_offline(self) -> dict[str, float]:
        """What the policies of the offline phase are really worth, if that was asked for."""
        count, solver = self.experiment.settings.run.judged, self.experiment.solver
        if not count or not isinstance(solver, Preparing):
            return {}
        policies = solver.learned(self.learner.solver)
        found = {name: judge(self.experiment.task, each, count, judging_key(-1)) for name, each in policies.items()}
        return {f"{name}/{key}": value for name, values in found.items() for key, value in values.items()}

    def _player(self, system: LazySystem) -> Play:
        """Plays episodes on the true system and keeps them at once, also one that the user stops."""
        task, recorded = self.experiment.task, self.folder.pending() if self.folder else None
        guard = Guard.of(task, self.experiment.settings.run.step_timeout)

        def play(policy: Policy, turn: Turn) -> Played:
            nonlocal recorded
            if recorded is not None:  # played before the run stopped, but not learned from
                played, recorded = recorded, None
                return played
            display = _Display(self.observer)
            try:
                env = system.open()
                played = run_episode(
                    env, policy, turn.seed, turn.key, task.horizon, guard=guard, on_step=display.stepped
                )
            except ResetFault as fault:
                played = Played(nothing_played(task.state_size, task.action_size, len(task.costs), str(fault)), {})
            except Interrupted as stopped:
                self._keep_interruption(turn.episode, stopped.played)
                raise
            if self.folder:
                self.folder.keep(played)
            display.complain()
            return played

        return play

    def _keep_interruption(self, number: int, played: Played) -> None:
        if self.folder:
            interruption = make_interruption(self.experiment.task.costs, number, played.episode)
            self.folder.add_interruption(interruption, played)

    def _judged(self, outcome: Outcome) -> Outcome:
        """With what the policy is really worth in its line, if that was asked for."""
        count = self.experiment.settings.run.judged
        if not count:
            return outcome
        found = judge(self.experiment.task, outcome.policy, count, judging_key(outcome.record.episode))
        return outcome._replace(record=outcome.record._replace(metrics={**outcome.record.metrics, **found}))

    def _keep(self, outcome: Outcome) -> None:
        outcome = self._judged(outcome)
        self.learner = outcome.learner
        record = outcome.record._replace(line=len(self.records))
        if self.folder:
            record = self.folder.add(outcome)
        self.records.append(record)
        self._write_certificate()
        self.final = outcome.policy if record.phase == "final" else None
        if outcome.shortfall and record.episode == 0:
            self.observer.note(exploration_warning(outcome.shortfall))
        self.observer.finished_episode(record)
        self._check_learner()

    def _check_learner(self) -> None:
        """Refuses to play on with what is no number."""
        if name := nan_in(self.learner):
            raise UserError(
                f"the learner has NaN in {name} after {len(self.records)} episodes, so nothing more is played: look "
                "for readings or data that make no sense, and start anew without them. What was played is kept."
            )

    def _write_certificate(self) -> None:
        if self.folder:
            made = certified(self.experiment, self.records, self.learner, self.interruptions)
            self.folder.write_json("certificate.json", made)

    def _check_end(self) -> None:
        """Says so if the run stopped before its end."""
        again = f"; continue with 'sbsrl resume {self.folder.path}'" if self.folder else ""
        learned = [record for record in self.records if record.planned]
        if learned and learned[-1].ended == "fault":
            raise Halted(
                f"episode {learned[-1].episode} was cut short: {learned[-1].reason}. What was played is kept; look "
                f"after the system{again}."
            )
        if self.learner.contradicted and self.experiment.settings.run.inconsistent == "stop":
            raise Halted(
                f"the run stopped: {calibration_warning(self.learner.belief)}. The prior claims to know more than it "
                f"does: raise its bound, scale or noise and start anew{self._way_out}."
            )

    @property
    def _way_out(self) -> str:
        return "" if self.experiment.task.prior.policy is None else ", or use inconsistent=prior"


class _Display:
    """Shows steps. If that fails, as on a terminal that is gone, the episode is not stopped: it is said afterwards."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._error: Exception | None = None

    def stepped(self) -> None:
        if self._error is None:
            try:
                self._observer.stepped()
            except Exception as error:
                self._error = error

    def complain(self) -> None:
        if self._error is not None:
            raise self._error


def train(
    spec: Specification,
    out: Path | None = None,
    observer: Observer | None = None,
    shared: SharedPhase | None = None,
) -> Result:
    """Runs to the end; with `out`, in a new run folder that can be resumed however the run stops.

    The offline phase may be shared with other runs that have the same.
    """
    experiment, learner = spec.start()
    observer, config = observer or Unobserved(), make_config(spec, experiment.task)
    given = _given(experiment)
    if other := spec.settings.run.offline:
        borrow(config, given.data, Path(other), learner)  # refused before there is a folder
    if out is None:
        return _Run(experiment, config, learner, None, observer, shared).to_the_end()
    with RunFolder.create(out, config, given) as folder:
        return _Run(experiment, config, learner, folder, observer, shared).to_the_end()


def train_after(first: Sequence[Record], spec: Specification, folder: RunFolder | None, observer: Observer) -> Result:
    """Runs to the end after first episodes, which have lines of the ledger already."""
    experiment, learner = spec.start()
    run = spec.settings.run
    kept = replace(run, prior=PRIOR, data=DATA if run.data else "") if folder else run
    named = replace(spec, settings=replace(spec.settings, run=kept))
    config = make_config(named, experiment.task, first_episodes=len(first))
    if folder:
        folder.settle(config, _given(experiment))
    return _Run(experiment, config, learner, folder, observer, first=first).to_the_end()


def _given(experiment: Experiment) -> Given:
    """The files that the run depends on."""
    settings = experiment.settings
    return given_files(experiment.task, settings.run.prior, settings.run.data, settings.task)


def opened(folder: RunFolder, insist: bool = False) -> tuple[Specification, Experiment, Learner]:
    """What a run was asked to be, its experiment, and its learner before anything was learned."""
    asked = read_config(folder.path / "config.json", folder.config, insist)
    return asked, *_with_own_files(asked, folder).start()


def go_on(folder: RunFolder, observer: Observer, insist: bool = False) -> Result:
    """Continues a run in its folder, which is locked."""
    config = folder.config
    asked, experiment, fresh = opened(folder, insist)
    for sentence in what_changed(config):
        observer.note(sentence)
    if insist:  # what was edited is what the run is from now on
        config = make_config(asked, experiment.task, folder.first_lines)
        folder.write_json("config.json", config)
    learner = _restore(experiment, fresh, folder, observer, insist)
    return _Run(experiment, config, learner, folder, observer).to_the_end()


def _restore(experiment: Experiment, fresh: Learner, folder: RunFolder, observer: Observer, insist: bool) -> Learner:
    """The learner after all episodes of the ledger: from the checkpoint, then from trajectories that it lacks."""
    folder.repair()
    learner, lines, note = folder.restore(fresh, insist)
    missing = [record.line for record in folder.records()[lines:] if record.planned]
    if note:
        episodes = f"{len(missing)} recorded episode{'' if len(missing) == 1 else 's'}"
        observer.note(f"{note.rstrip('.')}; the learner is rebuilt from {episodes}.")
    for line in missing:
        learner = relearned(experiment, learner, folder, line)
    return learner


def relearned(experiment: Experiment, learner: Learner, folder: RunFolder, line: int) -> Learner:
    """The learner after an episode that was played already; exact, since solvers and beliefs repeat themselves."""
    recorded, written = folder.trajectory(line), folder.records()[line].steps
    if len(recorded.episode.actions) != written:
        raise UserError(
            f"the trajectory of line {line} in {folder.path} has {len(recorded.episode.actions)} steps and its line "
            f"{written}; restore it."
        )
    for outcome in algorithm_1(experiment, learner, lambda policy, turn: recorded):
        return outcome.learner
    raise UserError(f"{folder.path / 'episodes.jsonl'} has a line after the end of the run, line {line}; restore it.")


def exploration_warning(shortfall: Shortfall) -> str:
    """A plain word for runs that cannot even begin to explore as much as they are asked to."""
    return (
        f"the exploration threshold, {shortfall.threshold:.4g}, is out of reach: the best plan that was found "
        f"promises {shortfall.attainable:.4g} per episode. Exploration is off from the start; use a smaller threshold."
    )


def _with_own_files(spec: Specification, folder: RunFolder) -> Specification:
    """What the run began with is its own copy, whatever became of the files that were given."""
    run = spec.settings.run
    if run.data and not is_recipe(run.data):
        run = replace(run, data=str(folder.data))
    if folder.prior.exists():
        run = replace(run, prior=str(folder.prior))
    return replace(spec, settings=replace(spec.settings, run=run))
