"""Both measures of uncertainty against numpy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.centres import SHARE, Centres, LowRankVariance
from sbsrl.belief.posterior import Posterior
from sbsrl.belief.uncertainty import Deviation, Information
from sbsrl.kernels import Linear, SquaredExponential

SCALE = np.array([0.5, 2.0])
LENGTHS = ((1.0, 2.0, 0.7), (0.8, 0.8, 0.8))
INPUTS = np.random.default_rng(0).normal(size=(25, 3))
QUERIES = np.array([[0.2, -0.4, 0.5], [3.0, 3.0, -1.0], INPUTS[4]])

evaluate = eqx.filter_jit(lambda measure, x, a: measure.many(x, a))
slopes = eqx.filter_jit(lambda measure, x, a: (*jax.value_and_grad(measure)(x, a), jax.jacfwd(measure)(x, a)))


@eqx.filter_jit
def variance_of(kernel, noise):
    posterior = Posterior.none(kernel, noise, 64, 3, 1).append(jnp.asarray(INPUTS), jnp.zeros((25, 1)))
    tolerance = SHARE * noise**2
    centres = Centres.none(64, 3).grow(kernel, posterior.inputs, tolerance, posterior.valid)
    return LowRankVariance.of(posterior, centres)


def textbook(lengths, noise):
    kernel = lambda u, v: np.exp(-0.5 * (((u[:, None] - v[None]) / np.array(lengths)) ** 2).sum(-1))  # noqa: E731
    k = kernel(INPUTS, QUERIES)
    return 1 - np.sum(k * np.linalg.solve(kernel(INPUTS, INPUTS) + noise**2 * np.eye(25), k), axis=0)


def case(name):
    """Variances and noise of both outputs: of one kernel, or of two with different noise."""
    noise = np.array([0.05, 0.05] if name == "shared" else [0.05, 0.3])
    groups = 1 if name == "shared" else 2
    parts = tuple(variance_of(SquaredExponential(LENGTHS[i]), jnp.asarray(noise[i])) for i in range(groups))
    expected = np.stack([textbook(LENGTHS[i % groups], noise[i]) for i in range(2)])
    return parts, noise, expected


@pytest.mark.parametrize("name", ["shared", "one for each output"])
def test_information_is_the_sum_of_the_logarithms(name):
    """To 1e-8, near, far from and at the data."""
    parts, noise, variance = case(name)
    measure = Information(parts, jnp.asarray(SCALE), jnp.asarray(noise))
    got = evaluate(measure, jnp.asarray(QUERIES[:, :2].T), jnp.asarray(QUERIES[:, 2:].T))
    np.testing.assert_allclose(got, np.sum(np.log1p(variance / noise[:, None] ** 2), axis=0), rtol=1e-8)


@pytest.mark.parametrize("name", ["shared", "one for each output"])
def test_deviation_is_the_norm_of_the_standard_deviations_in_units_of_the_state(name):
    """To 1e-8."""
    parts, noise, variance = case(name)
    measure = Deviation(parts, jnp.asarray(SCALE), jnp.asarray(noise))
    got = evaluate(measure, jnp.asarray(QUERIES[:, :2].T), jnp.asarray(QUERIES[:, 2:].T))
    np.testing.assert_allclose(got, np.sqrt(np.sum(variance * SCALE[:, None] ** 2, axis=0)), rtol=1e-8)


@pytest.mark.parametrize("kind", [Information, Deviation])
def test_one_state_is_answered_as_among_many_and_in_its_own_precision(kind):
    """To 1e-12."""
    parts, noise, _ = case("shared")
    measure = kind(parts, jnp.asarray(SCALE), jnp.asarray(noise))
    x, a = jnp.asarray(QUERIES[:, :2].T), jnp.asarray(QUERIES[:, 2:].T)
    alone, single = eqx.filter_jit(
        lambda m, x, a: (m(x, a), m.many(x[:, None].astype(jnp.float32), a[:, None].astype(jnp.float32))[0])
    )(measure, x[:, 0], a[:, 0])
    np.testing.assert_allclose(alone, evaluate(measure, x, a)[0], rtol=1e-12)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, alone, rtol=1e-5)


@pytest.mark.parametrize("kind", [Information, Deviation])
def test_gradients_are_finite_and_agree_at_and_away_from_data(kind):
    """Reverse and forward mode, and central differences of 1e-5 where the function is smooth (to 1e-6)."""
    parts, noise, _ = case("shared")
    measure = kind(parts, jnp.asarray(SCALE), jnp.asarray(noise))
    for z in QUERIES:
        x, a = jnp.asarray(z[:2]), jnp.asarray(z[2:])
        _, reverse, forward = slopes(measure, x, a)
        np.testing.assert_allclose(reverse, forward, atol=1e-9)
        for i, step in enumerate(1e-5 * np.eye(2)):
            ends = np.stack([z[:2] + step, z[:2] - step, z[:2]], axis=1)
            up, down, _ = evaluate(measure, jnp.asarray(ends), jnp.broadcast_to(a[:, None], (1, 3)))
            np.testing.assert_allclose(reverse[i], (up - down) / 2e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [Information, Deviation])
def test_gradients_are_finite_where_nothing_is_unknown(kind):
    """A linear kernel knows that the function is 0 at the origin."""
    variance = variance_of(Linear((1.0, 1.0, 1.0)), jnp.asarray(0.1))
    measure = kind((variance,), jnp.asarray(SCALE), jnp.full(2, 0.1))
    value, reverse, forward = slopes(measure, jnp.zeros(2), jnp.zeros(1))
    assert value == 0
    assert np.all(np.isfinite(reverse))
    assert np.all(np.isfinite(forward))
