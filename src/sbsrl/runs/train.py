"""Running an experiment: in memory, in a folder, or where a folder left off."""

import platform
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..errors import UserError
from ..experiment import make_experiment, make_learner
from ..loop import Experiment, Learner, Record, algorithm_1, first_shortfall, greedy_policy
from ..settings import Settings, make_settings
from ..solve import Solution
from ..tasks import find_task
from .certificate import certificate, first_episode_warning
from .folder import RunFolder

__all__ = ["Observer", "Result", "Specification", "resume", "train"]


@runtime_checkable
class Observer(Protocol):
    """Whoever wants to see a run as it happens."""

    def started(self, experiment: Experiment, done: list[Record], folder: Path | None) -> None: ...

    def note(self, text: str) -> None: ...

    def stepped(self) -> None: ...

    def finished_episode(self, record: Record) -> None: ...


class Unobserved:
    """Nobody watches."""

    def started(self, experiment: Experiment, done: list[Record], folder: Path | None) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def stepped(self) -> None:
        pass

    def finished_episode(self, record: Record) -> None:
        pass


@dataclass(frozen=True)
class Specification:
    """All that determines a run."""

    task: str
    method: str
    seed: int
    preset: str
    settings: Settings

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**32:
            raise UserError(f"seed {self.seed} is out of range; it must be between 0 and 4294967295.")

    @classmethod
    def make(cls, task: str, method: str, seed: int, preset: str, changes: dict[str, Any]) -> "Specification":
        return cls(task, method, seed, preset, make_settings(find_task(task).settings, preset, changes))

    @property
    def default_folder(self) -> Path:
        return Path("runs") / f"{self.task}-{self.method}-s{self.seed}"

    def experiment(self) -> Experiment:
        return make_experiment(self.task, self.method, self.settings)

    def start(self) -> tuple[Experiment, Learner]:
        """The experiment and its learner before the first episode."""
        experiment = self.experiment()
        return experiment, make_learner(experiment, self.seed)


class Result(NamedTuple):
    """What a run leaves behind."""

    experiment: Experiment
    records: list[Record]
    learner: Learner
    folder: Path | None

    def policy(self) -> Solution:
        """The greedy policy of what was learned, at the initial state."""
        return greedy_policy(self.experiment, self.learner)


def train(spec: Specification, out: Path | None = None, observer: Observer | None = None) -> Result:
    """Runs to the end; with `out`, in a new run folder that can be resumed however the run stops."""
    experiment, learner = spec.start()
    observer = observer or Unobserved()
    if out is None:
        return _run(experiment, learner, [], None, observer)
    data = Path(spec.settings.data).read_bytes() if spec.settings.data else None
    with RunFolder.create(out, {**asdict(spec), "versions": versions_now()}, data) as folder:
        return _run(experiment, learner, [], folder, observer)


def resume(path: str | Path, observer: Observer | None = None) -> Result:
    """Continues exactly where the run stopped: the outcome is the one it would have had."""
    observer = observer or Unobserved()
    with RunFolder.open(path) as folder:
        folder.lock()
        config = folder.config
        versions = config.pop("versions", {})
        experiment, fresh = _with_own_data(_specification(folder.path, config), folder).start()
        learner = folder.restore(fresh)
        if changed := _changes(versions):
            observer.note(f"versions changed since the run began ({changed}): results may differ in the last digits.")
        return _run(experiment, learner, folder.records(), folder, observer)


def _run(
    experiment: Experiment, learner: Learner, records: list[Record], folder: RunFolder | None, observer: Observer
) -> Result:
    path = folder.path if folder else None
    observer.started(experiment, records, path)
    if not records:
        for warning in (first_episode_warning(experiment), exploration_warning(experiment, learner)):
            if warning:
                observer.note(warning)
    for outcome in algorithm_1(experiment, learner, observer.stepped):
        learner = outcome.learner
        records.append(outcome.record)
        if folder:
            folder.add(outcome)
            folder.write_json("certificate.json", certificate(experiment, records))
        observer.finished_episode(outcome.record)
    if folder:
        folder.write_json("certificate.json", certificate(experiment, records))
    return Result(experiment, records, learner, path)


def exploration_warning(experiment: Experiment, learner: Learner) -> str | None:
    """A plain word for runs that cannot even begin to explore as much as they are asked to."""
    shortfall = first_shortfall(experiment, learner)
    if shortfall is None:
        return None
    return (
        f"the exploration threshold, {shortfall.threshold:.4g}, is out of reach: the best plan that was found "
        f"promises {shortfall.attainable:.4g} an episode. Exploration is off from the start; use a smaller threshold."
    )


def _specification(path: Path, config: dict[str, Any]) -> Specification:
    try:
        return Specification(**{**config, "settings": Settings(**config["settings"])})
    except (TypeError, KeyError) as error:
        raise UserError(f"{path / 'config.json'} does not fit this version of sbsrl ({error}).") from None


def _with_own_data(spec: Specification, folder: RunFolder) -> Specification:
    """The offline data are those that the run began with, whatever became of the file they were read from."""
    if not spec.settings.data:
        return spec
    return replace(spec, settings=replace(spec.settings, data=str(folder.data)))


def versions_now() -> dict[str, str]:
    packages = ("sbsrl", "jax", "jaxlib", "equinox", "numpy")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def _changes(saved: dict[str, str]) -> str:
    now = versions_now()
    return ", ".join(f"{name} {saved.get(name)} -> {now[name]}" for name in now if saved.get(name) != now[name])
