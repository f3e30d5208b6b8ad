"""A clock in the observation: it goes round in its period, begins anew with every episode, and is known beforehand."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
import toys
from gymnasium.utils.env_checker import check_env

from sbsrl.systems.clock import AT_FIRST, NAMES, Clocked, advanced

PUSH = np.array([0.01])


class Plain(toys.Cart):
    """A cart that is reset as it is asked to be, and of which nobody counts the calls."""

    calls = []  # noqa: RUF012
    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (2,), np.float64)


def test_it_passes_gymnasium_s_checker():
    """But for its remark that it is a wrapper."""
    with pytest.warns(UserWarning, match="different from the unwrapped version"):
        check_env(Clocked(Plain(), 7), skip_render_check=True)


@pytest.mark.parametrize("period", [1, 2, 7, 20])
def test_its_angle_is_the_share_of_the_period_that_went_by(period):
    """Beginning at 0 with every episode; 1e-12."""
    env = Clocked(Plain(), period)
    for seed in (0, 1):
        observation, _ = env.reset(seed=seed)
        np.testing.assert_array_equal(observation[-2:], AT_FIRST)
        for n in range(1, 2 * period + 2):
            observation, *_ = env.step(PUSH)
            angle = 2 * np.pi * n / period
            np.testing.assert_allclose(observation[-2:], [np.sin(angle), np.cos(angle)], atol=1e-12)


def test_all_else_is_as_it_was():
    plain, clocked = Plain(), Clocked(Plain(), 5)
    assert np.array_equal(clocked.reset(seed=3)[0][:-2], plain.reset(seed=3)[0])
    for _ in range(5):
        (seen, *others, costs), (timed, *also, charged) = plain.step(PUSH), clocked.step(PUSH)
        np.testing.assert_array_equal(timed[:-2], seen)
        assert others == also
        np.testing.assert_array_equal(charged["cost"], costs["cost"])
    assert len(NAMES) == clocked.observation_space.shape[0] - plain.observation_space.shape[0]


@pytest.mark.parametrize(("dtype", "within"), [(jnp.float64, 1e-12), (jnp.float32, 1e-5)])
def test_what_is_known_of_it_is_what_it_does(dtype, within):
    """Fifty steps, each from what was foretold for the one before."""
    env = Clocked(Plain(), 20)
    observation, _ = env.reset(seed=0)
    clock = jnp.asarray(AT_FIRST, dtype)
    for _ in range(50):
        observation, *_ = env.step(PUSH)
        clock = advanced(clock, 20)
        assert clock.dtype == dtype
        np.testing.assert_allclose(clock, observation[-2:], atol=within)
