"""A pair of plain functions behaves as an environment of Gymnasium, and its randomness is that of the seed."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.own.plain import Pair, PlainEnv, as_pair


def reset(rng):
    return [rng.normal(), 0.0]


def step(x, a, rng):
    return x + [0.1, a[0]] + 0.01 * rng.normal(size=2)


def opened(pair=None, **options):
    env = PlainEnv(pair or Pair(reset, step), **{"low": [-1.0], "high": [1.0], "states": 2, **options})
    env.reset(seed=3)
    return env


def played(env, seed, count=5):
    states = [env.reset(seed=seed)[0]]
    states += [env.step(np.array([0.5]))[0] for _ in range(count)]
    return np.array(states)


@pytest.mark.parametrize(
    "thing", [(reset, step), [reset, step], Pair(reset, step), SimpleNamespace(reset=reset, step=step)]
)
def test_two_functions_or_something_that_has_them_is_a_pair(thing):
    pair = as_pair(thing)
    assert (pair.reset, pair.step) == (reset, step)


def test_a_pair_says_its_limits_and_names_if_it_has_them():
    pair = as_pair(SimpleNamespace(reset=reset, step=step, low=-2.0, high=3.0, states=("p", "v")))
    env = PlainEnv(pair)
    assert (env.action_space.low.tolist(), env.action_space.high.tolist()) == ([-2.0], [3.0])
    assert env.state_names == ("p", "v")
    assert PlainEnv(pair, low=[-1.0]).action_space.low.tolist() == [-1.0]  # what the user says comes first


@pytest.mark.parametrize(
    "thing",
    [
        (reset,),
        (reset, 3),
        reset,
        SimpleNamespace(reset=reset),
        SimpleNamespace(reset=reset, step=lambda action: None),  # of other libraries
        SimpleNamespace(reset=reset, step=max),
        opened(),
        3,
    ],
)
def test_anything_else_is_none(thing):
    assert as_pair(thing) is None


def test_all_randomness_comes_from_the_seed():
    env = opened()
    np.testing.assert_array_equal(played(env, 1), played(env, 1))
    assert not np.array_equal(played(env, 1), played(env, 2))


def test_the_steps_are_those_of_the_function():
    """Without noise: exactly."""
    env = opened(Pair(lambda rng: (1.0, 2.0), lambda x, a, rng: [x[0] + a[0], x[1] - 1.0]))
    np.testing.assert_array_equal(played(env, 0, 3), [[1.0, 2.0], [1.5, 1.0], [2.0, 0.0], [2.5, -1.0]])
    assert env.step(np.zeros(1))[2:4] == (False, False)  # it never ends by itself


def test_a_function_that_changes_its_argument_changes_nothing_else():
    def careless(x, a, rng):
        x += 1.0
        return x

    env = opened(Pair(lambda rng: np.zeros(2), careless))
    first, _ = env.reset(seed=0)
    after = env.step(np.zeros(1))[0]
    np.testing.assert_array_equal([first, after], [[0.0, 0.0], [1.0, 1.0]])
    after += 9.0  # nor does who was given the observation
    np.testing.assert_array_equal(env.step(np.zeros(1))[0], [2.0, 2.0])


@pytest.mark.parametrize(
    ("outcome", "reward", "info"),
    [
        ([1.0, 2.0], 0.0, {}),
        (np.array([1.0, 2.0]), 0.0, {}),
        (([1.0, 2.0], 5.0), 5.0, {}),
        (([1.0, 2.0], 5.0, 3.0), 5.0, {"cost": 3.0}),
        (([1.0, 2.0], 5.0, {"heat": 3.0}), 5.0, {"heat": 3.0}),
    ],
)
def test_a_step_may_return_the_state_alone_or_with_reward_and_cost(outcome, reward, info):
    found = opened(Pair(reset, lambda x, a, rng: outcome)).step(np.zeros(1))
    assert found[0].tolist() == [1.0, 2.0]
    assert (found[1], found[4]) == (reward, info)


def test_more_than_that_is_refused():
    with pytest.raises(UserError, match=r"step returned 4 values; return y, \(y, reward\) or \(y, reward, cost\)"):
        opened(Pair(reset, lambda x, a, rng: ([0.0], 1.0, 2.0, 3.0))).step(np.zeros(1))


@pytest.mark.parametrize("limits", [{"low": None}, {"high": None}])
def test_limits_that_nobody_says_are_asked_for(limits):
    with pytest.raises(UserError, match=r"does not say between which limits .* give action_low and action_high"):
        opened(**limits)


def test_the_size_is_that_of_the_names_and_nothing_is_reset_to_find_it_out():
    never = Pair(lambda rng: pytest.fail("it was reset"), step, states=("a", "b", "c"))
    assert PlainEnv(never, -1.0, 1.0).observation_space.shape == (3,)
    with pytest.raises(UserError, match=r"^the system does not say what its observations are; give state_names"):
        PlainEnv(Pair(reset, step), -1.0, 1.0)


def test_a_step_before_the_first_reset_is_refused():
    with pytest.raises(gymnasium.error.ResetNeeded):
        PlainEnv(Pair(reset, step), -1.0, 1.0, 2).step(np.zeros(1))
