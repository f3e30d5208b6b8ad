"""An offline phase that several runs share: who comes first does it, the others begin where it ended."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import equinox as eqx

from ..atomic import disk, held, write_atomically
from ..errors import UserError
from ..learner import Learner
from .checkpoint import load_checkpoint, save_checkpoint

__all__ = ["SharedPhase"]

NUMBERS = "offline.json"


@dataclass(frozen=True)
class SharedPhase:
    """Where what was learned offline is kept. The folder's name tells all that it depends on."""

    folder: Path

    @contextmanager
    def held(self) -> Iterator[None]:
        """While one run does the phase, others that share it wait."""
        with held(self.folder):
            yield

    def load(self, fresh: Learner) -> tuple[Learner, dict[str, float]] | None:
        """A run's learner after the phase, and the numbers about it; None if it was not done yet, or cannot be read."""
        try:
            numbers = json.loads((self.folder / NUMBERS).read_text())
            loaded = load_checkpoint(self.folder, fresh, self.folder.name)
        except (OSError, ValueError, UserError):
            return None
        if loaded is None:
            return None
        parts = lambda learner: (learner.belief, learner.solver, learner.prepared)  # noqa: E731
        return eqx.tree_at(parts, fresh, parts(loaded.learner)), numbers

    def keep(self, learner: Learner, numbers: Mapping[str, float]) -> None:
        """The same in a folder that nobody else writes to."""
        with disk(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.save(learner, numbers)

    def save(self, learner: Learner, numbers: Mapping[str, float]) -> None:
        """Keeps it for others, while it is held. The numbers come last: without them nothing is there."""
        save_checkpoint(self.folder, learner, 0, self.folder.name)
        write_atomically(self.folder / NUMBERS, json.dumps({k: float(v) for k, v in numbers.items()}).encode())
