"""A simulator that cannot be traced is asked and fitted; one that does not answer as it must is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl._jax import PLAN
from sbsrl.errors import UserError
from sbsrl.own.distillation import Answers, ask, distil

LOW, HIGH, FIRST = (-1.0,), (1.0,), np.array([[0.5, 0.0], [-0.5, 0.0]])


def pendulum(x, a):
    """A loop and a branch: nothing that could be traced."""
    angle, speed = x
    for _ in range(4):
        friction = 0.3 * speed if abs(speed) < 100 else np.sign(speed)
        speed += 0.025 * (-9.8 * np.sin(angle) - friction + 3.0 * a[0])
        angle += 0.025 * speed
    return [angle, speed]


@pytest.fixture(scope="module")
def answers():
    return ask(pendulum, FIRST, LOW, HIGH, steps=50, count=1500)


def test_answers_are_steps_of_the_simulator_within_the_limits(answers):
    assert (answers.states.shape, answers.actions.shape, answers.next_states.shape) == ((1500, 2), (1500, 1), (1500, 2))
    assert answers.actions.min() >= -1
    assert answers.actions.max() <= 1
    for x, a, y in list(zip(*answers, strict=True))[::100]:
        np.testing.assert_array_equal(y, pendulum(x, a))
    begins = np.concatenate([answers.states[::50]])  # episodes of 50 steps, each from a state where episodes begin
    assert {tuple(x) for x in begins} == {(0.5, 0.0), (-0.5, 0.0)}


def test_the_same_seed_asks_the_same(answers):
    again, other = (ask(pendulum, FIRST, LOW, HIGH, 50, 20, seed) for seed in (0, 1))
    np.testing.assert_array_equal(again.actions, answers.actions[:20])
    assert not np.array_equal(other.actions, again.actions)


@pytest.fixture(scope="module")
def distilled(answers):
    return distil(answers)


def test_a_smooth_simulator_is_reproduced_where_it_was_not_asked(distilled):
    """Within 1 % of the size of a step, and the error that is said is the true one within a factor of 3."""
    function, errors = distilled
    fresh = ask(pendulum, FIRST, LOW, HIGH, steps=50, count=500, seed=7)
    found = jax.vmap(function)(jnp.asarray(fresh.states), jnp.asarray(fresh.actions))
    wrong = np.sqrt(np.mean((np.asarray(found) - fresh.next_states) ** 2, axis=0))
    moves = (fresh.next_states - fresh.states).std(axis=0)
    assert np.all(wrong < 0.01 * moves)
    assert np.all(wrong < 3 * errors)
    assert np.all(errors < 3 * wrong)


def test_planning_may_use_it_in_its_own_precision(distilled):
    """Within 1e-4: single precision."""
    x, a = jnp.array([0.2, -0.4]), jnp.array([0.3])
    exact = eqx.filter_jit(distilled[0])(x, a)
    plan = eqx.filter_jit(distilled[0])(x.astype(PLAN), a.astype(PLAN))
    assert (exact.dtype, plan.dtype) == (jnp.float64, PLAN)
    np.testing.assert_allclose(plan, exact, atol=1e-4)


def test_a_linear_simulator_is_found_almost_exactly():
    """Within 1e-4: it is among the features, and the ridge is small."""
    rng = np.random.default_rng(0)
    x, a = rng.normal(size=(300, 2)), rng.uniform(-1, 1, (300, 1))
    y = x @ [[1.0, 0.1], [0.0, 0.9]] + a @ [[0.0, 0.5]]
    function, errors = distil(Answers(x, a, y))
    assert errors.max() < 1e-4
    np.testing.assert_allclose(function(jnp.asarray(x[0]), jnp.asarray(a[0])), y[0], atol=1e-4)


def raising(x, a):
    raise ValueError("no route")


@pytest.mark.parametrize(
    ("simulator", "said"),
    [
        (lambda x, a: [np.nan, 0.0], "answers with NaN or runs away from the states where episodes begin; mend it"),
        (lambda x, a: x + 1e6, "answers with NaN or runs away"),
        (raising, r"the simulator raised ValueError\('no route'\) at the observation \[-?0.5, 0.0\] and the action"),
        (lambda x: x, "it must be a function of .observation, action. that returns the next observation"),
        (lambda x, a: None, "the simulator answers with 1 numbers, and an observation has 2"),
        (lambda x, a: np.zeros(3), "the simulator answers with 3 numbers, and an observation has 2"),
        (lambda x, a: "far", "the simulator raised ValueError"),
    ],
)
def test_a_simulator_that_does_not_answer_with_the_next_observation_is_refused(simulator, said):
    with pytest.raises(UserError, match=said):
        ask(simulator, FIRST, LOW, HIGH, 10, 30)


def test_an_episode_that_runs_away_is_given_up_where_it_does():
    """Three good steps, then an explosion: every answer is one of the good ones."""
    first = np.array([[0.0, 0.0]])
    found = ask(lambda x, a: x + 1.0 if x[0] < 3 else x * np.nan, first, LOW, HIGH, 10, 30)
    assert len(found.actions) == 30
    assert set(found.next_states[:, 0]) == {1.0, 2.0, 3.0}


def test_a_simulator_that_changes_its_arguments_spoils_nothing():
    def careless(x, a):
        x += a
        a *= 0
        return x

    found = ask(careless, FIRST, LOW, HIGH, 10, 30)
    np.testing.assert_allclose(found.next_states - found.states, np.repeat(found.actions, 2, axis=1), atol=1e-12)
    assert FIRST.tolist() == [[0.5, 0.0], [-0.5, 0.0]]
