"""Growing factors against numpy's."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.cholesky import LAST_JITTER, append, inverse, robust_cholesky, solve, whiten

CAPACITY, PART = 48, 10
grow = eqx.filter_jit(append)
factorise = eqx.filter_jit(lambda matrix: robust_cholesky(matrix, jnp.max(jnp.abs(jnp.diagonal(matrix)))))


def gram(z):
    return np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(-1))


def appended(matrix, parts):
    """The factor of the matrix's first rows, PART of them at a time, and the jitters."""
    factor, jitters = jnp.eye(CAPACITY), []
    for i in range(parts):
        start, end = i * PART, (i + 1) * PART
        cross = np.zeros((CAPACITY, PART))
        cross[:start] = matrix[:start, start:end]
        corner = matrix[start:end, start:end]
        factor, jitter = grow(factor, jnp.int32(start), jnp.asarray(cross), jnp.asarray(corner), jnp.ones(PART))
        jitters.append(float(jitter))
    return np.asarray(factor), jitters


@pytest.fixture
def matrix():
    return gram(np.random.default_rng(0).normal(size=(30, 2))) + 0.01 * np.eye(30)


def test_appending_in_parts_is_factorising_at_once(matrix):
    """To 1e-13; rows of padding stay those of the identity."""
    factor, jitters = appended(matrix, 3)
    np.testing.assert_allclose(factor[:30, :30], np.linalg.cholesky(matrix), atol=1e-13)
    np.testing.assert_array_equal(factor[30:], np.eye(CAPACITY)[30:])
    assert not np.any(np.triu(factor, 1))
    assert jitters == [0, 0, 0]


def padded_corner(corner):
    """The same with rows of the identity, up to PART."""
    whole = np.eye(PART)
    whole[: len(corner), : len(corner)] = corner
    return jnp.asarray(whole), jnp.asarray(np.arange(PART) < len(corner), float)


def test_rows_of_padding_are_those_of_the_identity_and_are_overwritten(matrix):
    """Ten rows, of which six are padding, then ten: the factor of the 14, to 1e-13."""
    corner, valid = padded_corner(matrix[:4, :4])
    factor, jitter = grow(jnp.eye(CAPACITY), jnp.int32(0), jnp.zeros((CAPACITY, PART)), corner, valid)
    np.testing.assert_array_equal(factor[4:], np.eye(CAPACITY)[4:])
    cross = np.zeros((CAPACITY, PART))
    cross[:4] = matrix[:4, 4:14]
    factor, _ = grow(factor, jnp.int32(4), jnp.asarray(cross), jnp.asarray(matrix[4:14, 4:14]), jnp.ones(PART))
    np.testing.assert_allclose(factor[:14, :14], np.linalg.cholesky(matrix[:14, :14]), atol=1e-13)
    assert jitter == 0


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_padding_neither_gets_a_jitter_nor_sets_its_size(size):
    """Of a singular matrix, 1e6 times as small or large as the identity of padding; to 1e-12 of its root."""
    singular = size * np.ones((4, 4))
    corner, valid = padded_corner(singular)
    start = jnp.eye(CAPACITY), jnp.int32(0)
    factor, jitter = grow(*start, jnp.zeros((CAPACITY, PART)), corner, valid)
    exact, expected = grow(*start, jnp.zeros((CAPACITY, 4)), jnp.asarray(singular), jnp.ones(4))
    assert jitter == expected > 0
    np.testing.assert_array_equal(factor[4:], np.eye(CAPACITY)[4:])
    np.testing.assert_allclose(factor[:4, :4], exact[:4, :4], rtol=1e-12, atol=1e-12 * np.sqrt(size))


def test_no_jitter_is_added_where_none_is_needed(matrix):
    factor, jitter = factorise(jnp.asarray(matrix))
    assert jitter == 0
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix), atol=1e-14)


def test_repeated_points_without_noise_get_just_enough_jitter():
    """At most 1e-8, and then it is the factor of the matrix with that jitter, to 1e-13."""
    matrix = gram(np.repeat(np.random.default_rng(2).normal(size=(5, 2)), 6, axis=0))
    factor, jitter = factorise(jnp.asarray(matrix))
    assert 0 < jitter <= 1e-8
    np.testing.assert_allclose(factor @ factor.T, matrix + float(jitter) * np.eye(30), atol=1e-13)


def test_the_jitter_is_relative_to_the_size_of_the_matrix():
    """1e6 times as large a matrix gets a jitter up to 1e6 times 1e-8, and one 1e6 times as small far less."""
    matrix = gram(np.repeat(np.random.default_rng(2).normal(size=(5, 2)), 6, axis=0))
    for size in (1e6, 1e-6):
        factor, jitter = factorise(jnp.asarray(size * matrix))
        assert np.all(np.isfinite(factor))
        assert 0 < jitter <= 1e-8 * size


@pytest.mark.parametrize("negative", [-1.0, -3 * LAST_JITTER])
def test_the_factor_of_an_indefinite_matrix_is_not_finite(negative):
    """Also if ten times the largest jitter would hide it; no more than that is ever tried."""
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(30, 30)))
    spectrum = np.array([negative, *np.ones(29)])
    factor, jitter = factorise(jnp.asarray(rotation * spectrum @ rotation.T))
    assert not np.any(np.isfinite(np.diagonal(factor)))
    assert jitter <= LAST_JITTER


def test_the_jitter_of_slightly_indefinite_rounding_is_found():
    """An eigenvalue of -1e-7: the jitter is the next power of ten."""
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(30, 30)))
    factor, jitter = factorise(jnp.asarray(rotation * np.array([-1e-7, *np.ones(29)]) @ rotation.T))
    assert np.all(np.isfinite(factor))
    assert 1e-7 <= jitter <= 1.001e-6


def test_inverse_is_the_inverse(matrix):
    factor = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(inverse(jnp.asarray(factor)) @ factor, np.eye(30), atol=1e-12)


@pytest.mark.parametrize("columns", [1, 7])
def test_solutions_are_those_of_numpy(matrix, columns):
    """L^-1 b and (L L^T)^-1 b, to 1e-12; what is above the diagonal of L is not looked at."""
    right = np.random.default_rng(3).normal(size=(30, columns))
    factor = np.linalg.cholesky(matrix)
    spoilt = jnp.asarray(factor + np.triu(np.full((30, 30), np.nan), 1))
    np.testing.assert_allclose(whiten(spoilt, jnp.asarray(right)), np.linalg.solve(factor, right), atol=1e-12)
    np.testing.assert_allclose(solve(spoilt, jnp.asarray(right)), np.linalg.solve(matrix, right), atol=1e-12)


def test_a_number_that_is_missing_shows_on_the_diagonal(matrix):
    """Of every point that knows of it: that is where the belief looks."""
    cross = np.zeros((CAPACITY, PART))
    cross[:10] = matrix[:10, 10:20]
    cross[4, 6] = np.nan
    factor, _ = grow(
        jnp.asarray(appended(matrix, 1)[0]),
        jnp.int32(10),
        jnp.asarray(cross),
        jnp.asarray(matrix[10:20, 10:20]),
        jnp.ones(PART),
    )
    assert not np.any(np.isfinite(np.diagonal(factor)[16:20]))
