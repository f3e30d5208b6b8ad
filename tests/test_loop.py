"""Algorithm 1: phases, stopping, bookkeeping, and what of the true system it touches."""

import dataclasses
import logging
from contextlib import closing

import gymnasium
import jax
import numpy as np
import pytest

from sbsrl import UserError, collect, learn, make_task, tasks
from sbsrl.learner import Learner
from sbsrl.loop import algorithm_1, greedy_policy
from sbsrl.policy import Controller
from sbsrl.report.reference import reference_returns
from sbsrl.runs import train
from sbsrl.runs.train import exploration_warning
from sbsrl.specification import Specification, make_experiment
from sbsrl.systems.episode import Guard, run_episode
from sbsrl.tasks import pendulum


def player(task, env):
    """Plays episodes on this system."""
    guard = Guard.of(task)
    return lambda policy, turn: run_episode(env, policy, turn.seed, turn.key, task.horizon, guard=guard)


def outcomes(spec):
    experiment, learner = spec.start()
    with closing(experiment.task.open()) as env:
        yield from algorithm_1(experiment, learner, player(experiment.task, env))


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
    """At most what 50 steps can give where nothing is known, and less than was asked for. It is told once."""
    first, second, final = outcomes(Specification.make("pendulum", "sbsrl", 0, "cpu", too_much))
    threshold, attainable = first.shortfall
    assert threshold == 1750
    assert 0 < attainable < 0.95 * 1750
    warning = exploration_warning(first.shortfall)
    assert warning.startswith("the exploration threshold, 1750, is out of reach")
    assert f"promises {attainable:.4g} per episode" in warning
    assert second.shortfall is None
    assert final.shortfall is None


@pytest.mark.parametrize(("method", "threshold"), [("sbsrl", 500.0), ("sbsrl", 0.0), ("greedy", 1e6)])
def test_a_threshold_within_reach_or_not_used_needs_no_word(tiny, method, threshold):
    spec = Specification.make("pendulum", method, 0, "cpu", {**tiny, "exploration_threshold": threshold})
    assert next(outcomes(spec)).shortfall is None


def test_actsafe_explores_first_and_returns_a_greedy_policy(tiny):
    result = learn("pendulum", "actsafe", **tiny, actsafe_episodes=1)
    assert [(r.phase, r.exploring) for r in result.records] == [("explore", True), ("exploit", False), ("final", False)]
    early = learn("pendulum", "actsafe", **tiny, actsafe_episodes=2)
    assert [r.phase for r in early.records] == ["explore", "explore", "final"]
    assert early.policy.policy.problem.objective is None  # the reward of the model


def test_a_planner_takes_a_summed_cost_and_must_be_told_what_is_spent(tiny):
    usual = make_task("pendulum")
    summed = dataclasses.replace(usual.costs[0], aggregation="sum")
    task = dataclasses.replace(usual, costs=(summed,))
    experiment = make_experiment(task, "sbsrl", Specification.make("pendulum", "sbsrl", 0, "cpu", tiny).settings)
    assert greedy_policy(experiment, Learner.create(experiment, 0)).spends


def test_nothing_is_compiled_after_the_first_episode(tiny):
    """Padding to the size of the whole run is worth it only if this holds."""
    names = []
    handler = logging.Handler()
    handler.emit = lambda record: names.append(record.getMessage())
    logger = logging.getLogger("jax._src.interpreters.pxla")
    episodes = outcomes(Specification.make("pendulum", "sbsrl", 0, "cpu", {**tiny, "episodes": 3}))
    next(episodes)
    logger.addHandler(handler)
    try:
        with jax.log_compiles():
            next(episodes)
    finally:
        logger.removeHandler(handler)
        episodes.close()
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
    outcome = next(outcomes(Specification.make("pendulum", "sbsrl", 3, "cpu", tiny)))
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
    assert 0 < record.metrics["evaluated"] <= 1
    assert (record.steps, record.ended, record.reason) == (50, "horizon", "")


def test_an_infeasible_problem_is_marked_and_the_run_goes_on(tiny):
    """With a budget of 0.3 and nothing known, no plan is safe on all samples."""
    records = learn("pendulum", **tiny, prior="none", budget=0.3).records
    assert not records[0].feasible
    assert records[0].infeasible_plans > 0
    assert records[0].worst_plan > 0
    assert len(records) == 3


def test_the_returned_policy_is_called_with_an_observation(tiny):
    """It is the greedy policy; it repeats itself after a reset."""
    result = learn("pendulum", **tiny)
    x = np.array([-1.0, 0.0, 0.0])
    first, second = result.policy(x), result.policy(x)
    assert first.shape == (1,)
    assert first.dtype == np.float64
    assert -1 <= first[0] <= 1
    assert set(result.policy.metrics) == {"violation", "evaluated"}
    result.policy.reset()
    again = [result.policy(x), result.policy(x)]
    np.testing.assert_array_equal(again, [first, second])
    fresh = Controller(greedy_policy(result.experiment, result.learner))
    np.testing.assert_array_equal([fresh(x), fresh(x)], again)


def test_a_budget_that_the_tightening_eats_up_is_refused(tiny):
    with pytest.raises(UserError, match=r"no policy can meet the tightened budget 0\.05 - 0\.1"):
        learn("pendulum", **tiny, budget=0.05)


def test_the_randomness_of_an_episode_depends_on_the_seed_and_its_number_only(tiny):
    """So that a run that is resumed draws what it would have drawn: turns repeat, whatever the belief knows."""
    experiment, learner = Specification.make("pendulum", "greedy", 5, "cpu", tiny).start()
    turns = []

    def note(policy, turn):
        turns.append(turn)
        raise StopIteration

    def turn_of(learner):
        with pytest.raises((StopIteration, RuntimeError)):
            next(algorithm_1(experiment, learner, note))
        return turns.pop()

    first = turn_of(learner)
    again = turn_of(Learner.create(experiment, 5))
    other = turn_of(Learner.create(experiment, 6))
    assert (first.episode, first.seed) == (again.episode, again.seed)
    assert (first.key == again.key).all()
    assert first.seed != other.seed
    assert 0 <= first.seed < 2**31


class Recorder(gymnasium.Wrapper):
    """The true pendulum, writing down how it is used."""

    calls: list = []  # noqa: RUF012

    def reset(self, *, seed=None, options=None):
        self.calls.append(("reset", seed))
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.calls.append(("step", None))
        return super().step(action)

    def close(self):
        self.calls.append(("close", None))
        super().close()


@pytest.fixture
def touched(monkeypatch):
    """All uses of the true pendulum, however a task connects to it."""
    opened = pendulum.open_system
    monkeypatch.setattr(Recorder, "calls", [])
    monkeypatch.setattr(
        pendulum, "open_system", lambda **kw: Recorder.calls.append(("open", None)) or Recorder(opened(**kw))
    )
    tasks._build.cache_clear()
    yield Recorder.calls
    tasks._build.cache_clear()


def test_the_true_system_is_opened_once_and_reset_once_per_episode_and_nothing_else(touched, tiny, tmp_path):
    """Through a whole run, its summary, its policy and the ends of its scale."""
    result = train(Specification.make("pendulum", "sbsrl", 0, "cpu", tiny), tmp_path / "run")
    episode = ["reset"] + ["step"] * 50
    assert [kind for kind, _ in touched] == ["open", *episode * 3, "close"]
    seeds = [seed for kind, seed in touched if kind == "reset"]
    assert len(set(seeds)) == 3
    assert None not in seeds
    before = len(touched)
    assert reference_returns(result.experiment, seeds=1) is not None
    result.policy(np.array([-1.0, 0.0, 0.0]))
    assert len(touched) == before


def test_making_an_experiment_touches_nothing(touched, tiny):
    Specification.make("pendulum", "sbsrl", 0, "cpu", tiny).start()
    assert touched == []
