"""A solver with memory and a random belief run through the whole loop, are killed, and end as if they had not been.

Ledgers (but for seconds), trajectories and checkpoints agree bit for bit.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toys

from sbsrl import UserError, learn, resume
from sbsrl.archive import read_arrays
from sbsrl.runs import RunFolder, train
from sbsrl.runs.checkpoint import CURRENT, PREVIOUS
from sbsrl.specification import Specification

EPISODES = 4


def spec(**changes):
    return Specification.make("cart", "sbsrl", 0, "cpu", changes)


@pytest.fixture(scope="module")
def whole(cart, tmp_path_factory, left):
    """The run that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    result = train(spec(), folder)
    return result, left(folder)


def test_the_run_has_what_it_is_here_to_show(whole):
    """Episodes that end early, two costs, memory that grows with every problem, and what was learned of all outcomes.

    Before anything is known nothing can be explored, so the first problem is solved twice.
    """
    result, _ = whole
    endings = [(r.phase, r.ended) for r in result.records]
    assert [phase for phase, _ in endings] == ["exploit"] * EPISODES + ["final"]
    assert any(
        ended == "terminated" and r.steps < toys.HORIZON for (_, ended), r in zip(endings, result.records, strict=True)
    )
    assert [r.metrics["count"] for r in result.records] == [1, 2, 3, 4, 5]
    assert int(result.learner.solver["count"]) == EPISODES + 1  # the final policy leaves no trace
    belief = result.learner.belief
    assert int(belief.count) == sum(r.steps for r in result.records[:-1])
    assert int(belief.ended) == sum(r.ended == "terminated" for r in result.records[:-1])
    assert np.ptp(np.asarray(belief.weights), axis=0).max() > 1e-6  # no two bootstraps are the same
    for r in result.records:
        assert {"cost/speed", "cost/effort"} <= set(r.metrics)


def test_the_members_learn_reward_and_costs(whole):
    """To 0.05: the reward is the place that is reached, and the dynamics is linear."""
    model = whole[0].learner.belief.nominal()
    x, a = np.array([0.2, 0.1]), np.array([0.3])
    y = np.array([0.2 + 0.09 + 0.06, 0.09 + 0.06])
    np.testing.assert_allclose(model(x, a), y, atol=0.05)
    np.testing.assert_allclose(model.reward(x, a, y), y[0], atol=0.05)
    assert model.costs(x, a, y).shape == (2,)


def test_a_sample_draws_its_next_state(whole, getkey):
    sample = whole[0].learner.belief.samples(getkey(), 2).member(jax.numpy.int32(1))
    x, a = np.array([0.2, 0.1]), np.array([0.3])
    key = getkey()
    assert np.array_equal(sample.draw(x, a, key), sample.draw(x, a, key))
    assert not np.array_equal(sample.draw(x, a, key), sample.draw(x, a, getkey()))


def test_the_same_seed_gives_the_same_run_and_another_seed_another(whole, tmp_path, left):
    learn("cart", out=tmp_path / "again")
    learn("cart", seed=1, out=tmp_path / "other")
    assert left(tmp_path / "again") == whole[1]
    assert left(tmp_path / "other").ledger != whole[1].ledger


@pytest.mark.parametrize(
    "moment",
    [
        lambda first, total: 1,
        lambda first, total: first // 2,
        lambda first, total: first,
        lambda first, total: first + 1,
        lambda first, total: total // 2,
        lambda first, total: total - 1,
        lambda first, total: total,
    ],
)
def test_an_interrupted_run_resumes_exactly(whole, tmp_path, left, interrupts, moment):
    """In the middle of an episode, in its last step, in the first of the next, and in the final one."""
    steps = [record.steps for record in whole[0].records]
    with pytest.raises(KeyboardInterrupt):
        train(spec(), tmp_path / "run", interrupts(moment(steps[0], sum(steps))))
    assert len(left(tmp_path / "run").ledger) < EPISODES + 1
    resume(tmp_path / "run")
    assert left(tmp_path / "run") == whole[1]


def test_a_run_that_is_interrupted_over_and_over_resumes_exactly(whole, tmp_path, left, interrupts):
    with pytest.raises(KeyboardInterrupt):
        train(spec(), tmp_path / "run", interrupts(whole[0].records[0].steps + 2))
    for steps in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            resume(tmp_path / "run", interrupts(steps))
    resume(tmp_path / "run")
    assert left(tmp_path / "run") == whole[1]


def test_what_the_user_stopped_is_kept(whole, tmp_path, interrupts):
    """Two of its steps, with what they cost; the ledger has no line of it, since the episode is played anew."""
    with pytest.raises(KeyboardInterrupt):
        train(spec(), tmp_path / "run", interrupts(whole[0].records[0].steps + 2))
    folder = RunFolder.open(tmp_path / "run")
    (stopped,) = folder.interruptions()
    assert (stopped.episode, stopped.steps, stopped.trajectory) == (1, 2, "interrupted-0000")
    played = read_arrays(tmp_path / "run" / "trajectories" / "interrupted-0000.npz")
    speeds, efforts = played["costs"].max(axis=0)[0], played["costs"].sum(axis=0)[1]
    assert stopped.cost in (speeds, efforts)
    assert len(folder.records()) == 1
    result = resume(folder.path)
    assert folder.interruptions() == [stopped] == result.view.interruptions
    assert folder.view().certificate["events"]["interrupted_episodes"] == [1]


KILLED = """
import os, signal, sys
from pathlib import Path
import toys
toys.register()
from sbsrl.runs import folder, train
from sbsrl.specification import Specification

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

{when}
train(Specification.make("cart", "sbsrl", 0, "cpu", {{}}), Path(sys.argv[1]))
"""

MOMENTS = {
    "in a step": "toys.Cart.spoil = staticmethod(lambda n, outcome: die() if n == 17 else outcome)",
    "between a line and its checkpoint": """
save = folder.save_checkpoint
folder.save_checkpoint = lambda place, learner, lines, identity: (
    die() if lines == 3 else save(place, learner, lines, identity)
)""",
    "while it learns": """
update, left = toys.Bootstraps.update, iter(range(2))
toys.Bootstraps.update = lambda *args: die() if next(left, None) is None else update(*args)""",
    "between a trajectory and its line": """
add = folder.RunFolder.add
folder.RunFolder.add = lambda self, outcome: die() if outcome.record.episode == 2 else add(self, outcome)""",
    "in the middle of a line": """
append = folder._append_line
def half(file, content):
    if content["line"] == 2:
        with file.open("a") as ledger:
            ledger.write('{"episode": 2, "pha')
        die()
    append(file, content)
folder._append_line = half""",
}


@pytest.mark.parametrize(("moment", "lines"), [*zip(MOMENTS, (1, 3, 2, 2, 3), strict=True)])
def test_a_killed_process_resumes_exactly(whole, tmp_path, left, calls, moment, lines):
    """kill -9, then `resume`. What was played already is not played again."""
    script = KILLED.format(when=MOMENTS[moment])
    paths = os.pathsep.join([str(Path(toys.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    killed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert len((tmp_path / "run" / "episodes.jsonl").read_text().splitlines()) == lines
    resume(tmp_path / "run")
    assert left(tmp_path / "run") == whole[1]
    kept = lines + (moment in {"while it learns", "between a trajectory and its line"})  # half a line is one
    assert sum(kind == "reset" for kind, _ in calls) == EPISODES + 1 - kept


@pytest.fixture
def stopped(whole, tmp_path, interrupts):
    """A run in its fourth episode: three lines."""
    with pytest.raises(KeyboardInterrupt):
        train(spec(), tmp_path / "run", interrupts(sum(r.steps for r in whole[0].records[:3]) + 2))
    return tmp_path / "run"


def test_without_its_checkpoint_the_learner_is_rebuilt_from_the_trajectories(whole, stopped, left, listens, calls):
    """It is said, it is exact, and the true system is only used for what was not played yet: two episodes."""
    for file in (stopped / "checkpoint").iterdir():
        file.unlink()
    observer = listens()
    resume(stopped, observer)
    assert observer.notes == ["there is no checkpoint; the learner is rebuilt from 3 recorded episodes."]
    assert left(stopped) == whole[1]
    assert [kind for kind, _ in calls].count("reset") == 2


def test_with_a_damaged_checkpoint_the_previous_one_is_used(whole, stopped, left, listens, calls):
    current = stopped / "checkpoint" / CURRENT
    whole_file = current.read_bytes()
    current.write_bytes(whole_file[:-1] + bytes([whole_file[-1] ^ 1]))
    observer = listens()
    resume(stopped, observer)
    (note,) = observer.notes
    assert note.startswith(f"{current} is damaged")
    assert note.endswith(
        ": the previous checkpoint is used, which accounts for 2 lines of the ledger; "
        "the learner is rebuilt from 1 recorded episode."
    )
    assert left(stopped) == whole[1]
    assert [kind for kind, _ in calls].count("reset") == 2


def test_a_finished_run_whose_checkpoint_is_lost_is_rebuilt_without_playing(whole, tmp_path, left, calls):
    learn("cart", out=tmp_path / "run")
    played = len(calls)
    for name in (CURRENT, PREVIOUS):
        (tmp_path / "run" / "checkpoint" / name).unlink()
    result = resume(tmp_path / "run")
    assert len(calls) == played
    assert bool(result.learner.finished)
    for got, wanted in zip(jax.tree.leaves(result.learner), jax.tree.leaves(whole[0].learner), strict=True):
        if isinstance(wanted, jax.Array) and not jax.dtypes.issubdtype(wanted.dtype, jax.dtypes.prng_key):
            assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()


def test_ctrl_c_while_it_learns_loses_nothing_that_was_played(whole, tmp_path, left, calls, monkeypatch):
    """The episode is learned from when the run goes on; it is not played again."""
    update = toys.Bootstraps.update

    def pressed(self, data, key):
        raise KeyboardInterrupt

    monkeypatch.setattr(toys.Bootstraps, "update", pressed)
    with pytest.raises(KeyboardInterrupt):
        train(spec(), tmp_path / "run")
    assert sum(kind == "reset" for kind, _ in calls) == 1
    assert RunFolder.open(tmp_path / "run").pending() is not None
    monkeypatch.setattr(toys.Bootstraps, "update", update)
    resume(tmp_path / "run")
    assert sum(kind == "reset" for kind, _ in calls) == EPISODES + 1
    assert left(tmp_path / "run") == whole[1]


def test_a_belief_that_cannot_learn_does_not_play_the_same_episode_again_and_again(cart, tmp_path, calls, monkeypatch):
    def refuses(self, data, key):
        raise UserError("these data make no sense.")

    monkeypatch.setattr(toys.Bootstraps, "update", refuses)
    for attempt in (lambda: train(spec(), tmp_path / "run"), lambda: resume(tmp_path / "run")):
        with pytest.raises(UserError, match="these data make no sense"):
            attempt()
    assert sum(kind == "reset" for kind, _ in calls) == 1


@pytest.mark.parametrize("folder", ["run", None])
def test_nothing_is_played_with_what_is_no_number(cart, tmp_path, calls, monkeypatch, folder):
    """The memory is NaN after the first episode: the second one is not played, nor is it when the run is resumed."""
    solve = toys.Counter.solve

    def broken(self, problem, state, key):
        solution, memory = solve(self, problem, state, key)
        return solution, {**memory, "last": memory["last"] * jnp.nan}

    monkeypatch.setattr(toys.Counter, "solve", broken)
    place = folder and tmp_path / folder
    with pytest.raises(UserError, match=r"NaN"):
        train(spec(), place)
    if place:
        with pytest.raises(UserError, match=r"^the learner has NaN in .*last.* after 1 episodes, so nothing more is"):
            resume(place)
    assert sum(kind == "reset" for kind, _ in calls) == 1


def test_a_state_that_changes_its_type_is_refused_before_anything_is_played(cart, tmp_path, calls, monkeypatch):
    solve = toys.Counter.solve

    def drifting(self, problem, state, key):
        solution, memory = solve(self, problem, state, key)
        return solution, {**memory, "last": memory["last"].astype(jnp.float64)}

    monkeypatch.setattr(toys.Counter, "solve", drifting)
    with pytest.raises(UserError, match=r"^the solver's state must keep its shapes and types.*'last'.*float64"):
        train(spec(), tmp_path / "run")
    assert calls == []


def gone():
    raise BrokenPipeError("the terminal is gone")


def test_a_display_that_fails_does_not_stop_an_episode(whole, tmp_path, left, listens):
    """It is played to its end and kept; then the run stops, and can go on."""
    closed = listens()
    closed.stepped = gone
    with pytest.raises(BrokenPipeError):
        train(spec(), tmp_path / "run", closed)
    assert len(RunFolder.open(tmp_path / "run").pending().episode.actions) == whole[0].records[0].steps
    resume(tmp_path / "run")
    assert left(tmp_path / "run") == whole[1]


def test_a_run_with_nothing_left_to_play_opens_nothing(cart, tmp_path, calls, monkeypatch):
    train(spec(), tmp_path / "run")
    calls.clear()
    monkeypatch.setattr(toys.Cart, "__init__", lambda self: pytest.fail("the system was opened"))
    resume(tmp_path / "run")
    assert calls == []


def test_who_insists_on_an_edited_configuration_gets_a_learner_of_that_configuration(stopped, listens, calls):
    """The seed too: the learner is rebuilt from what was played, and goes on with the randomness of the new seed."""
    path = stopped / "config.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 5'))
    with pytest.raises(UserError, match="was edited"):
        resume(stopped)
    calls.clear()
    hears = listens()
    result = resume(stopped, hears, insist=True)
    assert "belongs to another run" in hears.notes[0]
    assert hears.notes[0].endswith("the learner is rebuilt from 3 recorded episodes.")
    assert result.learner.key == jax.random.key(5)
    assert RunFolder.open(stopped).config["seed"] == 5
    assert sum(kind == "reset" for kind, _ in calls) == EPISODES + 1 - 3
