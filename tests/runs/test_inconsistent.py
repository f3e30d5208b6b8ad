"""Confidence sets without a common point: what the run relies on is wrong, and it does not go on as if it were not."""

import json
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import RunFolder, UserError, collect, learn, make_task, resume
from sbsrl.loop import greedy_policy
from sbsrl.prior import Prior
from sbsrl.runs import Halted, train
from sbsrl.solve.receding import RecedingHorizon
from sbsrl.specification import Specification
from sbsrl.tasks import pendulum


class Steady:
    """Always the same small push."""

    def init(self):
        return 0

    def act(self, x, state, key):
        return jnp.full(1, 0.25), state + 1, {}


@pytest.fixture(autouse=True)
def priors(monkeypatch):
    """Priors whose bound on the mismatch is far too small for the truth, with and without a policy."""
    gp = replace(pendulum.SIMULATOR, bound=1e-3)
    monkeypatch.setitem(pendulum.PRIORS, "sure", Prior("sure", informative=True, gp=gp))
    monkeypatch.setitem(pendulum.PRIORS, "sure and steady", Prior("sure", informative=True, gp=gp, policy=Steady()))


@pytest.fixture
def planned(monkeypatch):
    """How often the solver's policy was asked for an action."""
    calls = []
    act = RecedingHorizon.act
    monkeypatch.setattr(RecedingHorizon, "act", lambda *args: calls.append(0) or act(*args))
    return calls


@pytest.fixture
def few(tiny):
    return {**tiny, "episodes": 3}


def test_the_run_stops_with_a_sentence_and_marks_where(few, tmp_path, planned):
    with pytest.raises(Halted, match=r"^the run stopped: the calibration assumption is violated at") as halted:
        learn("pendulum", "greedy", **few, prior="sure", out=tmp_path / "run")
    assert str(halted.value).endswith("raise its bound, scale or noise and start anew.")
    assert "\n" not in str(halted.value)
    (record,) = RunFolder.open(tmp_path / "run").records()
    assert record.calibration_warning.startswith("the calibration assumption is violated at episode 1")
    assert len(planned) == 50
    made = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert made["guarantee"] == "none"
    assert made["events"]["empty_intersections"] == [0]
    assert made["model"]["calibration"] == record.calibration_warning


def test_resuming_it_plays_nothing_and_says_the_same(few, tmp_path, planned):
    with pytest.raises(Halted) as first:
        learn("pendulum", "greedy", **few, prior="sure", out=tmp_path / "run")
    with pytest.raises(Halted) as again:
        resume(tmp_path / "run")
    assert str(again.value) == str(first.value)
    assert len(planned) == 50


def test_with_a_prior_policy_it_may_go_on_with_that_alone(few, tmp_path, planned):
    """From the second episode on; and there is no final policy, since none can be trusted."""
    result = learn("pendulum", "greedy", **few, prior="sure and steady", inconsistent="prior", out=tmp_path / "run")
    assert [(r.episode, r.phase) for r in result.records] == [(0, "exploit"), (1, "prior"), (2, "prior")]
    assert len(planned) == 50
    assert not any(r.feasible or r.exploring for r in result.records[1:])
    for line in (1, 2):
        played = RunFolder.open(tmp_path / "run").trajectory(line).episode
        np.testing.assert_array_equal(played.actions, np.full((50, 1), 0.25))
    assert not result.learner.finished
    assert int(result.learner.belief.count) == 150
    assert all("infeasible_plans" not in r.metrics for r in result.records[1:])  # nothing was planned
    assert result.policy(np.array([-1.0, 0.0, 0.0])).tolist() == [0.25]


def test_a_contradicted_run_without_a_prior_policy_returns_none(few):
    spec = Specification.make("pendulum", "greedy", 0, "cpu", {**few, "prior": "sure"})
    experiment, learner = spec.start()
    doubted = eqx.tree_at(lambda it: it.contradicted, learner, jnp.ones((), bool))
    with pytest.raises(UserError, match="there is no policy to return"):
        greedy_policy(experiment, doubted)


def test_such_a_run_resumes_exactly(few, tmp_path, left, interrupts):

    spec = Specification.make(
        "pendulum", "greedy", 0, "cpu", {**few, "prior": "sure and steady", "inconsistent": "prior"}
    )
    train(spec, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(spec, tmp_path / "run", interrupts(70))
    resume(tmp_path / "run")
    assert left(tmp_path / "run") == left(tmp_path / "whole")


def test_without_a_prior_policy_there_is_nothing_to_fall_back_to(few, tmp_path):
    with pytest.raises(UserError, match=r"^inconsistent=prior needs a prior policy .* use inconsistent=stop\.$"):
        learn("pendulum", **few, inconsistent="prior", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_offline_data_may_contradict_the_prior_before_anything_is_played(few, tmp_path, planned):
    """They are no episode, and so is the sentence: none is played."""
    collect(make_task("pendulum"), "wander", 20).save(tmp_path / "data.npz")
    data = {"prior": "sure", "data": str(tmp_path / "data.npz")}
    with pytest.raises(Halted, match=r"^the run stopped: the calibration assumption is violated .* The prior claims"):
        learn("pendulum", "greedy", **few, **data, out=tmp_path / "run")
    assert RunFolder.open(tmp_path / "run").records() == []
    made = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert made["model"]["calibration"].startswith("the calibration assumption is violated")
    assert planned == []
