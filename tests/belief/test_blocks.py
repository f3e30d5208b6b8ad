"""Sums over padded data against dense numpy, for every way in which data can fill the blocks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.blocks import (
    BLOCK,
    kernel_vector,
    padded_size,
    triangular_product,
    triangular_solution,
    valid_rows,
    weighted_sum,
)
from sbsrl.kernels import Linear, SquaredExponential

CAPACITY = 4 * BLOCK
COUNTS = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 150, CAPACITY]
LENGTHS = np.array([1.0, 2.0, 0.7])
KERNEL = SquaredExponential(tuple(LENGTHS)) + Linear((2.0, 2.0, 2.0))
Z = np.array([0.3, -0.4, 0.1])

sum_of = eqx.filter_jit(lambda z, inputs, weights, n: weighted_sum(KERNEL, z, KERNEL.rows(inputs), weights, n))
vector_of = eqx.filter_jit(lambda z, inputs, n: kernel_vector(KERNEL, z, KERNEL.rows(inputs), CAPACITY, n))
product_of = eqx.filter_jit(triangular_product)
solution_of = eqx.filter_jit(triangular_solution)


def values(z, inputs):
    """k(z, z_i) and its slope in z."""
    near = np.exp(-0.5 * (((inputs - z) / LENGTHS) ** 2).sum(1))
    return near + inputs @ z / 4, near[:, None] * (inputs - z) / LENGTHS**2 + inputs / 4


class Padded:
    """Random data for the first `count` rows; `padding` in the others where it may not matter, zeros where it must."""

    def __init__(self, count, padding=0.0):
        rng = np.random.default_rng(count)
        self.count, self.known = jnp.int32(count), np.arange(CAPACITY) < count
        self.inputs = np.where(self.known[:, None], rng.normal(size=(CAPACITY, 3)), padding)
        self.weights = rng.normal(size=(2, CAPACITY)) * self.known
        lower = np.tril(rng.normal(size=(CAPACITY, CAPACITY)))
        lower[count:, :count] = 0
        self.lower = np.where(self.known[None, :], lower, padding * np.tril(np.ones_like(lower)))
        self.v = rng.normal(size=CAPACITY) * self.known


@pytest.mark.parametrize("count", COUNTS)
def test_weighted_sum_is_the_plain_sum_over_the_first_points(count):
    """To 1e-12."""
    data = Padded(count)
    got = sum_of(jnp.asarray(Z), jnp.asarray(data.inputs), jnp.asarray(data.weights), data.count)
    np.testing.assert_allclose(got, data.weights @ values(Z, data.inputs)[0], atol=1e-12)


@pytest.mark.parametrize("count", COUNTS)
def test_kernel_vector_is_the_kernel_at_the_first_points_and_zero_after(count):
    """To 1e-14, rounding of a squared distance."""
    data = Padded(count)
    got = vector_of(jnp.asarray(Z), jnp.asarray(data.inputs), data.count)
    np.testing.assert_allclose(got, values(Z, data.inputs)[0] * data.known, atol=1e-14)


@pytest.mark.parametrize("count", COUNTS)
def test_triangular_product_is_the_product(count):
    """To 1e-13."""
    data = Padded(count)
    got = product_of(jnp.asarray(data.lower), jnp.asarray(data.v), data.count)
    np.testing.assert_allclose(got, data.lower @ data.v, atol=1e-13)


@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("count", COUNTS)
def test_triangular_solution_is_the_solution(count, columns):
    """To 1e-12, of one right side or several, with rows of the identity for padding."""
    data, known = Padded(count), np.arange(CAPACITY) < count
    lower = np.where(known[:, None] & known[None], np.tril(data.lower) / CAPACITY, 0) + np.eye(CAPACITY)
    v = data.v if columns is None else np.outer(data.v, np.arange(1.0, columns + 1))
    got = solution_of(jnp.asarray(lower), jnp.asarray(v), data.count)
    np.testing.assert_allclose(got, np.linalg.solve(lower, v), atol=1e-12)


@pytest.mark.parametrize("count", COUNTS)
def test_what_stands_in_padding_changes_no_digit(count):
    plain, other = Padded(count), Padded(count, padding=1e3)
    for f, names in ((sum_of, ("inputs", "weights")), (vector_of, ("inputs",))):
        first, second = (
            f(jnp.asarray(Z), *(jnp.asarray(getattr(data, name)) for name in names), data.count)
            for data in (plain, other)
        )
        assert np.array_equal(first, second)
    first, second = (product_of(jnp.asarray(data.lower), jnp.asarray(data.v), data.count) for data in (plain, other))
    assert np.array_equal(first, second)


def test_many_queries_as_columns_are_answered_as_each_alone():
    """To 1e-13: a product of matrices may sum in another order."""
    data, queries = Padded(150), np.random.default_rng(1).normal(size=(3, 5))
    inputs, weights = jnp.asarray(data.inputs), jnp.asarray(data.weights)
    sums = sum_of(jnp.asarray(queries), inputs, weights, data.count)
    vectors = vector_of(jnp.asarray(queries), inputs, data.count)
    products = product_of(jnp.asarray(data.lower), vectors, data.count)
    for i in range(5):
        z = jnp.asarray(queries[:, i])
        np.testing.assert_allclose(sums[:, i], sum_of(z, inputs, weights, data.count), atol=1e-13)
        np.testing.assert_allclose(vectors[:, i], vector_of(z, inputs, data.count), atol=1e-13)
        alone = product_of(jnp.asarray(data.lower), vectors[:, i], data.count)
        np.testing.assert_allclose(products[:, i], alone, atol=1e-12)


@pytest.mark.parametrize("mode", [jax.jacrev, jax.jacfwd])
def test_gradients_are_those_of_the_dense_computation(mode):
    """Of all three, by both modes, at every count; to 1e-12."""

    @eqx.filter_jit
    def slopes(inputs, weights, lower, v, count):
        def all_three(z, v):
            rows = KERNEL.rows(inputs)
            return (
                weighted_sum(KERNEL, z, rows, weights, count),
                kernel_vector(KERNEL, z, rows, CAPACITY, count),
                triangular_product(lower, v, count),
            )

        return mode(all_three, argnums=(0, 1))(jnp.asarray(Z), v)

    for count in COUNTS:
        data = Padded(count)
        arrays = (jnp.asarray(part) for part in (data.inputs, data.weights, data.lower, data.v))
        (of_sum, _), (of_vector, _), (_, of_product) = slopes(*arrays, data.count)
        _, slope = values(Z, data.inputs)
        np.testing.assert_allclose(of_sum, data.weights @ slope, atol=1e-12)
        np.testing.assert_allclose(of_vector, slope * data.known[:, None], atol=1e-12)
        np.testing.assert_allclose(of_product[:, :count], data.lower[:, :count], atol=1e-12)


@pytest.mark.parametrize(("points", "size"), [(0, BLOCK), (1, BLOCK), (BLOCK, BLOCK), (BLOCK + 1, 2 * BLOCK)])
def test_padded_size_is_the_next_multiple_of_a_block(points, size):
    assert padded_size(points) == size


def test_valid_rows_are_those_before_the_count():
    np.testing.assert_array_equal(valid_rows(5, jnp.int32(2)), [1, 1, 0, 0, 0])
