"""The system fails during a run: it stops at once, the safe action is sent, nothing is lost, and it can go on."""

import json
import threading
from dataclasses import replace

import numpy as np
import pytest
import toys

from sbsrl import RunFolder, learn, resume
from sbsrl.errors import UserError
from sbsrl.runs import Halted, train
from sbsrl.specification import Specification

pytestmark = pytest.mark.usefixtures("cart")

FIRST = 12
"""Steps of the first episode, which nothing disturbs."""


def at(when, change):
    return staticmethod(lambda n, outcome: change(*outcome) if n == FIRST + when else outcome)


def sensor_fails(x, r, terminated, truncated, info):
    return np.array([x[0], np.nan]), r, terminated, truncated, info


def plant_fails(*outcome):
    raise RuntimeError("the cable is loose")


@pytest.fixture
def stuck():
    """Does not return before the test ends."""
    released = threading.Event()
    yield lambda *outcome: released.wait(30)
    released.set()


@pytest.fixture
def run(tmp_path, monkeypatch, calls):
    """Plays until the cart fails at its fifth step of the second episode, as it is told to; how that was told."""

    def fail(change, **settings):
        monkeypatch.setattr(toys.Cart, "spoil", at(5, change))
        with pytest.raises(Halted) as halted:
            learn("cart", out=tmp_path / "run", **settings)
        monkeypatch.setattr(toys.Cart, "spoil", staticmethod(toys.unspoiled))
        return str(halted.value)

    return fail


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (sensor_fails, "the observation at step 5 is not finite: 'speed' is nan"),
        (plant_fails, "step 5 raised RuntimeError: the cable is loose"),
    ],
)
def test_a_fault_stops_the_run_at_once_and_is_kept(run, tmp_path, calls, change, reason):
    said = run(change)
    assert said == (
        f"episode 1 was cut short: {reason}; the safe action was sent. What was played is kept; look after the system; "
        f"continue with 'sbsrl resume {tmp_path / 'run'}'."
    )
    assert calls[-1] == ("step", toys.SAFE)
    assert [kind for kind, _ in calls] == ["reset"] + ["step"] * FIRST + ["reset"] + ["step"] * (5 + 1)
    folder = RunFolder.open(tmp_path / "run")
    records = folder.records()
    assert [(r.episode, r.line, r.ended, r.steps) for r in records[1:]] == [(1, 1, "fault", 4)]
    assert records[1].reason == f"{reason}; the safe action was sent"
    episode = folder.trajectory(1).episode
    assert (episode.states.shape, episode.actions.shape, episode.costs.shape) == ((5, 2), (4, 1), (4, 2))
    assert (episode.ended, episode.reason) == ("fault", records[1].reason)
    assert np.isfinite(episode.states).all()
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert certificate["events"]["faults"] == {"1": records[1].reason}


def test_the_run_goes_on_with_the_next_episode(run, tmp_path, calls):
    """What was played before the fault is learned from; the lines of the past stay as they are."""
    run(sensor_fails)
    before = (tmp_path / "run" / "episodes.jsonl").read_text()
    calls.clear()
    result = resume(tmp_path / "run")
    assert (tmp_path / "run" / "episodes.jsonl").read_text().startswith(before)
    assert [(r.episode, r.phase) for r in result.records[2:]] == [(2, "exploit"), (3, "exploit"), (4, "final")]
    assert [r.line for r in result.records] == [0, 1, 2, 3, 4]
    assert [kind for kind, _ in calls].count("reset") == 3
    assert int(result.learner.belief.count) == sum(r.steps for r in result.records[:-1])
    assert result.records[1].steps == 4


def test_a_learner_with_a_fault_in_its_past_is_rebuilt_exactly(run, tmp_path, left):
    run(plant_fails)
    resume(tmp_path / "run")
    whole = left(tmp_path / "run")
    for file in (tmp_path / "run" / "checkpoint").iterdir():
        file.unlink()
    result = resume(tmp_path / "run")
    stored = {n: whole.checkpoint[f".belief.{n}"][2] for n in ("weights", "inputs", "targets", "count")}
    assert stored == {n: np.asarray(getattr(result.learner.belief, n)).tobytes() for n in stored}


def test_a_step_that_hangs_is_not_waited_for(run, calls, tmp_path, stuck):
    said = run(stuck, step_timeout=0.2)
    assert "step 5 did not return within 0.2 s; no safe action could be sent" in said
    assert RunFolder.open(tmp_path / "run").records()[1].steps == 4
    assert len(resume(tmp_path / "run").records) == 5


def test_a_reset_that_fails_is_an_episode_of_no_steps(tmp_path, monkeypatch, calls):
    """It costs nothing, teaches nothing, and has its line: the system was touched."""

    def second_reset_fails(outcome):
        return plant_fails() if [kind for kind, _ in calls].count("reset") == 2 else outcome

    monkeypatch.setattr(toys.Cart, "start", staticmethod(second_reset_fails))
    with pytest.raises(Halted, match="episode 1 was cut short: the reset raised RuntimeError: the cable is loose; the"):
        learn("cart", out=tmp_path / "run")
    assert calls[-1] == ("step", toys.SAFE)
    folder = RunFolder.open(tmp_path / "run")
    record = folder.records()[1]
    assert (record.ended, record.steps, record.reward, record.cost, record.uncertainty) == ("fault", 0, 0.0, 0.0, 0.0)
    assert record.safe
    assert [part.shape for part in folder.trajectory(1).episode[:4]] == [(0, 2), (0, 1), (0,), (0, 2)]
    result = resume(folder.path)
    assert [(r.episode, r.ended == "fault") for r in result.records] == [
        (0, False),
        (1, True),
        (2, False),
        (3, False),
        (4, False),
    ]
    assert int(result.learner.belief.count) == sum(r.steps for r in result.records[:-1])


def test_a_final_episode_that_fails_is_played_again(tmp_path, monkeypatch, calls):
    def fail_finally(n, outcome):
        return plant_fails() if [kind for kind, _ in calls].count("reset") == 5 else outcome

    monkeypatch.setattr(toys.Cart, "spoil", staticmethod(fail_finally))
    with pytest.raises(Halted, match="episode 4 was cut short: step 1 raised"):
        learn("cart", out=tmp_path / "run")
    result = resume(tmp_path / "run")
    assert [(r.episode, r.phase, r.ended == "fault") for r in result.records[4:]] == [
        (4, "final", True),
        (4, "final", False),
    ]
    assert result.learner.finished


def test_a_gaussian_process_takes_a_fault_in_its_first_step(tiny, monkeypatch):
    """No transition is no update, for a belief that pads its data, too."""
    spec = Specification.make("pendulum", "greedy", 0, "cpu", {**tiny, "episodes": 1})
    task = spec.make_task()

    class Broken(type(task.open())):
        def step(self, action):
            raise OSError("no route to the pendulum")

    monkeypatch.setattr(
        Specification, "make_task", lambda self: replace(task, open=lambda: Broken(task.equations, (-1.0,), (1.0,), 50))
    )
    with pytest.raises(
        Halted, match=r"step 1 raised OSError: no route to the pendulum; sending the safe action raised"
    ):
        train(spec)


def test_a_run_in_memory_is_halted_too(monkeypatch, calls):
    monkeypatch.setattr(toys.Cart, "spoil", at(5, plant_fails))
    with pytest.raises(Halted, match=r"What was played is kept; look after the system\.$"):
        learn("cart")
    assert issubclass(Halted, UserError)


@pytest.mark.parametrize("reading", [[1e300, 0.0], np.zeros(2, complex)], ids=["beyond single precision", "complex"])
def test_a_reading_that_no_planner_could_use_is_a_fault(run, reading):
    said = run(lambda x, r, terminated, truncated, info: (np.asarray(reading), r, terminated, truncated, info))
    assert "the observation at step 5 is not" in said


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit])
def test_a_plant_that_wants_to_end_the_program_only_ends_the_episode(run, tmp_path, calls, error):
    def leaves(*outcome):
        raise error(7)

    assert f"step 5 raised {error.__name__}" in run(leaves)
    assert calls[-1] == ("step", toys.SAFE)
    assert RunFolder.open(tmp_path / "run").records()[1].ended == "fault"
