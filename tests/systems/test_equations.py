"""Equations as environments. Where nothing is said, results agree exactly."""

import warnings

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sbsrl._jax import EXACT
from sbsrl.errors import UserError
from sbsrl.model import Signals
from sbsrl.systems.equations import EquationsEnv
from sbsrl.task import Equations

ACTIONS = np.sin(np.arange(12.0))[:, None] * 1.4


def swing(x, a):
    omega = x[1] + 0.1 * (9.81 * jnp.sin(x[0]) + 3.0 * jnp.clip(a[0], -1.0, 1.0))
    return jnp.stack([x[0] + 0.1 * omega, omega])


def reward(x, a, y):
    return -(x[0] ** 2 + 0.1 * x[1] ** 2 + 0.02 * a[0] ** 2)


def speed(x, a, y):
    return jnp.abs(y[1])


def start(key):
    return jnp.array([0.3, 0.0]) + 0.1 * jax.random.normal(key, (2,), EXACT)


EXACTLY = Equations(
    start=start,
    step=lambda x, a, key: swing(x, a),
    dynamics=swing,
    signals=Signals(reward, lambda x, a, y: jnp.stack([speed(x, a, y)])),
    noise=(0.0, 0.0),
)
TWO_COSTS = EXACTLY._replace(signals=Signals(reward, lambda x, a, y: jnp.stack([speed(x, a, y), jnp.abs(y[0])])))
NOISY = EXACTLY._replace(
    step=lambda x, a, key: swing(x, a) + 0.1 * jax.random.normal(key, (2,), EXACT), noise=(0.1, 0.1)
)


def make(equations=EXACTLY, **options):
    return EquationsEnv(equations, (-1.0,), (1.0,), **options)


def play(env, seed=None, actions=ACTIONS):
    """States, rewards and costs of an episode."""
    x, _ = env.reset(seed=seed)
    steps = [env.step(a) for a in actions]
    return np.stack([x, *(step[0] for step in steps)]), *(
        np.stack(part) for part in ([s[1] for s in steps], [s[4]["cost"] for s in steps])
    )


def test_it_computes_what_the_equations_say():
    """Against numpy in double precision; relative tolerance 1e-12, of which twelve steps use little."""
    states, rewards, costs = play(make(TWO_COSTS), seed=3)
    for t, a in enumerate(ACTIONS[:, 0]):
        angle, omega = states[t]
        faster = omega + 0.1 * (9.81 * np.sin(angle) + 3.0 * min(max(a, -1.0), 1.0))
        np.testing.assert_allclose(states[t + 1], [angle + 0.1 * faster, faster], rtol=1e-12)
        np.testing.assert_allclose(rewards[t], -(angle**2 + 0.1 * omega**2 + 0.02 * a**2), rtol=1e-12)
        np.testing.assert_allclose(costs[t], np.abs(states[t + 1][::-1]), rtol=1e-12)
    assert np.abs(ACTIONS).max() > 1  # beyond the limits: clipped by the equations, not before the reward


def test_a_step_is_the_same_program_as_before_there_were_environments():
    """Runs are compared bit for bit with those of earlier versions."""

    @eqx.filter_jit
    def earlier(step, reward, cost, x, a, key):
        y = step(x, a, key)
        return y, reward(x, a, y), cost(x, a, y)

    states, rewards, costs = play(make(), seed=5)
    x = jnp.asarray(states[0])
    for t, a in enumerate(ACTIONS):
        x, r, c = earlier(EXACTLY.step, reward, speed, x, jnp.asarray(a), jax.random.key(99))
        assert (float(r), float(c)) == (rewards[t], costs[t])
        np.testing.assert_array_equal(x, states[t + 1])


def test_seeds_decide_everything_and_each_step_has_its_own_noise():
    first, again, other = (play(make(NOISY), seed=seed)[0] for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
    still = make(NOISY._replace(step=lambda x, a, key: jax.random.normal(key, (2,), EXACT)))
    assert len(np.unique(play(still, seed=7)[0])) == 2 * (len(ACTIONS) + 1)


def test_the_key_of_an_episode_is_that_of_its_seed():
    """To 1e-14: a compiled start may round differently."""
    x, _ = make().reset(seed=11)
    np.testing.assert_allclose(x, start(jax.random.split(jax.random.key(11))[0]), rtol=1e-14)


def test_without_a_seed_episodes_differ_and_follow_from_the_last_seed():
    env = make()
    env.reset(seed=1)
    second, third = env.reset()[0], env.reset()[0]
    assert (second != third).all()
    env.reset(seed=1)
    np.testing.assert_array_equal(env.reset()[0], second)


@pytest.mark.parametrize("seed", [2**32 + 1, 2**64 - 1, 2**70 + 3])
def test_large_seeds_are_seeds(seed):
    assert np.isfinite(make().reset(seed=seed)[0]).all()


def test_one_cost_is_a_number_and_several_are_an_array():
    for equations, kind in ((EXACTLY, float), (TWO_COSTS, np.ndarray)):
        env = make(equations)
        env.reset(seed=0)
        observation, reward_, terminated, truncated, info = env.step(np.array([0.5]))
        assert type(info["cost"]) is kind
        assert (type(observation), observation.dtype, type(reward_)) == (np.ndarray, np.float64, float)
        assert (terminated, truncated) == (False, False)


def test_it_is_truncated_after_the_horizon_and_begins_again():
    env = make(horizon=3)
    for seed in (0, 1):
        env.reset(seed=seed)
        assert [env.step(np.zeros(1))[3] for _ in range(3)] == [False, False, True]


def test_spaces_hold_the_limits_where_there_are_any():
    env = make(state_limits=(2.0, np.inf))
    assert env.observation_space.dtype == env.action_space.dtype == np.float64
    np.testing.assert_allclose(env.observation_space.high, [2.0, np.inf], rtol=1e-8)
    np.testing.assert_array_equal(env.observation_space.low, -env.observation_space.high)
    assert np.array([np.nextafter(2.0, 3.0), 1e9]) in env.observation_space
    assert np.array([2.001, 0.0]) not in env.observation_space
    np.testing.assert_array_equal([env.action_space.low, env.action_space.high], [[-1.0], [1.0]])


class Spring(eqx.Module):
    """A system that is a module of arrays."""

    stiffness: jax.Array

    def __call__(self, x, a, key):
        return jnp.stack([x[0] + 0.1 * x[1], x[1] - 0.1 * self.stiffness * x[0] + a[0]])


def test_one_program_serves_all_environments_of_the_same_functions():
    traced = []

    def costs(x, a, y):
        traced.append(1)
        return jnp.stack([jnp.abs(y[0])])

    found = []
    for stiffness in (1.0, 2.0, 3.0):
        spring = EXACTLY._replace(step=Spring(jnp.array(stiffness, EXACT)), signals=Signals(reward, costs))
        found.append(play(make(spring), seed=0)[0])
    assert len(traced) == 1
    assert (found[0][-1] != found[1][-1]).all()


@pytest.mark.parametrize("action", [[0.0, 0.0], 0.0, [[0.0]], [np.nan], [np.inf]])
def test_actions_that_are_none_are_refused(action):
    env = make()
    env.reset(seed=0)
    with pytest.raises(UserError, match="action"):
        env.step(np.array(action))


def test_other_mistakes_are_refused():
    with pytest.raises(gymnasium.error.ResetNeeded):
        make().step(np.zeros(1))
    with pytest.raises(UserError, match=r"3 limits were given for 2 states"):
        make(state_limits=(1.0, 1.0, 1.0))
    with pytest.raises(UserError, match="render_mode 'human'"):
        make(render_mode="human")


@pytest.mark.parametrize(
    ("limits", "complaints"), [((5.0, 20.0), []), (None, ["minimum value is -infinity", "maximum value is infinity"])]
)
@pytest.mark.parametrize("equations", [EXACTLY, TWO_COSTS, NOISY])
def test_it_passes_the_checker_of_gymnasium(equations, limits, complaints):
    """Infinite limits are meant; without a registered name there is nothing to make pictures from."""
    env = make(equations, state_limits=limits)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env)
    complaints = [*complaints, "Not able to test alternative render modes"]
    assert len(caught) == len(complaints)
    assert all(part in str(warning.message) for part, warning in zip(complaints, caught, strict=True))
