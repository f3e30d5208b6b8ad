"""The folder of a run: what it was asked to do, what happened, and where it stands.

config.json           the whole configuration, versions and seed
episodes.jsonl        one line an episode
trajectories/         states, actions, rewards, costs of each episode
checkpoint/           all that an exact resume needs
offline.npz           the offline data it started from, if they were given as a file
certificate.json      what is guaranteed and what it rests on
learning.png          returns and costs, drawn when the run ends
"""

import fcntl
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic import disk, write_atomically
from ..errors import UserError
from ..loop import Learner, Outcome, Record
from ..task import Episode
from .checkpoint import load_checkpoint, save_checkpoint

__all__ = ["RunFolder"]

LOCK, DATA = ".lock", "offline.npz"
PARTS = ("trajectories", "checkpoint", "episodes.jsonl", DATA, f".{DATA}.tmp", "config.json", ".config.json.tmp", LOCK)
"""What a creation makes. A folder with nothing else and no configuration was left by one that was killed."""


class RunFolder:
    """A place on disk. Every method leaves it in a state from which the run can go on."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock: int | None = None

    @classmethod
    def create(cls, path: str | Path, config: dict[str, Any], data: bytes | None = None) -> "RunFolder":
        """Makes the folder, locked. Its configuration comes last and makes it a run; if that fails, nothing stays.

        `data` are the offline data that the run starts from, if they are not those of its prior.
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
                folder._fill(config, data)
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
        return self.holds_run or any(part.name not in PARTS for part in self.path.iterdir())

    @property
    def holds_run(self) -> bool:
        return (self.path / "config.json").is_file()

    @property
    def config(self) -> dict[str, Any]:
        try:
            config = json.loads((self.path / "config.json").read_text())
        except (json.JSONDecodeError, UnicodeDecodeError):
            config = None
        if not isinstance(config, dict):
            raise UserError(f"{self.path / 'config.json'} is damaged; restore it, or start anew.")
        return config

    def _fill(self, config: dict[str, Any], data: bytes | None) -> None:
        (self.path / "trajectories").mkdir(exist_ok=True)
        (self.path / "checkpoint").mkdir(exist_ok=True)
        (self.path / "episodes.jsonl").write_bytes(b"")
        if data is not None:
            write_atomically(self.data, data)
        write_atomically(self.path / "config.json", _json(config))

    def _clear(self, remove: bool) -> None:
        """Undoes a creation that failed."""
        self.unlock()
        for part in PARTS:
            target = self.path / part
            shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        if remove:
            self.path.rmdir()

    @property
    def data(self) -> Path:
        """The run's own copy of its offline data."""
        return self.path / DATA

    @property
    def _ledger(self) -> Path:
        return self.path / "episodes.jsonl"

    @property
    def _checkpoint(self) -> Path:
        return self.path / "checkpoint" / "learner.safetensors"

    def records(self) -> list[Record]:
        """All finished episodes."""
        try:
            return [Record(**json.loads(line)) for line in self._ledger.read_text().splitlines()]
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{self._ledger} cannot be read ({error}); restore it.") from None

    def add(self, outcome: Outcome) -> None:
        """Makes one episode permanent: trajectory, then its line, then the checkpoint that accounts for both."""
        record = outcome.record
        lines = len(self._ledger.read_bytes().splitlines()) + 1
        self._save_trajectory(record.episode, outcome.episode)
        with disk(self._ledger), self._ledger.open("a") as file:
            file.write(json.dumps(record._asdict()) + "\n")
            file.flush()
            os.fsync(file.fileno())
        save_checkpoint(self._checkpoint, outcome.learner, lines)

    def restore(self, fresh: Learner) -> Learner:
        """The learner where the run stopped. Lines of an episode that was not completed are removed."""
        learner, lines = fresh, 0
        if self._checkpoint.exists():
            learner, lines = load_checkpoint(self._checkpoint, fresh)
        written = self._ledger.read_bytes().splitlines(keepends=True) if self._ledger.exists() else []
        if len(written) < lines:
            raise UserError(f"{self._ledger} has lost lines: {len(written)} of {lines} are left; restore it.")
        if len(written) > lines:
            write_atomically(self._ledger, b"".join(written[:lines]))
        return learner

    def trajectory(self, episode: int) -> Episode:
        """What happened in that episode."""
        with np.load(self._trajectory_path(episode), allow_pickle=False) as arrays:
            return Episode(**arrays)

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        write_atomically(self.path / name, _json(content))

    def _trajectory_path(self, episode: int) -> Path:
        return self.path / "trajectories" / f"episode-{episode:04d}.npz"

    def _save_trajectory(self, number: int, episode: Episode) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, **episode._asdict())
        write_atomically(self._trajectory_path(number), buffer.getvalue())


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


def _already_used(path: Path) -> str:
    if (path / "config.json").is_file():
        return f"{path} holds a run already; continue it with 'sbsrl resume {path}', or choose another --out."
    return f"{path} exists and is not an empty folder; choose another --out."
