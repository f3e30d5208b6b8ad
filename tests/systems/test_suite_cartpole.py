"""The cartpole that is written down is MuJoCo's, step by step, also where it hits the end of the slider."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.tasks import make_task
from sbsrl.tasks.rwrl_cartpole import EQUATIONS, gradual_costs


@pytest.fixture(scope="module")
def env():
    pytest.importorskip("dm_control")
    system = make_task("rwrl-cartpole").open()
    yield system
    system.close()


@jax.jit
def written(x, a):
    y = EQUATIONS.dynamics(x, a)
    return y, EQUATIONS.signals.reward(x, a, y), EQUATIONS.signals.costs(x, a, y)[0]


def actions(how):
    if how == "random":
        return np.random.default_rng(0).uniform(-1, 1, (250, 1))
    return np.where(np.arange(250) // 40 % 2 == 0, 1.0, -1.0)[:, None]


@pytest.mark.parametrize("how", ["random", "back and forth"])
def test_every_step_is_that_of_mujoco(env, how):
    """250 steps of 4 each, from MuJoCo's own states: 1e-9, and 1e-6 where its iterations find the force of an end."""
    x, _ = env.reset(seed=3)
    furthest = 0.0
    for a in actions(how):
        y, reward, cost = written(jnp.asarray(x), jnp.asarray(a))
        x, true_reward, _, _, info = env.step(a)
        accuracy = 1e-9 if abs(x[0]) < 1.7 else 1e-6
        np.testing.assert_allclose(y, x, rtol=0, atol=accuracy)
        np.testing.assert_allclose(reward, true_reward, rtol=0, atol=accuracy)
        assert cost == info["cost"]
        furthest = max(furthest, abs(x[0]))
    assert furthest > 1.8


def test_its_initial_states_are_those_of_the_suite(env):
    """Mean and standard deviation over 400 draws, whose own errors are below 10 %."""
    theirs = np.array([env.reset(seed=i)[0] for i in range(400)])
    ours = np.asarray(jax.vmap(EQUATIONS.start)(jax.random.split(jax.random.key(0), 400)))
    np.testing.assert_allclose(ours.mean(0), theirs.mean(0), atol=2e-3)
    np.testing.assert_allclose(ours[:, [0, 2, 3, 4]].std(0), theirs[:, [0, 2, 3, 4]].std(0), rtol=0.15)


def test_the_gradual_cost_is_the_cost_but_for_the_edge():
    x = EQUATIONS.start(jax.random.key(0))
    for place, wanted in ((0.0, 0.0), (0.5, 4.0), (-0.5, 4.0)):
        there = x.at[0].set(place)
        still = jnp.zeros(1)
        found = gradual_costs(there, still, there)
        np.testing.assert_allclose(found, EQUATIONS.signals.costs(there, still, there), atol=1e-6)
        np.testing.assert_allclose(found, [wanted], atol=1e-6)
