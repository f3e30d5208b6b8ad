"""How well held-out data are foretold: as a plain computation says, and near the nominal shares for a right belief."""

from dataclasses import replace

import numpy as np
import pytest

from sbsrl.own.coverage import LEVELS, Coverage, held_out, measure, standardised
from sbsrl.own.knowledge import GPNumbers

NUMBERS = GPNumbers("stay", (2.0, 0.5), "squared-exponential", ((1.0, 2.0), (0.7, 0.9)), (0.1, 0.2))


def gram(kind, lengths, u, v):
    """Both kernels, written down once more."""
    r = np.sqrt(np.sum(((u[:, None] - v[None]) / np.array(lengths)) ** 2, axis=2))
    if kind == "squared-exponential":
        return np.exp(-(r**2) / 2)
    s = np.sqrt(5) * r
    return (1 + s + s**2 / 3) * np.exp(-s)


def each(numbers):
    """Length scales and noise of every output."""
    outputs = len(numbers.scale)
    lengths = numbers.length_scales * (outputs if len(numbers.length_scales) == 1 else 1)
    return lengths, numbers.noise * (outputs if len(numbers.noise) == 1 else 1)


def drawn(numbers, count, seed):
    """Inputs, and outcomes of functions from that Gaussian process, with noise."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-2, 2, (count, 2))
    columns = []
    for scale, lengths, noise in zip(numbers.scale, *each(numbers), strict=True):
        covariance = gram(numbers.kernel, lengths, inputs, inputs) + noise**2 * np.eye(count)
        columns.append(scale * np.linalg.cholesky(covariance) @ rng.normal(size=count))
    return inputs, np.stack(columns, axis=1)


@pytest.mark.parametrize(
    "numbers",
    [
        NUMBERS,
        replace(NUMBERS, kernel="matern-5/2"),
        replace(NUMBERS, length_scales=((1.0, 2.0),), noise=(0.1,)),
        replace(NUMBERS, noise=(0.1,)),
    ],
)
def test_deviations_are_those_of_a_plain_posterior(numbers):
    """Within 1e-8: by an inverse instead of a factor."""
    inputs, outcomes = drawn(numbers, 40, seed=1)
    known, asked = slice(0, 30), slice(30, 40)
    found = standardised(numbers, inputs[known], outcomes[known], inputs[asked], outcomes[asked])
    for j, (scale, lengths, noise) in enumerate(zip(numbers.scale, *each(numbers), strict=True)):
        inverse = np.linalg.inv(gram(numbers.kernel, lengths, inputs[known], inputs[known]) + noise**2 * np.eye(30))
        across = gram(numbers.kernel, lengths, inputs[known], inputs[asked])
        mean = scale * across.T @ inverse @ (outcomes[known, j] / scale)
        variance = scale**2 * (1 - np.diag(across.T @ inverse @ across) + noise**2)
        np.testing.assert_allclose(found[:, j], (outcomes[asked, j] - mean) / np.sqrt(variance), atol=1e-8)


def test_a_right_belief_covers_near_the_nominal_shares():
    """2 outputs of 60 points each: four deviations of a share are 0.18 at a half, and 0.08 at 0.95."""
    inputs, outcomes = drawn(NUMBERS, 300, seed=2)
    found = measure(NUMBERS, inputs, outcomes, np.arange(300) % 5 == 0)
    assert found.points == 60
    for level, share in zip(LEVELS, found.shares, strict=True):
        assert abs(share - level) < 4 * np.sqrt(level * (1 - level) / 120)
    assert len(found.stretch) == len(found.at_95) == 2
    assert all(0.75 < stretch < 1.3 for stretch in found.stretch)
    assert np.mean(found.at_95) == pytest.approx(found.shares[2], rel=1e-12)
    assert found.least == min(found.at_95)


def test_an_overconfident_belief_does_not_and_says_how_far_it_is_off():
    """All deviations are a fourth of what they should be, so that the stretch is four times as large."""
    inputs, outcomes = drawn(NUMBERS, 300, seed=2)
    out = np.arange(300) % 5 == 0
    right, wrong = (
        measure(numbers, inputs, outcomes, out) for numbers in (NUMBERS, replace(NUMBERS, scale=(0.5, 0.125)))
    )
    assert max(wrong.at_95) < 0.6
    assert wrong.stretch == pytest.approx(tuple(4 * each for each in right.stretch), rel=1e-9)
    timid = measure(replace(NUMBERS, scale=(20.0, 5.0)), inputs, outcomes, out)
    assert (timid.shares[0], timid.at_95, timid.least) == (1.0, (1.0, 1.0), 1.0)


def test_one_output_of_several_that_is_badly_covered_is_seen_although_the_pooled_share_is_fine():
    """Its deviations are a tenth of what they should be, those of the nine others twice."""
    right = replace(NUMBERS, scale=(1.0,) * 10, length_scales=((1.0, 2.0),), noise=(0.1,))
    inputs, outcomes = drawn(right, 100, seed=4)
    scales = [2.0] * 10
    scales[7] = 0.1
    found = measure(replace(right, scale=tuple(scales)), inputs, outcomes, np.arange(100) % 5 == 0)
    assert found.shares[2] >= 0.9
    assert found.least == found.at_95[7] < 0.4
    assert found.stretch[7] > 5
    others = [i for i in range(10) if i != 7]
    assert min(found.at_95[i] for i in others) >= 0.95
    assert max(found.stretch[i] for i in others) < 1


def test_too_long_length_scales_are_overconfident():
    inputs, outcomes = drawn(NUMBERS, 200, seed=3)
    smooth = replace(NUMBERS, length_scales=((10.0, 10.0),))
    found = measure(smooth, inputs, outcomes, np.arange(200) % 5 == 0)
    assert found.least <= found.shares[2] < 0.7


def test_shares_are_counted():
    """A belief that knows nothing about points far away: deviations are outcomes over sqrt(1 + noise^2)."""
    numbers = GPNumbers("stay", (1.0,), "squared-exponential", ((1.0,),), (0.75,))
    inputs = np.array([[0.0], [100.0], [200.0], [300.0], [400.0]])
    outcomes = 1.25 * np.array([[0.0], [0.5], [1.0], [-1.5], [3.0]])
    found = measure(numbers, inputs, outcomes, np.arange(5) > 0)
    assert found.shares == (0.25, 0.5, 0.75, 0.75)
    (wanted,) = found.stretch
    assert wanted == pytest.approx(np.quantile([0.5, 1.0, 1.5, 3.0], 0.95) / 1.959964, rel=1e-6)
    assert found == Coverage(found.shares, (0.75,), found.stretch, 4)
    assert found.least == 0.75


def test_shares_are_counted_for_each_output_and_the_worst_is_the_least():
    numbers = GPNumbers("stay", (1.0, 10.0), "squared-exponential", ((1.0,),), (0.75,))
    inputs = np.array([[0.0], [100.0], [200.0], [300.0], [400.0]])
    z = np.array([[0.0, 0.0], [2.5, 0.1], [1.0, -0.2], [-1.5, 0.3], [3.0, -4.0]])
    found = measure(numbers, inputs, 1.25 * z * [1.0, 10.0], np.arange(5) > 0)
    assert found.shares == (0.375, 0.5, 0.625, 0.75)
    assert (found.at_95, found.least, found.points) == ((0.5, 0.75), 0.5, 4)
    quantiles = np.quantile([[2.5, 1.0, 1.5, 3.0], [0.1, 0.2, 0.3, 4.0]], 0.95, axis=1)
    assert found.stretch == pytest.approx(tuple(quantiles / 1.959964), rel=1e-6)


def test_a_fifth_of_the_episodes_is_held_out_whole():
    inputs = np.random.default_rng(0).normal(size=(100, 2))
    lengths = [10] * 10
    rows = held_out(inputs, lengths, np.ones(2))["random"]
    assert rows.dtype == bool
    assert sorted(rows.reshape(10, 10).sum(axis=1)) == [0] * 8 + [10] * 2
    again = held_out(inputs, lengths, np.ones(2), seed=1)["random"]
    assert not np.array_equal(rows, again)


def test_of_few_episodes_stretches_of_rows_are_held_out():
    inputs = np.zeros((100, 2)) + np.arange(100)[:, None]
    rows = held_out(inputs, [60, 40], np.ones(2))["random"]
    assert rows.sum() == 20
    assert np.diff(np.flatnonzero(np.diff(np.concatenate([[0], rows, [0]])))).tolist() == [5, 20, 5, 20, 5, 20, 5]


@pytest.mark.parametrize("count", [10, 17, 200])
def test_about_a_fifth_is_held_out_however_rows_tie(count):
    """All inputs are the same or one of two, and nearly all rows are of one episode."""
    for inputs in (np.zeros((count, 2)), np.arange(count)[:, None] % 2 * np.ones((1, 2))):
        for out in held_out(inputs, [1, 1, count - 4, 1, 1], np.ones(2)).values():
            assert 0.1 <= out.mean() <= 0.35


def test_the_outermost_rows_are_those_farthest_from_the_middle_in_units_of_the_length_scales():
    inputs = np.stack([np.arange(20) - 9.5, 50 * np.cos(np.arange(20))], axis=1)
    rows = held_out(inputs, [20], np.array([1.0, 1e6]))["outermost"]
    assert np.flatnonzero(rows).tolist() == [0, 1, 18, 19]
