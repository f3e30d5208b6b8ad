"""The belief against the textbook formulas, in numpy, on a small system."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sbsrl import UserError
from sbsrl.belief import GPBelief
from sbsrl.task import Prior, Transitions

NOISE = 0.05
SCALE = np.array([0.5, 2.0])
LENGTHS = np.array([1.0, 2.0, 0.7])


def drift(x, a):
    return 0.9 * x + 0.1 * jnp.concatenate([a, a])


PRIOR = Prior(
    name="drift",
    mean=drift,
    scale=tuple(SCALE),
    lengthscales=tuple(LENGTHS),
    noise=NOISE,
    bound=1.0,
    bound_source="assumed",
    informative=True,
)


def transitions(count, seed=0):
    rng = np.random.default_rng(seed)
    x, a = rng.normal(size=(count, 2)), rng.uniform(-1, 1, (count, 1))
    y = 0.9 * x + 0.1 * a + SCALE * np.sin(x.sum(1, keepdims=True)) * np.array([0.3, -0.1])
    return Transitions(x, a, y)


def belief(count=25):
    return GPBelief.create(PRIOR, 200, 32).update(transitions(count))


def textbook(data, x, a):
    """Mean and variance (in units of scale) at (x, a) by dense solves."""
    z = np.concatenate([data.states, data.actions], axis=1) / LENGTHS
    query = np.concatenate([x, a]) / LENGTHS
    gram = np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(-1)) + NOISE**2 * np.eye(len(z))
    k = np.exp(-0.5 * ((z - query) ** 2).sum(-1))
    residual = (data.next_states - (0.9 * data.states + 0.1 * data.actions)) / SCALE
    mean = 0.9 * x + 0.1 * a + SCALE * (k @ np.linalg.solve(gram, residual))
    return mean, 1 - k @ np.linalg.solve(gram, k)


QUERIES = [(np.array([0.2, -0.4]), np.array([0.5])), (np.array([3.0, 3.0]), np.array([-1.0]))]


@pytest.mark.parametrize(("x", "a"), QUERIES)
def test_nominal_is_the_posterior_mean(x, a):
    mean, _ = textbook(transitions(25), x, a)
    got = belief().nominal()(jnp.asarray(x, jnp.float32), jnp.asarray(a, jnp.float32))
    np.testing.assert_allclose(got, mean, atol=2e-5)


@pytest.mark.parametrize(("x", "a"), QUERIES)
def test_uncertainty_is_the_information_of_both_outputs(x, a):
    _, variance = textbook(transitions(25), x, a)
    got = belief().uncertainty()(jnp.asarray(x), jnp.asarray(a))
    np.testing.assert_allclose(got, 2 * np.log1p(variance / NOISE**2), rtol=1e-8)


def test_before_any_data_the_nominal_is_the_prior_mean():
    x, a = jnp.array([1.0, -2.0], jnp.float32), jnp.array([0.5], jnp.float32)
    np.testing.assert_allclose(GPBelief.create(PRIOR, 10, 32).nominal()(x, a), drift(x, a), rtol=1e-6)


def test_data_of_the_prior_are_known_from_the_start():
    known = GPBelief.create(dataclasses.replace(PRIOR, data=transitions(25)), 200, 32)
    np.testing.assert_array_equal(known.data.factor[:128, :128], belief().data.factor[:128, :128])
    assert known.data.count == 25


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_data_that_are_not_finite_are_refused_and_leave_the_belief_as_it_was(bad):
    before = belief()
    data = transitions(5, seed=1)
    data.next_states[3, 1] = bad
    with pytest.raises(UserError, match="next_states of the data are not all finite"):
        before.update(data)
    assert before.data.count == 25


def test_more_data_than_there_is_room_for_are_refused():
    with pytest.raises(UserError, match="room for 128 transitions and would hold 200"):
        GPBelief.create(PRIOR, 100, 32).update(transitions(200))


def test_constant_repeated_data_do_not_break_the_belief():
    x = np.tile([[1.0, 1.0]], (60, 1))
    same = Transitions(x, np.zeros((60, 1)), x)
    after = GPBelief.create(PRIOR, 60, 32).update(same)
    assert np.all(np.isfinite(after.data.factor))
    np.testing.assert_allclose(after.nominal()(jnp.ones(2, jnp.float32), jnp.zeros(1, jnp.float32)), [1, 1], atol=1e-3)


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.float64, (6, 2), elements=st.floats(-1e6, 1e6)),
    arrays(np.float64, (6, 2), elements=st.floats(-1e6, 1e6)),
    st.lists(st.integers(0, 5), min_size=6, max_size=6),
)
def test_no_finite_data_make_a_belief_that_is_not_finite(states, next_states, rows):
    """Huge scales, repeated and collinear points: the posterior is finite and the variance between 0 and 1."""
    data = Transitions(states[rows], np.zeros((6, 1)), next_states[rows])
    after = GPBelief.create(PRIOR, 6, 32).update(data)
    x, a = jnp.asarray(states[0]), jnp.zeros(1)
    information = float(after.uncertainty()(x, a))
    assert np.all(np.isfinite(after.data.factor))
    assert 0 <= information <= 2 * np.log1p(NOISE**-2) + 1e-9
    assert np.all(np.isfinite(after.nominal()(x.astype(jnp.float32), a.astype(jnp.float32))))
