"""Data that recipes make are recorded once: kept under a name that tells what they depend on, and read again."""

import numpy as np
import pytest
import slider

from sbsrl.offline import collect
from sbsrl.tasks import _recorded, make_task, recordings
from sbsrl.tasks.recordings import kept, recording_name

MODULE = "sbsrl.tasks.race_car"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sbsrl" / "recordings"


class Recorder:
    """Records, and counts how often."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return collect(slider.make(), "pusher", seed=4, episodes=2)


def same(one, other):
    assert one[:3] == other[:3]
    for a, b in zip(one.transitions, other.transitions, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


def test_data_are_recorded_once_and_read_bit_for_bit(folder):
    record = Recorder()
    first, again = kept("some", record), kept("some", record)
    assert record.count == 1
    same(first, again)
    assert [file.name for file in folder.glob("*.npz")] == ["some.npz"]


def test_what_cannot_be_read_is_recorded_again(folder):
    record = Recorder()
    kept("some", record)
    (folder / "some.npz").write_bytes(b"nonsense")
    same(kept("some", record), kept("some", record))
    assert record.count == 2


def test_without_a_name_or_a_place_data_are_recorded_every_time(folder, tmp_path, monkeypatch):
    record = Recorder()
    kept(None, record)
    assert not folder.exists()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    kept("some", record)
    kept("some", record)
    assert record.count == 3


def test_a_recording_that_fails_leaves_nothing(folder):
    def fails():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        kept("some", fails)
    assert list(folder.glob("*.npz")) == []


def test_those_not_used_for_longest_go_first(folder, monkeypatch):
    monkeypatch.setattr(recordings, "MOST_KEPT", 2)
    times = iter(range(100))
    for name in ("one", "two", "one", "three"):
        kept(name, Recorder())
        path = folder / f"{name}.npz"
        moment = 1_000_000_000 + next(times)
        recordings.os.utime(path, (moment, moment))
    assert {file.stem for file in folder.glob("*.npz")} == {"one", "three"}


def test_a_name_tells_what_data_depend_on(monkeypatch):
    name = recording_name(MODULE, "data", (15.0,), None, "careless:3:1")
    assert name == recording_name(MODULE, "data", (15.0,), None, "careless:3:1")
    others = [
        recording_name(MODULE, "data", (15.0,), None, "careless:3:2"),
        recording_name(MODULE, "data", (5.0,), None, "careless:3:1"),
        recording_name("sbsrl.tasks.rwrl_cartpole", "data", (15.0,), None, "careless:3:1"),
    ]
    monkeypatch.setattr(recordings, "_code", lambda module: b"other code")
    others.append(recording_name(MODULE, "data", (15.0,), None, "careless:3:1"))
    assert len({name, *others}) == 5
    assert recording_name("somebody.elses", "data") is None


def test_a_task_made_again_reads_what_was_recorded(folder, monkeypatch):
    """As another process would: what this one remembers is forgotten in between."""
    _recorded.cache_clear()
    first = make_task("race-car", data="careless:1:3")
    _recorded.cache_clear()

    def refuse(*arguments):
        raise AssertionError("it was recorded before")

    monkeypatch.setattr("sbsrl.tasks.find", refuse)
    again = make_task("race-car", data="careless:1:3")
    np.testing.assert_array_equal(first.prior.data.states, again.prior.data.states)
    _recorded.cache_clear()
