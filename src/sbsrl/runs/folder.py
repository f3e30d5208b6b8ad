"""The folder of a run: what it was asked to do, what happened, and where it stands.

config.json           the whole configuration, versions and seed
episodes.jsonl        one line per episode
trajectories/         states, actions, rewards, costs of each episode
interruptions.jsonl   episodes that the user stopped, one line each, if there are any; their trajectories are kept, too
checkpoint/           all that an exact resume needs
offline.npz           the offline data it started from, if they were given as a file, or were played as first episodes
prior.toml            what was known of a user's system
certificate.json      what is guaranteed and what it rests on
reference.json        the two ends of the scale of returns, computed when the run ends
learning.png          returns and costs, drawn when the run ends
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from ..archive import read_arrays, write_arrays
from ..atomic import disk, write_atomically
from ..errors import UserError
from ..interruption import uninterrupted
from ..learner import Learner
from ..loop import Outcome
from ..record import Interruption, Record
from ..systems.episode import Played
from ..tasks import Given
from ..transitions import Ending, Episode
from ..validation import Place
from .checkpoint import load_checkpoint, save_checkpoint
from .config import digest
from .view import Reference, RunView

__all__ = ["DATA", "PRIOR", "RunFolder"]

T = TypeVar("T")

TRAJECTORY = ("states", "actions", "rewards", "costs")
"""The arrays of a trajectory."""
TEXTS = {"ended": "horizon", "reason": "", "metrics": "{}"}
"""Its texts, the last one JSON, and what stands for those that a trajectory does not have."""

LOCK, DATA, PRIOR = ".lock", "offline.npz", "prior.toml"
CREATED = (
    "trajectories",
    "checkpoint",
    "episodes.jsonl",
    DATA,
    f".{DATA}.tmp",
    PRIOR,
    f".{PRIOR}.tmp",
    "config.json",
    ".config.json.tmp",
    LOCK,
)
"""What a creation makes. A folder with nothing else and no configuration was left by one that was killed."""


NOTHING = Given(None, None)


class RunFolder:
    """The folder of one run. After each method, and if it is killed in one, the run can go on from what is there."""

    def __init__(self, path: str | Path) -> None:
        self.path = Place().read("the run folder", path)
        self._lock: int | None = None

    @classmethod
    def create(cls, path: str | Path, config: dict[str, Any], given: Given = NOTHING) -> "RunFolder":
        """Makes the folder, locked. Its configuration comes last and makes it a run; if that fails, nothing stays.

        `given` are the files that the run depends on, of which it keeps copies.
        """
        folder = cls(path)
        with disk(folder.path):
            existed = folder.path.exists()
            if existed and folder._occupied:
                raise UserError(_already_used(folder.path))  # before the lock, which would leave a file behind
            folder.path.mkdir(parents=True, exist_ok=True)
            folder.lock()
            if folder._occupied:  # by another process, meanwhile
                folder.unlock()
                raise UserError(_already_used(folder.path))
            try:
                folder._fill(config, given)
            except BaseException:
                folder._clear(remove=not existed)
                raise
        return folder

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """A folder that holds a run already, for reading; `lock` it before writing."""
        folder = cls(path)
        with disk(folder.path):
            if not folder.holds_run:
                raise UserError(f"{path} holds no run (there is no config.json); start one with 'sbsrl train'.")
        return folder

    def lock(self) -> None:
        """Makes this object the only one that writes here, until it is unlocked or the process ends."""
        with disk(self.path):
            file = os.open(self.path / LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise UserError(f"another process is running in {self.path}; wait for it, or stop it first.") from None
        self._lock = file

    def unlock(self) -> None:
        """Lets others write."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, *exception: object) -> None:
        self.unlock()

    @property
    def _occupied(self) -> bool:
        """Whether there is more than what a killed creation leaves."""
        if not self.path.is_dir():
            return True
        return self.holds_run or any(part.name not in CREATED for part in self.path.iterdir())

    @property
    def holds_run(self) -> bool:
        return (self.path / "config.json").is_file()

    @property
    def config(self) -> dict[str, Any]:
        config = _read_json(self.path / "config.json")
        if config is None:
            raise UserError(f"{self.path / 'config.json'} is damaged; restore it, or start anew.")
        return config

    @cached_property
    def identity(self) -> str:
        """Names the run: its configuration, its seed and its data. A checkpoint of another run has another one."""
        files = b"".join(file.read_bytes() for file in (self.data, self.prior) if file.exists())
        return hashlib.sha256(digest(self.config).encode() + files).hexdigest()

    def _fill(self, config: dict[str, Any], given: Given) -> None:
        (self.path / "trajectories").mkdir(exist_ok=True)
        (self.path / "checkpoint").mkdir(exist_ok=True)
        (self.path / "episodes.jsonl").write_bytes(b"")
        self.settle(config, given)

    def settle(self, config: dict[str, Any], given: Given) -> None:
        """Says what the run is: the files that it depends on, then its configuration."""
        for place, content in ((self.data, given.data), (self.prior, given.prior)):
            if content is not None:
                write_atomically(place, content)
        write_atomically(self.path / "config.json", _json(config))
        self.__dict__.pop("identity", None)

    def _clear(self, remove: bool) -> None:
        """Undoes a creation that failed."""
        self.unlock()
        for part in CREATED:
            target = self.path / part
            shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        if remove:
            self.path.rmdir()

    @property
    def data(self) -> Path:
        """The run's own copy of its offline data."""
        return self.path / DATA

    @property
    def prior(self) -> Path:
        """The run's own copy of what was known of a user's system."""
        return self.path / PRIOR

    @property
    def first_lines(self) -> int:
        """How many lines of the ledger are of episodes that were played before there was a belief."""
        return int(self.config.get("first_episodes", 0))

    @property
    def _ledger(self) -> Path:
        return self.path / "episodes.jsonl"

    @property
    def _interruptions(self) -> Path:
        return self.path / "interruptions.jsonl"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    def records(self) -> list[Record]:
        """All finished episodes."""
        records = _read_lines(self._ledger, Record.from_json)
        if wrong := [i for i, record in enumerate(records) if record.line not in {-1, i}]:
            raise UserError(f"{self._ledger} has lost lines, or their order, before line {wrong[0]}; restore it.")
        return [record._replace(line=i) for i, record in enumerate(records)]

    def keep(self, played: Played) -> None:
        """Keeps what was played, as the trajectory of the line to come, before anything is learned from it."""
        with uninterrupted():
            self._save_trajectory(_episode_name(self._lines()), played)

    def pending(self) -> Played | None:
        """An episode that was played and kept, and has no line yet, since the run stopped before; None if all have."""
        name = _episode_name(self._lines())
        return self._load_trajectory(name) if self._trajectory_file(name).exists() else None

    def add(self, outcome: Outcome) -> Record:
        """Makes an episode whose trajectory is kept permanent: its line, then the checkpoint that accounts for it."""
        line = self._lines()
        record = outcome.record._replace(line=line)
        with uninterrupted():
            _append_line(self._ledger, record._asdict())
            save_checkpoint(self.checkpoint, outcome.learner, line + 1, self.identity)
        return record

    def add_played(self, record: Record) -> Record:
        """Makes an episode whose trajectory is kept permanent, if nothing is learned from it: its line is all."""
        placed = record._replace(line=self._lines())
        with uninterrupted():
            _append_line(self._ledger, placed._asdict())
        return placed

    def save_offline(self, learner: Learner, metrics: Mapping[str, Any]) -> None:
        """Makes what was learned offline permanent: numbers about it, then the checkpoint of the learner."""
        self.write_json("offline.json", {name: float(value) for name, value in metrics.items()})
        with uninterrupted():
            save_checkpoint(self.checkpoint, learner, 0, self.identity)

    def offline(self) -> dict[str, float]:
        """What the offline phase reported; empty where there was none."""
        return _read_json(self.path / "offline.json") or {}

    def _lines(self) -> int:
        try:
            return len(self._ledger.read_bytes().splitlines())
        except OSError as error:
            raise UserError(f"{self._ledger} cannot be read ({error.strerror}); restore it.") from None

    def interruptions(self) -> list[Interruption]:
        """Episodes that the user stopped, in order."""
        if not self._interruptions.exists():
            return []
        return _read_lines(self._interruptions, lambda content: Interruption(**content))

    def add_interruption(self, interruption: Interruption, played: Played) -> None:
        """Keeps what was played of an episode that the user stopped; a reset alone counts as well."""
        name = f"interrupted-{len(self.interruptions()):04d}"
        with uninterrupted():
            self._save_trajectory(name, played)
            _append_line(self._interruptions, interruption._replace(trajectory=name)._asdict())

    def repair(self) -> None:
        """Removes last lines that were being written when the run was killed; makes folders that are missing."""
        with disk(self.path):
            for part in ("trajectories", "checkpoint"):
                (self.path / part).mkdir(exist_ok=True)
            for file in (self._ledger, self._interruptions):
                written = file.read_bytes() if file.exists() else b""
                whole, last = written[: (end := written.rfind(b"\n") + 1)], written[end:]
                if last:
                    write_atomically(file, written + b"\n" if _is_json(last) else whole)

    def restore(self, fresh: Learner, insist: bool = False) -> tuple[Learner, int, str | None]:
        """The learner of the last checkpoint, for how many lines it accounts, and what was wrong, if anything.

        With `insist` checkpoints that cannot be used are none: those of the configuration before it was edited.
        """
        written = self._lines()
        if len(kept := sorted(self.path.glob("trajectories/episode-*.npz"))) > written + 1:
            raise UserError(f"{self._ledger} has lost lines: {written} are left of {len(kept)}; restore it.")
        try:
            loaded = load_checkpoint(self.checkpoint, fresh, self.identity)
        except UserError as fault:
            if not insist:
                raise
            return fresh, self.first_lines, str(fault).partition(";")[0]
        if loaded is None:
            return fresh, self.first_lines, "there is no checkpoint" if written > self.first_lines else None
        if written < loaded.lines:
            raise UserError(f"{self._ledger} has lost lines: {written} of {loaded.lines} are left; restore it.")
        return loaded.learner, loaded.lines, loaded.note

    def trajectory(self, line: int) -> Played:
        """What happened in the episode of that line, and what the policy said of its decisions."""
        return self._load_trajectory(_episode_name(line))

    def _trajectory_file(self, name: str) -> Path:
        return self.path / "trajectories" / f"{name}.npz"

    def _load_trajectory(self, name: str) -> Played:
        path = self._trajectory_file(name)
        arrays = read_arrays(path)
        try:
            states, actions, rewards, costs = (arrays[part] for part in TRAJECTORY)
            costs = costs[:, None] if costs.ndim == 1 else costs  # the first version knew one cost, and no texts
            ended, reason, metrics = (str(arrays.get(part, other)) for part, other in TEXTS.items())
            said = {str(key): [float(value) for value in values] for key, values in json.loads(metrics).items()}
            return Played(Episode(states, actions, rewards, costs, cast("Ending", ended), reason), said)
        except KeyError as error:
            raise UserError(f"{path} has no {error}; restore it.") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise UserError(f"{path} cannot be understood ({error}); restore it.") from None

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        write_atomically(self.path / name, _json(content))

    def view(self) -> RunView:
        """The run as this folder tells it."""
        reference = _read_json(self.path / "reference.json")
        return RunView(
            config=self.config,
            records=self.records(),
            certificate=_read_json(self.path / "certificate.json"),
            reference=Reference(**reference) if reference else None,
            interruptions=self.interruptions(),
        )

    def _save_trajectory(self, name: str, played: Played) -> None:
        episode = played.episode
        arrays: dict[str, Any] = dict(zip(TRAJECTORY, episode[:4], strict=True))
        words = {"ended": episode.ended, "reason": episode.reason, "metrics": json.dumps(played.metrics)}
        write_arrays(self._trajectory_file(name), **arrays, **words)


def _episode_name(line: int) -> str:
    """Of the trajectory of a line of the ledger."""
    return f"episode-{line:04d}"


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _read_lines(file: Path, read: Callable[[dict[str, Any]], T]) -> list[T]:
    """Every line of JSON in a file, as `read` understands it."""
    try:
        return [read(json.loads(line)) for line in file.read_text().splitlines()]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{file} cannot be read ({error}); restore it.") from None


def _append_line(file: Path, content: dict[str, Any]) -> None:
    """Adds a line of JSON that survives a power failure."""
    with disk(file), file.open("a") as ledger:
        ledger.write(json.dumps(content) + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())


def _read_json(path: Path) -> dict[str, Any] | None:
    """The mapping in a file; None if there is none."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


def _already_used(path: Path) -> str:
    if (path / "config.json").is_file():
        return f"{path} holds a run already; continue it with 'sbsrl resume {path}', or choose another --out."
    return f"{path} exists and is not an empty folder; choose another --out."
