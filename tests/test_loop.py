"""Algorithm 1: phases, stopping, bookkeeping."""

import dataclasses
import logging

import jax
import numpy as np
import pytest

from sbsrl import UserError, collect, learn, make_task
from sbsrl.experiment import make_experiment
from sbsrl.loop import algorithm_1, first_shortfall
from sbsrl.runs import Specification
from sbsrl.runs.train import exploration_warning


def test_it_explores_and_ends_with_the_final_policy(tiny):
    result = learn("pendulum", **tiny)
    assert [(r.episode, r.phase) for r in result.records] == [(0, "explore"), (1, "explore"), (2, "final")]
    assert result.learner.finished
    assert int(result.learner.belief.count) == 100  # the final policy is run, not learned from


@pytest.fixture
def too_much(tiny, tmp_path):
    """So much is known around the initial state that 1750 nats are not to be had, although they could be elsewhere."""
    collect(make_task("pendulum"), "wander", 60).save(tmp_path / "data.npz")
    return {**tiny, "exploration_threshold": 1750.0, "data": str(tmp_path / "data.npz")}


def test_a_threshold_that_cannot_be_met_ends_exploration_at_once(too_much):
    records = learn("pendulum", **too_much).records
    assert [r.phase for r in records] == ["exploit", "exploit", "final"]
    assert not any(r.exploring for r in records)


def test_stopping_when_learned_returns_the_greedy_policy_without_further_episodes(too_much):
    records = learn("pendulum", **too_much, stop_when_learned=True).records
    assert [(r.episode, r.phase) for r in records] == [(0, "final")]


def test_a_threshold_out_of_reach_is_told_with_what_an_episode_would_gather(too_much):
    """At most what 50 steps can give where nothing is known, and less than was asked for."""
    experiment, learner = Specification.make("pendulum", "sbsrl", 0, "cpu", too_much).start()
    threshold, attainable = first_shortfall(experiment, learner)
    assert threshold == 1750
    assert 0 < attainable < 0.95 * 1750
    warning = exploration_warning(experiment, learner)
    assert warning.startswith("the exploration threshold, 1750, is out of reach")
    assert f"promises {attainable:.4g} an episode" in warning


@pytest.mark.parametrize(("method", "threshold"), [("sbsrl", 500.0), ("sbsrl", 0.0), ("greedy", 1e6)])
def test_a_threshold_within_reach_or_not_used_needs_no_word(tiny, method, threshold):
    spec = Specification.make("pendulum", method, 0, "cpu", {**tiny, "exploration_threshold": threshold})
    assert first_shortfall(*spec.start()) is None
    assert exploration_warning(*spec.start()) is None


def test_actsafe_explores_first_and_returns_a_greedy_policy(tiny):
    result = learn("pendulum", "actsafe", **tiny, actsafe_episodes=1)
    assert [(r.phase, r.exploring) for r in result.records] == [("explore", True), ("exploit", False), ("final", False)]
    early = learn("pendulum", "actsafe", **tiny, actsafe_episodes=2)
    assert [r.phase for r in early.records] == ["explore", "explore", "final"]
    assert early.policy().policy.problem.reward is early.experiment.task.reward


def test_a_summed_cost_is_refused_by_the_planner_that_cannot_keep_it(tiny):
    task = dataclasses.replace(make_task("pendulum"), aggregation="sum")
    with pytest.raises(UserError, match="search its policies instead"):
        make_experiment(task, "sbsrl", Specification.make("pendulum", "sbsrl", 0, "cpu", tiny).settings)


def test_nothing_is_compiled_after_the_first_episode(tiny):
    """Padding to the size of the whole run is worth it only if this holds."""
    names = []
    handler = logging.Handler()
    handler.emit = lambda record: names.append(record.getMessage())
    logger = logging.getLogger("jax._src.interpreters.pxla")
    spec = Specification.make("pendulum", "sbsrl", 0, "cpu", {**tiny, "episodes": 3})
    episodes = algorithm_1(*spec.start())
    next(episodes)
    logger.addHandler(handler)
    try:
        with jax.log_compiles():
            next(episodes)
    finally:
        logger.removeHandler(handler)
    assert names == []


def test_greedy_never_explores_and_a_threshold_of_nothing_is_greedy(tiny):
    greedy = learn("pendulum", "greedy", **tiny).records
    nothing = learn("pendulum", "sbsrl", **{**tiny, "exploration_threshold": 0.0}).records
    assert [r.phase for r in greedy] == ["exploit", "exploit", "final"]
    assert [r._replace(seconds=0.0) for r in nothing] == [r._replace(seconds=0.0) for r in greedy]


def test_a_threshold_of_nothing_is_no_reason_to_stop(tiny):
    changes = {**tiny, "exploration_threshold": 0.0, "stop_when_learned": True}
    assert len(learn("pendulum", "sbsrl", **changes).records) == 3


def test_a_record_says_what_happened(tiny):
    spec = Specification.make("pendulum", "sbsrl", 3, "cpu", tiny)
    outcome = next(algorithm_1(*spec.start()))
    record, episode = outcome.record, outcome.episode
    assert episode.states.shape == (51, 3)
    assert episode.actions.shape == (50, 1)
    np.testing.assert_allclose(record.reward, episode.rewards.sum())
    np.testing.assert_allclose(record.cost, np.abs(episode.states[1:, 2]).max())
    assert record.safe == (record.cost <= 6)
    assert record.violation == max(record.cost - 6, 0)
    assert record.feasible == (record.infeasible_plans == 0)
    assert record.samples == 3
    assert record.uncertainty > 0
    assert 0 < record.evaluated <= 1


def test_an_infeasible_problem_is_marked_and_the_run_goes_on(tiny):
    """With a budget of 0.3 and nothing known, no plan is safe on all samples."""
    records = learn("pendulum", **tiny, prior="none", budget=0.3).records
    assert not records[0].feasible
    assert records[0].infeasible_plans > 0
    assert records[0].worst_plan > 0


def test_the_returned_policy_acts(tiny, getkey):
    result = learn("pendulum", **tiny)
    solution = result.policy()
    x = result.experiment.task.reset(getkey())
    decision, state = solution.policy.act(x, solution.start, getkey())
    assert -1 <= float(decision.action[0]) <= 1
    assert state.step == 1


def test_a_budget_that_the_tightening_eats_up_is_refused(tiny):
    with pytest.raises(UserError, match=r"no policy can meet the tightened budget 0\.05 - 0\.1"):
        learn("pendulum", **tiny, budget=0.05)
