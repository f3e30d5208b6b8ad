"""Runs that are interrupted, and all that a run leaves behind."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
import toys
from safetensors import safe_open

from sbsrl.archive import read_arrays
from sbsrl.runs.checkpoint import CURRENT


class Listens:
    """An observer that keeps what it is told."""

    def __init__(self):
        self.notes, self.records, self.views = [], [], []

    def started(self, view, folder):
        self.views.append(view)

    def note(self, text):
        self.notes.append(text)

    def finished_episode(self, record):
        self.records.append(record)

    def stepped(self):
        pass


class Interrupts(Listens):
    """It also presses Ctrl-C after so many steps, which may be in the middle of an episode."""

    def __init__(self, steps):
        super().__init__()
        self.left = steps

    def stepped(self):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.fixture(scope="session")
def listens():
    return Listens


@pytest.fixture(scope="session")
def interrupts():
    """The class: how many steps it waits is the test's to say."""
    return Interrupts


class Left(NamedTuple):
    """What a run left behind, as bytes but for the ledger."""

    ledger: list[dict]
    """All lines without the time they took."""
    trajectories: dict[str, bytes]
    checkpoint: dict[str, object]
    """Its arrays, its checksum, and the identity of the run."""


def left_behind(folder: Path) -> Left:
    lines = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    trajectories = {
        f"{file.name}/{name}": array.tobytes()
        for file in (folder / "trajectories").glob("episode-*.npz")
        for name, array in read_arrays(file).items()
    }
    without_time = [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
    return Left(without_time, trajectories, checkpoint_in(folder))


def checkpoint_in(folder: Path) -> dict[str, object]:
    path = folder / "checkpoint" / CURRENT
    if not path.exists():
        return {}
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return {"metadata": file.metadata()} | {n: (a.dtype, a.shape, a.tobytes()) for n, a in arrays.items()}


@pytest.fixture(scope="session")
def left():
    return left_behind


@pytest.fixture(scope="module")
def cart():
    """The toy task, belief and solver, known by their names."""
    with pytest.MonkeyPatch.context() as patch:
        toys.register(patch.setitem)
        yield toys


@pytest.fixture
def calls(monkeypatch):
    """All calls of the true cart from now on."""
    monkeypatch.setattr(toys.Cart, "calls", [])
    return toys.Cart.calls
