"""The posterior against the textbook, in numpy."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.blocks import BLOCK
from sbsrl.belief.posterior import Moments, Posterior, padded_gram, root
from sbsrl.kernels import SquaredExponential

NOISE, LENGTHS = 0.1, np.array([1.0, 0.7])
KERNEL = SquaredExponential(tuple(LENGTHS))
QUERIES = np.array([[0.3, -0.2], [1.0, 1.0], [8.0, 8.0]])

append = eqx.filter_jit(Posterior.append)
moments = eqx.filter_jit(lambda posterior, z: Moments.of(posterior)(z))
prefixes = eqx.filter_jit(lambda posterior, z, before: Moments.of(posterior).prefixes(z, before))
given = eqx.filter_jit(Posterior.given)


def kernel(u, v, lengths=LENGTHS):
    return np.exp(-0.5 * (((u[:, None] - v[None]) / lengths) ** 2).sum(-1))


def textbook(inputs, targets, z, noise=NOISE):
    """mu and sigma^2 at the rows of z."""
    gram, k = kernel(inputs, inputs) + noise**2 * np.eye(len(inputs)), kernel(z, inputs)
    return k @ np.linalg.solve(gram, targets), 1 - np.sum(k.T * np.linalg.solve(gram, k.T), axis=0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 2)), rng.normal(size=(30, 3))


def nothing(capacity=BLOCK):
    return Posterior.empty(KERNEL, jnp.asarray(NOISE), capacity, 2, 3)


@pytest.fixture(scope="module")
def posterior(data):
    """The 30 points, ten at a time."""
    found = nothing()
    for i in range(0, 30, 10):
        found = append(found, *(jnp.asarray(part[i : i + 10]) for part in data))
    return found


def test_mean_and_variance_are_those_of_the_textbook(posterior, data):
    """To 1e-10, near the data and far from them; many queries are answered at once."""
    mean, variance = moments(posterior, jnp.asarray(QUERIES.T))
    expected_mean, expected_variance = textbook(*data, QUERIES)
    np.testing.assert_allclose(mean.T, expected_mean, atol=1e-10)
    np.testing.assert_allclose(variance, expected_variance, atol=1e-10)


def test_a_query_alone_has_the_answer_that_it_has_among_others(posterior):
    """To 1e-12."""
    mean, variance = moments(posterior, jnp.asarray(QUERIES.T))
    for i, z in enumerate(QUERIES):
        one_mean, one_variance = moments(posterior, jnp.asarray(z))
        np.testing.assert_allclose(one_mean, mean[:, i], atol=1e-12)
        np.testing.assert_allclose(one_variance, variance[i], atol=1e-12)


def test_the_posteriors_after_every_episode_are_those_of_refits(posterior, data):
    """The prefix trick, to 1e-9, against a refit on each prefix."""
    inputs, targets = data
    before = (np.arange(BLOCK)[None] < np.array([0, 10, 20, 30])[:, None]).astype(float)
    mean, variance = prefixes(posterior, jnp.asarray(QUERIES.T), jnp.asarray(before))
    for i, count in enumerate((0, 10, 20, 30)):
        expected_mean, expected_variance = textbook(inputs[:count], targets[:count], QUERIES)
        np.testing.assert_allclose(mean[i].T, expected_mean, atol=1e-9)
        np.testing.assert_allclose(variance[i], expected_variance, atol=1e-9)


def test_data_factorised_at_once_give_the_posterior_of_data_appended(posterior):
    """To 1e-12."""
    once = given(KERNEL, posterior.noise, posterior.inputs, posterior.targets, posterior.count)
    np.testing.assert_allclose(once.factor, posterior.factor, atol=1e-12)
    np.testing.assert_allclose(once.whitened, posterior.whitened, atol=1e-10)
    assert once.jitter == posterior.jitter == 0


def test_information_is_half_the_logarithm_of_the_determinant(posterior, data):
    """To 1e-10; none without data."""
    _, twice = np.linalg.slogdet(np.eye(30) + kernel(data[0], data[0]) / NOISE**2)
    np.testing.assert_allclose(posterior.information(), twice / 2, atol=1e-10)
    assert nothing().information() == 0


def test_solving_is_applying_the_inverse_gram_matrix(posterior, data):
    """To 1e-9; rows of padding stay 0."""
    solved = posterior.solve(posterior.targets)
    expected = np.linalg.solve(kernel(data[0], data[0]) + NOISE**2 * np.eye(30), data[1])
    np.testing.assert_allclose(solved[:30], expected, atol=1e-9)
    assert not np.any(solved[30:])


def test_without_data_the_posterior_is_the_prior():
    mean, variance = moments(nothing(), jnp.asarray(QUERIES.T))
    assert not np.any(mean)
    np.testing.assert_array_equal(variance, 1)


def test_rows_of_padding_are_inert(posterior):
    """Other inputs in them change no digit of moments, factor and Gram matrix."""
    rubbish = jnp.asarray(np.where(np.arange(BLOCK)[:, None] < 30, posterior.inputs, 0.5))
    other = eqx.tree_at(lambda p: p.inputs, posterior, rubbish)
    for one, two in zip(*(moments(p, jnp.asarray(QUERIES.T)) for p in (posterior, other)), strict=True):
        assert np.array_equal(one, two)
    assert np.array_equal(padded_gram(KERNEL, posterior.noise, rubbish, posterior.count)[30:], np.eye(BLOCK)[30:])
    once = given(KERNEL, posterior.noise, rubbish, posterior.targets, posterior.count)
    np.testing.assert_allclose(once.factor, posterior.factor, atol=1e-12)


def test_points_that_are_padding_are_not_learned_and_are_written_over(posterior, data):
    """Six of ten rows, then 24 of 24: the posterior of the 30 points, to 1e-12; what stands in padding is no matter."""
    inputs, targets = (
        np.concatenate([part[:6], np.full((4, part.shape[1]), fill)])
        for part, fill in zip(data, (7.0, np.nan), strict=True)
    )
    valid = jnp.asarray(np.arange(10) < 6, float)
    six = append(nothing(), jnp.asarray(inputs), jnp.asarray(targets), valid)
    exact = append(nothing(), *(jnp.asarray(part[:6]) for part in data))
    for found, expected in ((six, exact), (append(six, *(jnp.asarray(part[6:]) for part in data)), posterior)):
        assert found.count == expected.count
        for name in ("targets", "factor", "whitened"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
        np.testing.assert_allclose(found.information(), expected.information(), atol=1e-12)


def test_variance_with_450_close_points_and_small_noise_is_accurate():
    """As in planning: long smooth trajectories, sigma_w = 2.5e-3. To 1e-10, against a refined solve."""
    rng = np.random.default_rng(1)
    inputs = np.cumsum(rng.normal(scale=0.05, size=(450, 4)), axis=0)
    noise, ones = 2.5e-3, np.ones(4)
    unit = SquaredExponential(tuple(ones))
    padded = jnp.asarray(np.concatenate([inputs, np.zeros((62, 4))]))
    found = given(unit, jnp.asarray(noise), padded, jnp.zeros((512, 1)), jnp.int32(450))
    z = inputs[[0, 200, 449]] + 0.01
    gram, k = kernel(inputs, inputs, ones) + noise**2 * np.eye(450), kernel(inputs, z, ones)
    weights = np.linalg.solve(gram, k)
    weights += np.linalg.solve(gram, k - gram @ weights)  # one step of refinement
    _, variance = moments(found, jnp.asarray(z.T))
    np.testing.assert_allclose(variance, 1 - np.sum(k * weights, axis=0), atol=1e-10)


def test_the_root_has_a_derivative_everywhere():
    values = jnp.array([0.0, 4.0])
    np.testing.assert_array_equal(root(values), [0, 2])
    np.testing.assert_array_equal(eqx.filter_grad(lambda v: jnp.sum(root(v)))(values), [0, 0.25])
