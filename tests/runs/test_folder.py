"""The folder of a run: what is in it, what is refused, and that no moment is bad for a full disk."""

import errno
import json
from contextlib import closing

import numpy as np
import pytest

from sbsrl import RunFolder, UserError, atomic
from sbsrl.loop import algorithm_1
from sbsrl.record import Interruption
from sbsrl.specification import Specification
from sbsrl.systems.episode import Guard, Played, run_episode
from sbsrl.tasks import Given
from sbsrl.transitions import Episode

CONFIG = {"task": "pendulum"}


@pytest.fixture(scope="module")
def spec(cart):
    """Of a run that takes no time."""
    return Specification.make("cart", "sbsrl", 0, "cpu", {"episodes": 2})


@pytest.fixture(scope="module")
def outcomes(spec):
    experiment, learner = spec.start()
    task = experiment.task
    with closing(task.open()) as env:

        def play(policy, turn):
            return run_episode(env, policy, turn.seed, turn.key, task.horizon, guard=Guard.of(task))

        return list(algorithm_1(experiment, learner, play))


@pytest.fixture
def folder(tmp_path):
    with RunFolder.create(tmp_path / "run", CONFIG) as folder:
        yield folder


def test_a_new_folder_holds_its_configuration(folder):
    assert folder.config == {"task": "pendulum"}
    names = {p.name for p in folder.path.iterdir()}
    assert names == {".lock", "config.json", "episodes.jsonl", "trajectories", "checkpoint"}
    assert folder.records() == []


def test_a_new_folder_keeps_the_data_it_is_given(tmp_path):
    with RunFolder.create(tmp_path / "run", {}, Given(b"some data", None)) as folder:
        assert folder.data == tmp_path / "run" / "offline.npz"
        assert folder.data.read_bytes() == b"some data"


def test_data_that_a_killed_creation_left_do_not_stop_another(tmp_path):
    (tmp_path / "run").mkdir()
    for name in ("offline.npz", ".offline.npz.tmp"):
        (tmp_path / "run" / name).write_bytes(b"half")
    with RunFolder.create(tmp_path / "run", {}, Given(b"whole", None)) as folder:
        assert folder.data.read_bytes() == b"whole"


SAID = {"violation": [0.1, np.nextafter(0.25, 1)], "evaluated": [1 / 3]}
"""What a policy said of its decisions."""


def add(folder, outcome):
    """As a run does: what was played is kept before it has a line."""
    folder.keep(Played(outcome.episode, SAID))
    return folder.add(outcome)


def test_episodes_come_back_as_they_were(folder, outcomes):
    for outcome in outcomes:
        add(folder, outcome)
    assert folder.records() == recorded(outcomes)
    for line, outcome in enumerate(outcomes):
        back, said = folder.trajectory(line)
        for got, expected in zip(back[:4], outcome.episode[:4], strict=True):
            assert np.array_equal(got, expected)
            assert got.dtype == expected.dtype
        assert back[4:] == outcome.episode[4:]
        assert said == SAID


def test_an_episode_that_was_kept_and_has_no_line_is_pending(folder, outcomes):
    assert folder.pending() is None
    add(folder, outcomes[0])
    assert folder.pending() is None
    folder.keep(Played(outcomes[1].episode, SAID))
    assert np.array_equal(folder.pending().episode.states, outcomes[1].episode.states)
    assert folder.pending().metrics == SAID
    folder.add(outcomes[1])
    assert folder.pending() is None


def recorded(outcomes):
    """Their lines, which know where they stand."""
    return [outcome.record._replace(line=i) for i, outcome in enumerate(outcomes)]


def test_adding_tells_the_line_that_was_written(folder, outcomes):
    assert [folder.add(outcome) for outcome in outcomes] == recorded(outcomes)


def test_a_trajectory_of_the_first_version_has_one_cost(folder, outcomes):
    add(folder, outcomes[0])
    path = folder.path / "trajectories" / "episode-0000.npz"
    with np.load(path) as arrays:
        old = {**arrays, "costs": arrays["costs"][:, 0]}
    np.savez(path, **old)
    assert folder.trajectory(0).episode.costs.shape == (len(old["actions"]), 1)


def test_a_trajectory_that_lacks_something_is_reported(folder, outcomes):
    add(folder, outcomes[0])
    path = folder.path / "trajectories" / "episode-0000.npz"
    np.savez(path, states=np.zeros((2, 2)), actions=np.zeros((1, 1)), costs=np.zeros((1, 2)))
    with pytest.raises(UserError, match=r"episode-0000\.npz has no 'rewards'; restore it"):
        folder.trajectory(0)


def test_a_missing_trajectory_is_reported(folder, outcomes):
    add(folder, outcomes[0])
    (folder.path / "trajectories" / "episode-0000.npz").unlink()
    with pytest.raises(UserError, match=r"episode-0000\.npz"):
        folder.trajectory(0)


def stopped(steps):
    costs = np.full((steps, 2), 3.0)
    return Played(Episode(np.zeros((steps + 1, 2)), np.zeros((steps, 1)), np.zeros(steps), costs, "interrupted"), {})


def interruption(episode, steps):
    return Interruption(episode, steps, reward=-1.0, cost=3.0, budget=2.5, violation=0.5, safe=False)


def test_interruptions_are_kept_beside_the_ledger(folder):
    assert folder.interruptions() == []
    for episode, steps in ((0, 2), (4, 0)):  # the second one was stopped after its reset
        folder.add_interruption(interruption(episode, steps), stopped(steps))
    with (folder.path / "interruptions.jsonl").open("a") as file:
        file.write('{"episode": 5, "ste')  # killed while it wrote
    folder.repair()
    assert folder.interruptions() == [
        interruption(0, 2)._replace(trajectory="interrupted-0000"),
        interruption(4, 0)._replace(trajectory="interrupted-0001"),
    ]
    assert {p.name for p in (folder.path / "trajectories").iterdir()} == {
        "interrupted-0000.npz",
        "interrupted-0001.npz",
    }
    assert folder.records() == []


def test_every_line_has_the_promised_fields(folder, outcomes):
    folder.add(outcomes[0])
    line = json.loads((folder.path / "episodes.jsonl").read_text())
    promised = "episode phase reward cost budget violation safe feasible exploring uncertainty samples seconds"
    assert set(promised.split()) <= set(line)
    assert {"line", "steps", "ended", "metrics"} <= set(line)


def test_half_a_line_is_removed(folder, outcomes):
    """As after a kill in the middle of it. Whole lines stay: what was played is never forgotten."""
    folder.add(outcomes[0])
    with (folder.path / "episodes.jsonl").open("a") as file:
        file.write(json.dumps(outcomes[1].record._asdict()) + "\n" + '{"episode": 2, "pha')
    folder.repair()
    assert folder.records() == recorded(outcomes[:2])


def test_the_checkpoint_says_for_how_many_lines_it_accounts(folder, outcomes, spec):
    """As after a kill between a line and its checkpoint: the learner is that of the line before."""
    folder.add(outcomes[0])
    with (folder.path / "episodes.jsonl").open("a") as file:
        file.write(json.dumps(outcomes[1].record._asdict()) + "\n")
    learner, lines, note = folder.restore(spec.start()[1])
    assert (int(learner.episode), lines, note) == (1, 1, None)


def test_before_the_first_episode_there_is_nothing_to_restore(folder, spec):
    _, fresh = spec.start()
    learner, lines, note = folder.restore(fresh)
    assert learner is fresh
    assert (lines, note) == (0, None)


def test_that_there_is_no_checkpoint_is_said(folder, outcomes, spec):
    folder.add(outcomes[0])
    for file in folder.checkpoint.iterdir():
        file.unlink()
    _, fresh = spec.start()
    assert folder.restore(fresh)[1:] == (0, "there is no checkpoint")


def test_the_identity_of_a_run_is_its_configuration_and_its_data(tmp_path):
    def identity(name, config, data=None):
        with RunFolder.create(tmp_path / name, config, Given(data, None)) as folder:
            return folder.identity

    one = identity("one", {"seed": 0, "versions": "old"}, b"data")
    assert identity("same", {"seed": 0, "versions": "new"}, b"data") == one
    others = [
        identity("seed", {"seed": 1}, b"data"),
        identity("data", {"seed": 0}, b"dada"),
        identity("none", {"seed": 0}),
    ]
    assert len({one, *others}) == 4


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
    add(folder, outcomes[0])
    left = iter(range(writes))
    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "fsync", lambda file: full_disk() if next(left, None) is None else None)
        with pytest.raises(UserError, match="No space left"):
            add(folder, outcomes[1])
    folder.repair()
    learner, lines, _ = folder.restore(spec.start()[1])
    written = len(folder.records())
    assert lines in {1, 2}
    assert int(learner.episode) == lines
    assert written >= lines
    if written == 1:  # else the learner is rebuilt from what was played, or all is in place
        add(folder, outcomes[1])
    assert folder.records() == recorded(outcomes[:2])
    assert np.array_equal(folder.trajectory(1).episode.states, outcomes[1].episode.states)


def test_a_view_needs_the_folder_alone(folder, outcomes):
    folder.add(outcomes[0])
    folder.write_json("reference.json", {"idle": -2.0, "oracle": 2.0})
    folder.write_json("certificate.json", {"guarantee": "none", "reasons": ["it is a toy."]})
    view = folder.view()
    assert view.config == CONFIG
    assert view.records == recorded(outcomes[:1])
    assert view.reference.normalised(0.0) == 0.5
    assert view.verdict == "none: it is a toy. (certificate.json)"


def test_a_view_of_a_run_that_just_began(folder):
    view = folder.view()
    assert (view.records, view.certificate, view.reference) == ([], None, None)
    assert view.verdict.startswith("none yet")


def test_a_last_line_that_only_lacks_its_end_is_kept(folder, outcomes):
    """Some editors take the last line break away."""
    add(folder, outcomes[0])
    file = folder.path / "episodes.jsonl"
    file.write_text(file.read_text().rstrip("\n"))
    folder.repair()
    assert folder.records() == recorded(outcomes[:1])


def test_a_ledger_that_lost_a_line_in_the_middle_is_refused(folder, outcomes):
    for outcome in outcomes[:2]:
        add(folder, outcome)
    file = folder.path / "episodes.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(UserError, match=r"episodes\.jsonl has lost lines, or their order, before line 0; restore it"):
        folder.records()


def test_a_ledger_that_lost_its_end_is_refused_even_without_a_checkpoint(folder, outcomes, spec):
    """The trajectories tell; one more than lines is an episode that was not learned from."""
    for outcome in outcomes[:2]:
        add(folder, outcome)
    for file in folder.checkpoint.iterdir():
        file.unlink()
    (folder.path / "episodes.jsonl").write_text("")
    with pytest.raises(UserError, match=r"episodes\.jsonl has lost lines: 0 are left of 2; restore it"):
        folder.restore(spec.start()[1])


def test_a_ledger_that_is_gone_is_told_in_a_line(folder):
    (folder.path / "episodes.jsonl").unlink()
    with pytest.raises(UserError, match=r"episodes\.jsonl cannot be read .*; restore it"):
        folder.records()
    with pytest.raises(UserError, match=r"episodes\.jsonl cannot be read .*; restore it"):
        folder.pending()


def test_folders_that_were_removed_are_made_again_before_anything_is_played(folder):
    (folder.path / "trajectories").rmdir()
    folder.repair()
    assert (folder.path / "trajectories").is_dir()
    (folder.path / "checkpoint").rmdir()
    (folder.path / "checkpoint").write_text("a file")
    with pytest.raises(UserError, match=r"cannot use .*File exists"):
        folder.repair()


@pytest.mark.parametrize("damage", [("reward", "many"), ("metrics", 5), ("safe", 1), ("ended", None), ("steps", 2.5)])
def test_a_line_with_a_value_of_a_wrong_kind_is_refused(folder, outcomes, damage):
    add(folder, outcomes[0])
    name, value = damage
    file = folder.path / "episodes.jsonl"
    file.write_text(json.dumps({**json.loads(file.read_text()), name: value}) + "\n")
    with pytest.raises(UserError, match=rf"episodes\.jsonl cannot be read \(its {name} is .*\); restore it"):
        folder.records()
