"""What is lost by letting a few centres stand for all data, against all data in numpy."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.centres import SHARE, Centres, KernelSum, LowRankVariance
from sbsrl.kernels import FiniteRank, Linear, SquaredExponential

NOISE, LENGTHS = 2.5e-3, np.array([1.5, 1.5, 4.5, 2.25])
KERNEL = SquaredExponential(tuple(LENGTHS))
CAPACITY, POINTS = 512, 450

grow = eqx.filter_jit(Centres.grow)
project = eqx.filter_jit(Centres.project)
low_rank = eqx.filter_jit(LowRankVariance.of)
evaluate = eqx.filter_jit(lambda function, z: function(z))


def kernel(u, v):
    return np.exp(-0.5 * (((u[:, None] - v[None]) / LENGTHS) ** 2).sum(-1))


def solve(matrix, right):
    solution = np.linalg.solve(matrix, right)
    return solution + np.linalg.solve(matrix, right - matrix @ solution)  # one step of refinement


@pytest.fixture(scope="module")
def inputs(swings):
    return np.concatenate([np.concatenate([e.states, e.actions], axis=1) for e in swings])


@pytest.fixture(scope="module")
def queries(inputs):
    """Near the data: 150 of them, moved by 2 % of their spread, as single precision has them."""
    rng = np.random.default_rng(0)
    near = inputs[::3] + 0.02 * inputs.std(axis=0) * rng.normal(size=(150, 4))
    return near.astype(np.float32)


@pytest.fixture(scope="module")
def weights(inputs, swung):
    """(K + sigma_w^2 I)^-1 r for any noise: r are the data (3 columns), or what 4 drawn functions miss of them (12)."""
    rng = np.random.default_rng(1)
    targets = np.asarray(swung.groups[0].posterior.targets[:POINTS])
    frequencies = rng.normal(size=(4, 4, 64)) / LENGTHS[None, :, None]
    phase = np.einsum("nd,mdf->mnf", inputs, frequencies)
    features = np.concatenate([np.cos(phase), np.sin(phase)], axis=2) / 8
    drawn = np.einsum("mnf,mfk->nmk", features, rng.normal(size=(4, 128, 3))).reshape(POINTS, 12)
    eps = rng.normal(size=(POINTS, 12))

    def of(noise):
        missing = np.tile(targets, 4) - drawn - noise * eps
        gram = kernel(inputs, inputs) + noise**2 * np.eye(POINTS)
        return solve(gram, np.concatenate([targets, missing], axis=1))

    return of


def padded(rows):
    return jnp.asarray(np.concatenate([rows, np.zeros((CAPACITY - len(rows), *rows.shape[1:]))]))


def test_a_smooth_trajectory_needs_few_centres(swung):
    """450 points of the pendulum, fewer than 250 centres (177 as this is written)."""
    assert 50 < swung.groups[0].centres.count < 250


def test_every_point_is_within_the_tolerance_of_the_span(swung, inputs):
    """d(z_i) <= 0.01 sigma_w^2, up to 1e-11 of rounding; the factor is that of the centres' Gram matrix."""
    centres = swung.groups[0].centres
    count = int(centres.count)
    chosen, factor = np.asarray(centres.inputs[:count]), np.asarray(centres.factor)
    np.testing.assert_allclose(factor[:count, :count] @ factor[:count, :count].T, kernel(chosen, chosen), atol=1e-12)
    np.testing.assert_array_equal(factor[count:], np.eye(CAPACITY)[count:])
    across = np.linalg.solve(factor[:count, :count], kernel(chosen, inputs))
    assert np.max(1 - np.sum(across**2, axis=0)) <= 0.01 * NOISE**2 + 1e-11


def test_centres_are_data_and_none_comes_twice(swung, inputs):
    centres = swung.groups[0].centres
    chosen = {tuple(z) for z in np.asarray(centres.inputs[: int(centres.count)])}
    assert len(chosen) == centres.count
    assert chosen <= {tuple(z) for z in inputs}


def test_projected_functions_differ_from_the_exact_ones_by_less_than_a_third_of_the_noise(
    swung, inputs, queries, weights
):
    """In single precision, against all points in double; root mean square 0.3 sigma_w, of the mean and of samples."""
    centres, exact = swung.groups[0].centres, weights(NOISE)
    projected = project(centres, KERNEL, padded(inputs), padded(exact))
    got = evaluate(KernelSum.at(centres, KERNEL, projected), jnp.asarray(queries.T))
    error = np.asarray(got).T - kernel(queries, inputs) @ exact
    assert np.sqrt(np.mean(error[:, :3] ** 2)) < 0.3 * NOISE
    assert np.sqrt(np.mean(error[:, 3:] ** 2)) < 0.3 * NOISE


def test_single_precision_cannot_destroy_a_function_however_small_the_noise(inputs, queries, weights):
    """With sigma_w = 1e-5 the root mean square error is below 0.01 of the prior's deviation.

    Coefficients of an unregularised projection would be 1e8 large here, and the error 10.
    """
    noise = 1e-5
    valid, nothing = padded(np.ones(POINTS)), Centres.empty(CAPACITY, 4)
    centres = grow(nothing, KERNEL, padded(inputs), jnp.asarray(SHARE * noise**2), valid)
    exact = weights(noise)
    projected = project(centres, KERNEL, padded(inputs), padded(exact))
    got = evaluate(KernelSum.at(centres, KERNEL, projected), jnp.asarray(queries.T))
    error = np.asarray(got).T - kernel(queries, inputs) @ exact
    assert np.sqrt(np.mean(error**2)) < 0.01


def test_the_variance_of_few_centres_is_the_exact_one_up_to_a_twentieth_of_a_nat(swung, inputs, queries):
    """Of information per output, ln(1 + sigma^2 / sigma_w^2), the most over points at, near and far from the data."""
    group = swung.groups[0]
    rng = np.random.default_rng(2)
    z = np.concatenate([inputs[::7], queries.astype(float), rng.normal(size=(100, 4)) * 3 * LENGTHS])
    k = kernel(inputs, z)
    exact = 1 - np.sum(k * solve(kernel(inputs, inputs) + NOISE**2 * np.eye(POINTS), k), axis=0)
    got = np.asarray(evaluate(low_rank(group.posterior, group.centres), jnp.asarray(z.T)))
    assert np.max(np.abs(np.log1p(got / NOISE**2) - np.log1p(exact / NOISE**2))) < 0.05
    assert np.all((got >= 0) & (got <= 1))


def monomials(z):
    x, y = z[0], z[1]
    return jnp.stack([jnp.ones_like(x), x, y, x * y, x**2, y**2])


@pytest.mark.parametrize(("finite", "rank"), [(Linear((1.0, 2.0, 0.5)), 3), (FiniteRank(monomials, 6), 6)])
def test_a_kernel_of_finite_rank_has_no_more_centres_than_its_rank(finite, rank):
    """40 points in general position span all of it; rows that are not valid are not used."""
    rng = np.random.default_rng(0)
    points = jnp.asarray(rng.normal(size=(40, 3)))
    valid = jnp.asarray(np.arange(40) < 39, float)
    centres = grow(Centres.empty(64, 3), finite, points, jnp.asarray(1e-8), valid)
    assert centres.count == rank
    assert tuple(points[39].tolist()) not in {tuple(z) for z in np.asarray(centres.inputs).tolist()}


def test_repeated_points_are_one_centre():
    points = jnp.asarray(np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 10, axis=0))
    centres = grow(Centres.empty(64, 3), Linear((1.0, 1.0, 1.0)), points, jnp.asarray(1e-8), jnp.ones(40))
    assert centres.count == 3
