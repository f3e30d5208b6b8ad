"""The folder of a run: what it was asked to do, what happened, and where it stands.

config.json           the whole configuration, versions and seed
episodes.jsonl        one line an episode
trajectories/         states, actions, rewards, costs of each episode
checkpoint/           all that an exact resume needs
certificate.json      what is guaranteed and what it rests on
learning.png          returns and costs, drawn when the run ends
"""

import io
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..loop import Learner, Outcome, Record
from ..task import Episode
from .atomic import disk, write_atomically
from .checkpoint import load_checkpoint, save_checkpoint

__all__ = ["RunFolder"]


class RunFolder:
    """A place on disk. Every method leaves it in a state from which the run can go on."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, config: dict[str, Any]) -> "RunFolder":
        """Makes the folder with its configuration, or nothing at all."""
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise UserError(_occupied(path))
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
            try:
                (temporary / "trajectories").mkdir()
                (temporary / "checkpoint").mkdir()
                (temporary / "episodes.jsonl").touch()
                write_atomically(temporary / "config.json", _json(config))
                temporary.chmod(0o755)
                os.rename(temporary, path)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """A folder that holds a run already."""
        if not (path / "config.json").is_file():
            raise UserError(f"{path} holds no run (there is no config.json); start one with 'sbsrl train'.")
        return cls(path)

    @property
    def config(self) -> dict[str, Any]:
        try:
            return json.loads((self.path / "config.json").read_text())
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise UserError(f"{self.path / 'config.json'} is not readable; restore it, or start anew.") from None

    @property
    def _ledger(self) -> Path:
        return self.path / "episodes.jsonl"

    @property
    def _checkpoint(self) -> Path:
        return self.path / "checkpoint" / "learner.safetensors"

    def records(self) -> list[Record]:
        """All finished episodes."""
        return [Record(**json.loads(line)) for line in self._ledger.read_text().splitlines()]

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
        written = self._ledger.read_bytes().splitlines(keepends=True)
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


def _occupied(path: Path) -> str:
    if (path / "config.json").is_file():
        return f"{path} holds a run already; continue it with 'sbsrl resume {path}', or choose another --out."
    return f"{path} exists and is not an empty folder; choose another --out."
