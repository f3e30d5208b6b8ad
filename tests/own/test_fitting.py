"""Numbers of a Gaussian process from data: near those that made the data, and sane where the data say little."""

import numpy as np
import pytest

from sbsrl.own.fitting import LEAST_NOISE, fit_numbers
from sbsrl.own.knowledge import GPNumbers


def drawn(kind, lengths, scales, noise, count=80, seed=0):
    """Inputs, and outcomes of functions from that Gaussian process with noise; a row of length scales per output."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-2, 2, (count, 2))
    columns = []
    for row, scale in zip(lengths, scales, strict=True):
        r2 = np.sum(((inputs[:, None] - inputs[None]) / np.array(row)) ** 2, axis=2)
        s = np.sqrt(5 * r2)
        gram = np.exp(-r2 / 2) if kind == "squared-exponential" else (1 + s + s**2 / 3) * np.exp(-s)
        columns.append(scale * np.linalg.cholesky(gram + noise**2 * np.eye(count)) @ rng.normal(size=count))
    return inputs, np.stack(columns, axis=1)


def within(factor, found, truth):
    np.testing.assert_array_less(np.abs(np.log(np.array(found) / np.array(truth))), np.log(factor))


LITTLE = np.full(2, 1e-6)


@pytest.fixture(scope="module")
def shared():
    """Two outputs of one kernel, whose second input matters less."""
    return fit_numbers(*drawn("squared-exponential", [(1.0, 2.5)] * 2, (3.0, 0.02), 0.1, count=100), LITTLE)


def test_the_numbers_that_made_the_data_are_found(shared):
    """Length scales, noise and sizes within a factor of 1.5."""
    assert shared.kernel == "squared-exponential"
    assert len(shared.length_scales) == len(shared.noise) == 1  # one kernel explains both outputs
    within(1.5, shared.length_scales[0], (1.0, 2.5))
    within(1.5, shared.noise, (0.1,))
    within(1.5, shared.scale, (3.0, 0.02))


def test_they_become_numbers_of_a_prior_with_a_mean(shared):
    assert shared.numbers("stay") == GPNumbers("stay", shared.scale, shared.kernel, shared.length_scales, shared.noise)


def test_outputs_that_differ_get_a_kernel_each():
    """Each within a factor of 2: one output changes ten times as fast as the other."""
    inputs, outcomes = drawn("squared-exponential", [(0.6, 4.0), (4.0, 0.6)], (1.0, 1.0), 0.05)
    found = fit_numbers(inputs, outcomes, LITTLE)
    assert len(found.length_scales) == len(found.noise) == 2
    within(2.0, found.length_scales, ((0.6, 4.0), (4.0, 0.6)))


def test_the_value_is_the_log_posterior(small):
    """By hand with numpy; 40 rows, so that more than half of what is computed with is padding."""
    (scale,), (lengths,), (noise,) = small.scale, small.length_scales, small.noise
    r2 = np.sum(((SMALL[0][:, None] - SMALL[0][None]) / np.array(lengths)) ** 2, axis=2)
    covariance = scale**2 * (np.exp(-r2 / 2) + noise**2 * np.eye(40))
    outcomes = SMALL[1][:, 0]
    _, logarithm = np.linalg.slogdet(2 * np.pi * covariance)
    likelihood = -0.5 * (outcomes @ np.linalg.solve(covariance, outcomes) + logarithm)
    spread, size = SMALL[0].std(axis=0), np.sqrt(np.mean(outcomes**2))
    hyper = np.sum((np.log(lengths / (spread * np.sqrt(2))) / 0.7) ** 2)
    hyper += (np.log(scale / size) / 0.5) ** 2 + (np.log(noise / 0.01) / 2) ** 2
    np.testing.assert_allclose(small.value, (likelihood - hyper / 2) / 40, rtol=1e-6)


SMALL = drawn("squared-exponential", [(1.0, 2.0)], (1.0,), 0.1, count=40)


@pytest.fixture(scope="module")
def small():
    return fit_numbers(*SMALL, LITTLE, seed=3)


def test_the_same_data_and_seed_give_the_same_numbers(small):
    assert fit_numbers(*SMALL, LITTLE, seed=3) == small


def test_units_of_inputs_and_outputs_only_change_units(small):
    """Within 2 %: searches end a little apart."""
    other = fit_numbers(SMALL[0] * [1e3, 1.0], SMALL[1] * 1e-4, LITTLE, seed=3)
    np.testing.assert_allclose(other.length_scales, np.array(small.length_scales) * [1e3, 1.0], rtol=0.02)
    np.testing.assert_allclose(other.scale, np.array(small.scale) * 1e-4, rtol=0.02)
    np.testing.assert_allclose(other.noise, small.noise, rtol=0.02)


def test_data_that_say_nothing_leave_sane_numbers():
    """An input that never changed, an output that never moved, no noise, three rows."""
    inputs = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]])
    outcomes = np.array([[0.1, 0.0], [0.2, 0.0], [0.3, 0.0]])
    found = fit_numbers(inputs, outcomes, np.array([1e-6, 0.5]))
    every = [*found.scale, *found.noise, *(length for row in found.length_scales for length in row)]
    assert np.all(np.isfinite(every))
    assert min(every) > 0
    assert min(found.noise) >= LEAST_NOISE * (1 - 1e-9)
    assert found.scale[1] < 1e-2 * found.scale[0]
    within(2.0, [row[1] for row in found.length_scales], 0.5 * np.sqrt(2))  # as the hyper-prior has it
