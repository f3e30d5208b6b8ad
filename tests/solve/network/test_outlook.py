"""Pieces of episodes from visited states: what they say of a whole episode, and which states they begin at."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_problems import Beside, known, make_problem, solver, units

from sbsrl.leaves import check_form
from sbsrl.networks import Layer
from sbsrl.solve.gradient.choices import GradientChoices
from sbsrl.solve.network.forecast import Forecast
from sbsrl.solve.network.gate import Gate
from sbsrl.solve.network.outlook import (
    APART,
    EPISODES,
    PER_EPISODE,
    POOL,
    Outlook,
    added_to,
    nothing_visited,
    outlook_of,
    placed,
)

HORIZON = 60
STILL = (Layer(jnp.zeros((1, 1), jnp.float32), jnp.zeros(1, jnp.float32)),)


def at_rest(key):
    return jnp.zeros(1)


def steady(price):
    """Nothing changes: a step earns 1 at x = 0 and 2 at x = 1, costs its price, and 3 is learned of it."""
    return known(lambda x, a: x, lambda x, a, y: 1 + y[0], lambda x, a, y: price + 0 * y)


STATIONARY = make_problem(
    steady(0.5), Beside(jnp.array([0.5, 2.0], jnp.float32), steady, 3.0), 1.0, HORIZON, uncertainty=lambda x, a: 3.0
)


@pytest.mark.parametrize("pieces", [1, 7, 25, 60])
def test_pieces_say_what_whole_episodes_do_where_nothing_changes(pieces):
    """Sums over a piece, T / H times. Rounding: 1e-5."""
    asked = [
        Gate(Outlook(at_rest, HORIZON, H), units(), 1.0, 6, 1.0).checked(STATIONARY, STILL, jax.random.key(0))
        for H in (0, pieces)
    ]
    whole = Forecast(60.0, 180.0, np.array([[30.0], [120.0]]), np.array([60.0, 60.0]))
    for found in asked:
        for part, wanted in zip(found, whole, strict=True):
            np.testing.assert_allclose(part, wanted, rtol=1e-5)


def test_whole_episodes_begin_where_the_task_does_and_pieces_where_the_problem_says():
    problem = STATIONARY.demanding(jnp.float32(0), HORIZON)
    pool = problem.starts + jnp.arange(1.0, 9.0)[:, None]
    problem = placed(problem, nothing_visited(1, 5), np.tile(pool, (3, 1)), 0.5, jax.random.key(0))
    for asked in (Outlook.starts, Outlook.unseen):
        whole, pieces = (
            np.asarray(asked(Outlook(at_rest, HORIZON, H), problem, 300, jax.random.key(1))) for H in (0, 5)
        )
        np.testing.assert_array_equal(whole, np.zeros((300, 1)))
        np.testing.assert_array_equal(np.unique(pieces), np.arange(1, 9))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, EPISODES, EPISODES + 1, EPISODES + 2])
def test_the_gate_begins_at_episodes_that_training_begins_none_at(count):
    """Of three that follow each other one is the gate's, the first of all too; and the last third of the data."""
    problem = placed(make_problem(steady(1.0), None, 1.0, 1), after(count), RECORDED, 0.5, jax.random.key(0))
    outlook = Outlook(at_rest, HORIZON, 5)
    trained, checked = (
        {float(x) for x in ask(problem, 20_000, jax.random.key(1))[:, 0]} for ask in (outlook.starts, outlook.unseen)
    )
    assert not trained & checked
    remembered = range(max(count - EPISODES, 0) + 1, count + 1)
    assert {number for number in checked if number > 0} == {each for each in remembered if each % APART == 1}
    assert {number for number in trained if number > 0} == {each for each in remembered if each % APART != 1}
    end = len(RECORDED) - len(RECORDED) // APART
    assert min(trained) >= -end > max(number for number in checked if number < 0)


@pytest.mark.parametrize(("pieces", "steps", "times"), [(0, 60, 1), (25, 25, 2.4), (60, 60, 1), (500, 60, 1)])
def test_models_are_followed_for_no_longer_than_an_episode(pieces, steps, times):
    chosen = solver(at_rest, HORIZON)
    found = outlook_of(chosen.domain, GradientChoices(pieces=pieces))
    assert (found.steps, found.times) == (steps, pytest.approx(times))


def episode(number, steps=PER_EPISODE):
    """Its states say which episode it is, and which step."""
    return np.stack([np.full(steps, float(number)), np.arange(float(steps))], axis=1)


def after(count, steps=PER_EPISODE):
    visited = nothing_visited(2, 5)
    for number in range(1, count + 1):
        visited = added_to(visited, episode(number, steps))
    return visited


def test_the_last_episodes_are_remembered_the_newest_first():
    visited = after(EPISODES + 3)
    check_form("what was visited", nothing_visited(2, 5), visited)
    assert int(visited.episodes) == EPISODES + 3
    for place in range(EPISODES):
        np.testing.assert_array_equal(visited.states[place], episode(EPISODES + 3 - place))


@pytest.mark.parametrize("steps", [1, 5, 1000])
def test_of_every_episode_as_many_states_are_remembered_from_its_beginning_to_its_end(steps):
    times = np.asarray(after(1, steps).states[0, :, 1])
    assert (len(times), times[0], times[-1]) == (PER_EPISODE, 0, steps - 1)
    assert len(np.unique(times)) == min(steps, PER_EPISODE)
    assert np.all(np.diff(times) >= 0)


def test_an_episode_without_a_step_changes_nothing():
    visited = after(2)
    assert added_to(visited, np.zeros((0, 2))) is visited


RECORDED = -1 - np.arange(400.0)[:, None] * np.ones(2)


def numbers_in_pool(visited, recent):
    """Of which episodes the states of both pools are; those that were recorded are below 0."""
    problem = placed(make_problem(steady(1.0), None, 1.0, 1), visited, RECORDED, recent, jax.random.key(0))
    assert problem.starts.shape == (2 * POOL, 2)
    return np.asarray(problem.starts[:, 0]).reshape(2, POOL)


@pytest.mark.parametrize("recent", [0.0, 0.25, 0.75, 1.0])
def test_the_share_of_recent_states_is_the_one_that_was_chosen(recent):
    """Three episodes, two of them for training, half of that share each: within 0.05."""
    training, checks = numbers_in_pool(after(3), recent)
    for pool in (training, checks):
        assert np.mean(pool > 0) == pytest.approx(recent, abs=1 / POOL)
    for number in (2, 3):
        assert np.mean(training == number) == pytest.approx(recent / 2, abs=0.05)
    assert np.all(checks[checks > 0] == 1)


def test_before_the_first_episode_all_states_are_recorded_ones_and_many_of_them():
    found = numbers_in_pool(nothing_visited(2, 5), 1.0)
    assert np.all(found < 0)
    assert len(np.unique(found)) > 300
