"""The features of kernels: their suprema, how they are counted, and what is not counted."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, xlogy

from sbsrl import UserError
from sbsrl.kernels import Angles, Clip, FiniteRank, Linear, Matern, SquaredExponential, Tanh
from sbsrl.theory import features
from sbsrl.theory.features import STEP, Levels, expandable, feature_levels

BIN = math.exp(STEP)
"""The most by which one supremum is rounded up."""


def pair(z):
    return jnp.stack([jnp.cos(z[0]), jnp.sin(z[0])])


def taylor(n, u):
    """phi_n(u) = exp(-u^2/2) u^n / sqrt(n!), on the grid u for all n."""
    return np.exp(xlogy(n[:, None], u) - u**2 / 2 - gammaln(n[:, None] + 1) / 2)


def largest(scaled, count=400):
    """sup |phi_n| over |u| <= scaled for n = 0, 1, .., on a grid of 4001 points."""
    return taylor(np.arange(count), np.linspace(0, scaled, 4001)).max(axis=1)


def listed(levels):
    """The histogram as a list of suprema, largest first."""
    return np.repeat(levels.suprema, levels.counts.astype(int))


def assert_rounded_up(found, exact, factors=1):
    """Each supremum is at least the exact one, and at most so many bins larger; 1e-6 for the grid."""
    exact = np.sort(exact)[::-1][: len(found)]
    assert np.all(found >= exact * (1 - 1e-12))
    assert np.all(found <= exact * BIN**factors * (1 + 1e-6))


@pytest.mark.parametrize("ratio", [0.1, 1.0, 2.0, 5.5])
def test_the_suprema_of_the_squared_exponential_are_those_of_a_dense_grid(ratio):
    levels = feature_levels(SquaredExponential((0.7,)), (0.7 * ratio,))
    assert_rounded_up(listed(levels), largest(ratio))


def test_in_two_dimensions_they_are_all_products():
    levels = feature_levels(SquaredExponential((0.5, 2.0)), (1.0, 1.0))
    exact = np.outer(largest(2.0), largest(0.5)).ravel()
    large = listed(levels)[:300]
    assert_rounded_up(large, exact, factors=2)


@pytest.mark.parametrize("ratio", [0.3, 2.0, 5.0])
def test_the_counted_features_give_back_the_kernel(ratio):
    """sum_n phi_n(u) phi_n(v) = exp(-(u - v)^2 / 2), to 1e-12."""
    count = int(feature_levels(SquaredExponential((1.0,)), (ratio,)).counts.sum())
    u = np.linspace(0, ratio, 30)
    phi = taylor(np.arange(count), u)
    np.testing.assert_allclose(phi.T @ phi, np.exp(-((u[:, None] - u) ** 2) / 2), rtol=1e-12)


@pytest.mark.parametrize("depth", [1.0, 3.0, 90.0])
@pytest.mark.parametrize("ratio", [0.5, 3.0])
def test_the_rest_is_never_below_what_is_not_counted(monkeypatch, depth, ratio):
    """And at most twice as large: a geometric series that starts with the same term."""
    monkeypatch.setattr(features, "DEPTH", depth)
    levels = feature_levels(SquaredExponential((1.0,)), (ratio,))
    dropped = largest(ratio)[int(levels.counts.sum()) :].sum()
    assert dropped <= levels.rest * (1 + 1e-9) <= 2 * dropped


def test_the_rest_of_a_product_is_never_below_what_is_not_counted(monkeypatch):
    """Shallow histograms of two dimensions against all pairs; at most 1.5 times as large."""
    monkeypatch.setattr(features, "DEPTH", 2.0)
    levels = feature_levels(SquaredExponential((1.0, 0.5)), (1.0, 1.0))
    exact = largest(1.0), largest(2.0)
    kept = [int(feature_levels(SquaredExponential((s,)), (1.0,)).counts.sum()) for s in (1.0, 0.5)]
    dropped = exact[0].sum() * exact[1].sum() - exact[0][: kept[0]].sum() * exact[1][: kept[1]].sum()
    assert levels.counts.sum() == kept[0] * kept[1]
    assert dropped <= levels.rest <= 1.5 * dropped
    assert dropped > 0.1


def test_the_algebra_of_kernels_is_that_of_lists_of_suprema():
    """3 (SE Linear) + FiniteRank(2), by enumeration; three roundings at most."""
    kernel = 3.0 * (SquaredExponential((1.0,)) * Linear((0.5,))) + FiniteRank(pair, 2, bound=1.0)
    levels = feature_levels(kernel, (1.0,))
    exact = np.concatenate([math.sqrt(3) * largest(1.0) * 2, [1.0, 1.0]])
    large = listed(levels)[:20]
    assert_rounded_up(large, exact, factors=3)


def test_a_map_is_taken_at_its_own_limits():
    inner = SquaredExponential((1.0, 1.0))
    for feature_map, limits in ((Tanh((0.5, 2.0)), (0.5, 2.0)), (Clip((0.5, 2.0)), (0.5, 2.0))):
        mapped = feature_levels(inner.on(feature_map), (math.inf, math.inf))
        np.testing.assert_array_equal(mapped.counts, feature_levels(inner, limits).counts)
    angle = feature_levels(inner.on(Angles((0,), 1)), (math.inf,))
    np.testing.assert_array_equal(angle.counts, feature_levels(inner, (1.0, 1.0)).counts)


def test_linear_features_are_the_scaled_limits():
    assert_rounded_up(listed(feature_levels(Linear((1.0, 0.5, 4.0)), (1.0, 3.0, 2.0))), np.array([6.0, 1.0, 0.5]))
    assert feature_levels(Linear((1.0, 1.0)), (0.0, 0.0)).total == 0


def test_an_input_that_does_not_vary_adds_nothing():
    alone = feature_levels(SquaredExponential((0.5,)), (1.0,))
    beside = feature_levels(SquaredExponential((0.5, 1.0)), (1.0, 0.0))
    np.testing.assert_array_equal(beside.counts, alone.counts)
    assert beside.rest == alone.rest


def test_the_total_is_the_sum_over_all_features():
    levels = Levels(-100, np.array([2.0, 0.0, 1.0]), 0.25)
    assert levels.total == pytest.approx(2 * math.exp(0.5) + math.exp(0.49) + 0.25, rel=1e-12)


sides = st.floats(0.05, 4.0)


@given(r=sides, more=st.floats(1.0, 2.0), scale=sides)
@settings(max_examples=40, deadline=None)
def test_larger_boxes_and_shorter_scales_have_larger_features(r, more, scale):
    small, large = (feature_levels(SquaredExponential((scale,)), (side,)) for side in (r, r * more))
    assert small.total <= large.total * BIN
    shorter = feature_levels(SquaredExponential((scale / more,)), (r,))
    assert shorter.total == pytest.approx(large.total, rel=STEP)


@given(r=sides, scale=sides, z=st.floats(-1, 1))
@settings(max_examples=40, deadline=None)
def test_the_squares_sum_to_no_less_than_the_variance(r, scale, z):
    """sum_n a_n^2 >= k(z, z) = 1, since a_n >= |phi_n(z)|."""
    levels = feature_levels(SquaredExponential((scale, 1.0)), (r, abs(z)))
    assert levels.counts @ levels.suprema**2 >= 1 - 1e-12


def test_known_are_sums_products_and_maps_of_known_kernels():
    se, linear, rough = SquaredExponential((1.0,)), Linear((1.0,)), Matern((1.0,))
    assert expandable(2.0 * (se * linear + FiniteRank(pair, 2)).on(Clip((1.0,))))
    assert not any(expandable(k) for k in (rough, rough + se, se * rough, 2.0 * rough, rough.on(Clip((1.0,)))))


@pytest.mark.parametrize(
    ("kernel", "limits", "said"),
    [
        (
            Linear((1.0,)),
            (math.inf,),
            r"unbounded inputs .*\[inf\] has no finite bound; give finite limits, or compose",
        ),
        (SquaredExponential((1.0,)), (math.inf,), "has no finite bound"),
        (SquaredExponential((1.0,)), (-1.0,), "has no finite bound"),
        (SquaredExponential((1.0,)), (math.nan,), "has no finite bound"),
        (SquaredExponential((1.0, 1.0)), (1.0,), "has 2 inputs, and 1 limits were given"),
        (Linear((1.0, 1.0)), (1.0,), "has 2 inputs, and 1 limits were given"),
        (SquaredExponential((1e-3,)), (1.0,), "length scales of 0.001 of the half-width of the inputs are too short"),
        (FiniteRank(pair, 2), (1.0,), r"has no bound on .* give one"),
        (Matern((1.0,)), (1.0,), "no expansion of Matern"),
        (Matern((1.0,)) * Matern((1.0,)), (1.0,), "no expansion of Matern"),
    ],
)
def test_what_has_no_features_is_explained(kernel, limits, said):
    with pytest.raises(UserError, match=said) as error:
        feature_levels(kernel, limits)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("first", [-3, 0, 5])
def test_wider_bins_hold_the_same_features_rounded_up(first):
    levels = Levels(first, np.array([1.0, 0.0, 2.0, 3.0, 0.0, 4.0]), 0.5)
    wide = levels.widened()
    assert (wide.step, wide.rest, wide.counts.sum()) == (2 * levels.step, 0.5, levels.counts.sum())
    fine, coarse = (np.repeat(side.suprema, side.counts.astype(int)) for side in (levels, wide))
    assert np.all(coarse >= fine * (1 - 1e-12))
    assert np.all(coarse <= fine * math.exp(levels.step) * (1 + 1e-12))


def test_products_of_many_dimensions_keep_to_the_limits_and_lose_little(monkeypatch):
    """In wider bins there are as many features, and their sum comes out larger by at most twice a bin per dimension."""
    kernel, limits = SquaredExponential((1.0,) * 4), (3.0,) * 4
    fine = feature_levels(kernel, limits)
    features._taylor_product.cache_clear()
    monkeypatch.setattr(features, "MOST_BINS", 2000)
    monkeypatch.setattr(features, "MOST_PAIRS", 20_000)
    coarse = feature_levels(kernel, limits)
    features._taylor_product.cache_clear()
    assert len(coarse.counts) <= 2000 < len(fine.counts)
    assert fine.counts.sum() == coarse.counts.sum()
    assert fine.total <= coarse.total <= fine.total * math.exp(4 * 2 * coarse.step)


def test_more_features_than_a_number_can_count_are_refused():
    with pytest.raises(UserError, match="more features than can be counted; use longer length scales"):
        feature_levels(SquaredExponential((1.0,) * 100), (400.0,) * 100)
