import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.kernel import BLOCK, augment
from sbsrl.belief.posterior import Observations, factorise, inverse_factor, variance


def naive_gram(z):
    return np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(-1))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 2)), rng.normal(size=(30, 3))


def observed(data, noise, capacity=BLOCK):
    inputs, targets = (jnp.asarray(part) for part in data)
    return Observations.none(capacity, inputs.shape[1], targets.shape[1]).append(inputs, targets, noise)


def test_the_factor_is_that_of_the_data_and_padding_is_inert(data):
    noise = 0.1
    found = observed(data, noise)
    expected = np.linalg.cholesky(naive_gram(data[0]) + noise**2 * np.eye(30))
    np.testing.assert_allclose(found.factor[:30, :30], expected, atol=1e-12)
    np.testing.assert_array_equal(found.factor[30:, 30:], np.eye(BLOCK - 30))
    assert not np.any(found.factor[30:, :30])
    assert found.jitter == 0


def test_appending_in_two_parts_is_appending_at_once(data):
    inputs, targets = (jnp.asarray(part) for part in data)
    parts = Observations.none(BLOCK, 2, 3).append(inputs[:12], targets[:12], 0.1).append(inputs[12:], targets[12:], 0.1)
    np.testing.assert_allclose(parts.factor, observed(data, 0.1).factor, atol=1e-13)


def test_variance_is_the_schur_complement(data):
    noise, z = 0.1, np.array([0.3, -0.2])
    found = observed(data, noise)
    k = np.exp(-0.5 * ((data[0] - z) ** 2).sum(-1))
    expected = 1 - k @ np.linalg.solve(naive_gram(data[0]) + noise**2 * np.eye(30), k)
    got = variance(jnp.asarray(z), augment(found.inputs), inverse_factor(found.factor), found.count)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_without_data_the_variance_is_that_of_the_prior():
    none = Observations.none(BLOCK, 2, 1)
    assert variance(jnp.zeros(2), augment(none.inputs), inverse_factor(none.factor), none.count) == 1


def test_variance_with_450_close_points_and_small_noise_is_accurate():
    """As in planning: long smooth trajectories, sigma_w = 2.5e-3. Against a solve in extended precision."""
    rng = np.random.default_rng(1)
    inputs = np.cumsum(rng.normal(scale=0.05, size=(450, 4)), axis=0)
    noise = 2.5e-3
    found = observed((inputs, np.zeros((450, 1))), noise, 512)
    gram = naive_gram(inputs) + noise**2 * np.eye(450)
    inverse = inverse_factor(found.factor)
    for i in (0, 200, 449):
        z = inputs[i] + 0.01
        k = np.exp(-0.5 * ((inputs - z) ** 2).sum(-1))
        weights = np.linalg.solve(gram, k)
        weights += np.linalg.solve(gram, k - gram @ weights)  # one step of refinement
        expected = 1 - k @ weights
        np.testing.assert_allclose(
            variance(jnp.asarray(z), augment(found.inputs), inverse, found.count), expected, atol=1e-10
        )


def test_repeated_points_without_noise_get_just_enough_jitter():
    inputs = jnp.asarray(np.repeat(np.random.default_rng(2).normal(size=(5, 2)), 8, axis=0))
    factor, jitter = factorise(inputs, jnp.int32(40), 0.0)
    assert np.all(np.isfinite(factor))
    assert 0 < jitter <= 1e-8
