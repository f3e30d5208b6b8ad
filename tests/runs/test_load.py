"""Runs that are looked at again: loaded, evaluated, drawn, exported."""

import json

import numpy as np
import pytest
import rail

import sbsrl
from sbsrl import RunFolder, UserError
from sbsrl.runs import look_at, look_at_last, resume
from sbsrl.runs.load import learner_before

SMALL = {**rail.SMALL, "simulator": rail.simulator, "start": [0.0]}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return sbsrl.learn(rail, out=tmp_path_factory.mktemp("run") / "run", **SMALL)


@pytest.fixture
def copy(run, tmp_path):
    """The same run in another folder, which may be changed."""
    sbsrl.export(run.folder, tmp_path / "copy")
    for file in (run.folder / "trajectories").iterdir():
        (tmp_path / "copy" / "trajectories" / file.name).write_bytes(file.read_bytes())
    return tmp_path / "copy"


def test_a_loaded_policy_acts_as_the_one_that_was_learned(run):
    run.policy.reset()
    loaded = sbsrl.load(run.folder)
    for x in ([0.0], [0.4], [0.9]):
        np.testing.assert_array_equal(loaded.policy(x), run.policy(x))


def test_nothing_is_written_by_loading(run):
    before = {file: file.stat().st_mtime_ns for file in run.folder.rglob("*") if file.is_file()}
    sbsrl.load(run.folder)
    after = {file: file.stat().st_mtime_ns for file in run.folder.rglob("*") if file.is_file()}
    assert after == before


def test_a_planner_is_exported_with_all_that_it_needs(run, tmp_path):
    written = sbsrl.export(run.folder, tmp_path / "policy")
    assert written.error is None
    how = (tmp_path / "policy" / "README.md").read_text()
    assert "sbsrl.load" in how
    assert "- `rail:place`\n- `rail:near`\n- `rail:simulator`\n" in how
    run.policy.reset()
    np.testing.assert_array_equal(sbsrl.load(tmp_path / "policy").policy([0.2]), run.policy([0.2]))
    with pytest.raises(UserError, match="exists already; choose another --out"):
        sbsrl.export(run.folder, tmp_path / "policy")


class TestEvaluation:
    """A policy is played, and nothing is learned from it."""

    def test_every_episode_has_a_line_and_a_trajectory(self, copy):
        told = []
        records = sbsrl.evaluate(copy, 2, told.append)
        assert told == records
        lines = [json.loads(line) for line in (copy / "episodes.jsonl").read_text().splitlines()]
        assert [line["phase"] for line in lines] == ["explore", "explore", "final", "evaluate", "evaluate"] or (
            [line["phase"] for line in lines][2:] == ["final", "evaluate", "evaluate"]
        )
        assert [line["episode"] for line in lines] == [0, 1, 2, 3, 4]
        assert len(list((copy / "trajectories").glob("episode-*.npz"))) == 5
        first, second = (RunFolder.open(copy).trajectory(line).episode.states[0] for line in (3, 4))
        assert not np.array_equal(first, second)

    def test_a_run_that_was_evaluated_can_be_resumed_and_loaded(self, copy, left):
        sbsrl.evaluate(copy, 1)
        before = left(copy)
        resume(copy)
        assert left(copy) == before
        assert len(sbsrl.load(copy).records) == 4

    def test_an_episode_that_was_not_learned_from_is_not_lost(self, copy):
        """Played and kept, but the run was killed before it learned from it."""
        (copy / "trajectories" / "episode-0003.npz").write_bytes(
            (copy / "trajectories" / "episode-0002.npz").read_bytes()
        )
        with pytest.raises(
            UserError, match=r"was played and is not learned from yet; continue it first with 'sbsrl resume"
        ):
            sbsrl.evaluate(copy, 1)

    def test_the_certificate_counts_it(self, copy):
        sbsrl.evaluate(copy, 1)
        events = json.loads((copy / "certificate.json").read_text())["events"]
        assert events["episodes"] == 4
        assert events["fallback_episodes"] == [
            r.episode for r in RunFolder.open(copy).records() if not r.feasible and r.planned
        ]

    def test_a_number_of_episodes_is_wanted(self, copy):
        with pytest.raises(UserError, match="episodes"):
            sbsrl.evaluate(copy, 0)


class TestLook:
    """An episode, with what its samples foretold before it."""

    def test_the_learner_is_what_it_was_before_the_episode(self, run):
        counts = [int(learner_before(RunFolder.open(run.folder), line)[1].belief.count) for line in range(3)]
        assert counts == [0, rail.STEPS, 2 * rail.STEPS]

    def test_the_last_episode_is_looked_at_by_default(self, run):
        look = look_at(run.folder)
        assert look.record == RunFolder.open(run.folder).records()[-1]
        assert look.forecast.states.shape == (3, rail.STEPS, 1)
        again = look_at_last(run)
        np.testing.assert_array_equal(look.forecast.states, again.forecast.states)

    def test_after_an_episode_the_forecast_is_better_than_before(self, run):
        errors = []
        for number in (0, 2):
            look = look_at(run.folder, number)
            errors.append(np.abs(look.forecast.states - look.episode.states[1:]).mean())
        assert errors[1] < 0.5 * errors[0]

    def test_an_episode_that_is_not_there_is_refused(self, run):
        with pytest.raises(UserError, match=r"has no episode 9; it has 0 to 2\.$"):
            look_at(run.folder, 9)
