"""Data that recipes make are recorded once: kept under a name that tells what they depend on, and read again."""

import os
import shutil

import numpy as np
import pytest
import slider

from sbsrl import imports
from sbsrl.offline import collect
from sbsrl.tasks import _recorded, make_task, race_car, recordings, rwrl_cartpole
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
    """Three were made long ago; the first is read again, so that the second goes when there is no room."""
    monkeypatch.setattr(recordings, "MOST_KEPT", 3)
    for age, name in enumerate(("three", "two", "one")):
        kept(name, Recorder())
        os.utime(folder / f"{name}.npz", (1e9 - age, 1e9 - age))
    kept("one", Recorder())
    kept("four", Recorder())
    assert {file.stem for file in folder.glob("*.npz")} == {"one", "three", "four"}


def test_what_is_too_large_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(recordings, "MOST_BYTES", 100)
    record = Recorder()
    kept("some", record)
    same(kept("some", record), record())
    assert list(folder.glob("*.npz")) == []


def test_where_files_cannot_be_locked_data_are_recorded_and_kept_all_the_same(folder, monkeypatch):
    def no_locks(*arguments):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("sbsrl.atomic.fcntl.flock", no_locks)
    record = Recorder()
    same(kept("some", record), kept("some", record))
    assert record.count == 1


CHOICES = ("data", (15.0,), None, "careless:3:1")


def test_a_name_tells_what_data_depend_on():
    name = recording_name(MODULE, race_car.careless, *CHOICES)
    assert name == recording_name(MODULE, race_car.careless, *CHOICES)
    others = [
        recording_name(MODULE, race_car.careless, *CHOICES[:3], "careless:3:2"),
        recording_name(MODULE, race_car.careless, "data", (5.0,), *CHOICES[2:]),
        recording_name(MODULE, race_car.careless, *CHOICES[:2], race_car.SETTINGS(contact="ghost"), CHOICES[3]),
        recording_name("sbsrl.tasks.rwrl_cartpole", rwrl_cartpole.BEHAVIOURS["pump"], *CHOICES),
    ]
    assert None not in (name, *others)
    assert len({name, *others}) == 5


def test_what_others_wrote_has_no_name():
    """Neither a task of somebody else, nor a behaviour that was added to one of ours."""
    assert recording_name("somebody.elses", race_car.careless, *CHOICES) is None
    assert recording_name(MODULE, lambda key: None, *CHOICES) is None


@pytest.mark.parametrize(
    ("part", "differs"),
    [("systems/episode.py", True), ("behaviours.py", True), ("tasks/race_car.py", True), ("report/charts.py", False)],
)
def test_other_code_makes_other_data(part, differs, tmp_path, monkeypatch):
    copy = tmp_path / "sbsrl"
    shutil.copytree(imports.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(imports, "PACKAGE", copy)
    before = recording_name(MODULE, race_car.careless, *CHOICES)
    old = (copy / part).stat().st_mtime
    (copy / part).write_bytes((copy / part).read_bytes() + b"\n")
    changed = recording_name(MODULE, race_car.careless, *CHOICES)
    assert (changed is None) == differs, "code that was changed after it was loaded has no name"
    os.utime(copy / part, (old, old))
    recordings._content.cache_clear()
    assert (recording_name(MODULE, race_car.careless, *CHOICES) != before) == differs
    recordings._content.cache_clear()


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
