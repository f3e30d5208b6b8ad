import errno
import json

import numpy as np
import pytest

from sbsrl import RunFolder, UserError, atomic
from sbsrl.loop import algorithm_1
from sbsrl.runs import Specification


@pytest.fixture
def spec(tiny):
    return Specification.make("pendulum", "sbsrl", 0, "cpu", tiny)


@pytest.fixture
def outcomes(spec):
    return list(algorithm_1(*spec.start()))


@pytest.fixture
def folder(tmp_path):
    with RunFolder.create(tmp_path / "run", {"task": "pendulum"}) as folder:
        yield folder


def test_a_new_folder_holds_its_configuration(folder):
    assert folder.config == {"task": "pendulum"}
    names = {p.name for p in folder.path.iterdir()}
    assert names == {".lock", "config.json", "episodes.jsonl", "trajectories", "checkpoint"}
    assert folder.records() == []


def test_a_new_folder_keeps_the_data_it_is_given(tmp_path):
    with RunFolder.create(tmp_path / "run", {}, b"some data") as folder:
        assert folder.data == tmp_path / "run" / "offline.npz"
        assert folder.data.read_bytes() == b"some data"


def test_data_that_a_killed_creation_left_do_not_stop_another(tmp_path):
    (tmp_path / "run").mkdir()
    for name in ("offline.npz", ".offline.npz.tmp"):
        (tmp_path / "run" / name).write_bytes(b"half")
    with RunFolder.create(tmp_path / "run", {}, b"whole") as folder:
        assert folder.data.read_bytes() == b"whole"


def test_episodes_come_back_as_they_were(folder, outcomes):
    for outcome in outcomes:
        folder.add(outcome)
    assert folder.records() == [outcome.record for outcome in outcomes]
    back = folder.trajectory(1)
    for got, expected in zip(back, outcomes[1].episode, strict=True):
        assert np.array_equal(got, expected)


def test_every_line_has_the_promised_fields(folder, outcomes):
    folder.add(outcomes[0])
    line = json.loads((folder.path / "episodes.jsonl").read_text())
    promised = "episode phase reward cost budget violation safe feasible exploring uncertainty samples seconds"
    assert set(promised.split()) <= set(line)


def test_lines_that_the_checkpoint_does_not_account_for_are_removed(folder, outcomes, spec):
    """As after a kill between the line and the checkpoint, and in the middle of a line."""
    folder.add(outcomes[0])
    with (folder.path / "episodes.jsonl").open("a") as file:
        file.write(json.dumps(outcomes[1].record._asdict()) + "\n" + '{"episode": 2, "pha')
    learner = folder.restore(spec.start()[1])
    assert folder.records() == [outcomes[0].record]
    assert learner.episode == 1


def test_before_the_first_episode_there_is_nothing_to_restore(folder, spec):
    _, fresh = spec.start()
    assert folder.restore(fresh) is fresh


def test_lost_lines_are_reported(folder, outcomes, spec):
    folder.add(outcomes[0])
    (folder.path / "episodes.jsonl").write_text("")
    with pytest.raises(UserError, match="has lost lines: 0 of 1"):
        folder.restore(spec.start()[1])


def test_what_a_killed_creation_left_may_be_used(tmp_path):
    (tmp_path / "run" / "trajectories").mkdir(parents=True)
    (tmp_path / "run" / "episodes.jsonl").touch()
    assert RunFolder.create(tmp_path / "run", {"a": 1}).config == {"a": 1}


def test_two_processes_cannot_write_to_one_folder(folder):
    with pytest.raises(UserError, match="another process is running in"):
        RunFolder.open(folder.path).lock()
    with pytest.raises(UserError, match="holds a run already"):
        RunFolder.create(folder.path, {})
    assert folder.holds_run
    folder.unlock()
    RunFolder.open(folder.path).lock()


@pytest.mark.parametrize("content", ["[1, 2]", "{", "\ufffe"])
def test_a_damaged_configuration_is_reported(folder, content):
    (folder.path / "config.json").write_text(content)
    with pytest.raises(UserError, match="is damaged"):
        _ = folder.config


@pytest.mark.parametrize("content", ["{", '{"episode": 0}', "[]"])
def test_a_damaged_ledger_is_reported(folder, content):
    (folder.path / "episodes.jsonl").write_text(content)
    with pytest.raises(UserError, match="cannot be read"):
        folder.records()


def test_a_folder_that_holds_a_run_is_not_overwritten(folder):
    folder.unlock()
    with pytest.raises(UserError, match="holds a run already; continue it with 'sbsrl resume"):
        RunFolder.create(folder.path, {})


def test_a_folder_that_holds_anything_is_not_used(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match="not an empty folder"):
        RunFolder.create(tmp_path, {})
    assert [part.name for part in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_may_be_used(tmp_path):
    (tmp_path / "run").mkdir()
    assert RunFolder.create(tmp_path / "run", {"a": 1}).config == {"a": 1}


def test_a_folder_without_a_run_cannot_be_opened(tmp_path):
    with pytest.raises(UserError, match="holds no run"):
        RunFolder.open(tmp_path)


def full_disk(*args):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_no_half_made_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic.os, "fsync", full_disk)
    with pytest.raises(UserError, match=r"cannot use .*No space left on device.*make room"):
        RunFolder.create(tmp_path / "run", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writes", range(5))
def test_a_disk_that_fills_up_during_a_run_leaves_it_resumable(folder, outcomes, spec, monkeypatch, writes):
    """At whichever of its five flushes: trajectory and its name, line, checkpoint and its name."""
    folder.add(outcomes[0])
    left = iter(range(writes))
    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "fsync", lambda file: full_disk() if next(left, None) is None else None)
        with pytest.raises(UserError, match="No space left"):
            folder.add(outcomes[1])
    if folder.restore(spec.start()[1]).episode == 1:  # the last flush may fail with all in place
        folder.add(outcomes[1])
    assert folder.records() == [outcomes[0].record, outcomes[1].record]
