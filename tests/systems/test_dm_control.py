"""The control suite behind the boundary: the same physics, rewards and costs as asked directly."""

import gymnasium
import jax
import numpy as np
import pytest

from sbsrl.behaviours import record
from sbsrl.errors import UserError
from sbsrl.tasks import make_task
from sbsrl.tasks import rwrl_cartpole as rwrl

suite = pytest.importorskip("dm_control.suite", reason="dm-control is an extra")


@pytest.fixture
def env():
    env = rwrl.open_system()
    yield env
    env.close()


def test_a_step_is_four_of_the_suite(env):
    """Observations, rewards and costs against the suite itself, with the same seed and actions."""
    plain = suite.load("cartpole", "swingup", task_kwargs={"random": np.random.RandomState(11)})
    first = plain.reset().observation
    observation, _ = env.reset(seed=11)
    np.testing.assert_array_equal(observation, np.concatenate([first["position"], first["velocity"]]))
    rng = np.random.default_rng(0)
    for _ in range(40):
        action = rng.uniform(-1, 1, 1)
        reward = cost = 0.0
        for _ in range(4):
            now = plain.step(action)
            reward += now.reward
            cost += abs(now.observation["position"][0]) >= 0.25
        observation, earned, terminated, _, info = env.step(action)
        np.testing.assert_array_equal(
            observation, np.concatenate([now.observation["position"], now.observation["velocity"]])
        )
        assert earned == pytest.approx(reward, abs=1e-12)
        assert info["cost"] == cost
        assert not terminated
    assert cost == 4 or abs(observation[0]) < 0.25


def test_an_episode_has_250_steps_and_the_next_one_begins_anew(env):
    env.reset(seed=1)
    endings = [env.step(np.zeros(1))[3] for _ in range(250)]
    assert endings == [False] * 249 + [True]
    again = env.reset(seed=1)[0]
    np.testing.assert_array_equal(again, env.reset(seed=1)[0])
    assert not np.array_equal(again, env.reset(seed=2)[0])


def test_it_must_be_reset_first_and_wants_an_action_of_its_size(env):
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1))
    env.reset(seed=0)
    with pytest.raises(UserError, match="shape"):
        env.step(np.zeros(2))
    with pytest.raises(UserError, match="not finite"):
        env.step(np.array([np.nan]))


def test_the_learner_expects_the_starts_that_there_are(env):
    """Means and deviations of 300 resets against draws of the task: 4 standard errors."""
    real = np.array([env.reset(seed=i)[0] for i in range(300)])
    drawn = np.array(jax.vmap(rwrl.reset)(jax.random.split(jax.random.key(0), 3000)))
    deviation = drawn.std(axis=0)
    assert np.all(np.abs(real.mean(axis=0) - drawn.mean(axis=0)) <= 4 * deviation / np.sqrt(300) + 1e-6)
    np.testing.assert_allclose(real.std(axis=0)[[0, 2, 3, 4]], deviation[[0, 2, 3, 4]], rtol=0.2)


def test_its_behaviour_swings_and_crosses_the_edge():
    data = record(make_task("rwrl-cartpole"), rwrl.pump, 2, jax.random.key(0))
    assert data.states.shape == (500, 5)
    np.testing.assert_allclose(np.hypot(data.states[:, 1], data.states[:, 2]), 1, atol=1e-6)
    assert data.costs.sum() > 0
    assert data.rewards.sum() > 50
    assert data.states[:, 1].max() > 0.9
