"""The information gain: exact for given points, and bounds that hold for all."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbsrl import UserError
from sbsrl.kernels import Angles, Clip, FiniteRank, Linear, Matern, SquaredExponential, gram
from sbsrl.theory import data_gain, greedy_gain, information_gain, net_gain, rank_gain, tail_gain
from sbsrl.theory.features import Levels, feature_levels
from sbsrl.theory.information import GREEDY_SHARE

jitted_gram = jax.jit(gram)


def pair(z):
    return jnp.stack([jnp.cos(z[0]), jnp.sin(z[0])])


def matrix(kernel, points):
    return np.asarray(jitted_gram(kernel, jnp.asarray(points), jnp.asarray(points)))


def by_eigenvalues(kernel, points, noise):
    """1/2 sum ln(1 + lambda_i / sigma_w^2)."""
    return float(np.sum(np.log1p(np.maximum(np.linalg.eigvalsh(matrix(kernel, points)), 0) / noise**2)) / 2)


LINE = np.linspace(-1, 1, 200)[:, None]
SE = SquaredExponential((0.5,))


@pytest.mark.parametrize("noise", [1.0, 0.1, 0.01])
def test_the_gain_of_data_is_the_sum_over_eigenvalues(noise):
    points = np.random.default_rng(0).uniform(-1, 1, (30, 1))
    np.testing.assert_allclose(data_gain(matrix(SE, points), noise), by_eigenvalues(SE, points, noise), rtol=1e-9)
    assert data_gain(np.zeros((0, 0)), noise) == 0


def greedily(kernel, candidates, noise, count):
    """By trying every candidate in turn with a determinant."""
    K, chosen, gains = matrix(kernel, candidates), [], []
    for _ in range(count):
        tried = [data_gain(K[np.ix_([*chosen, c], [*chosen, c])], noise) for c in range(len(candidates))]
        chosen.append(int(np.argmax(tried)))
        gains.append(max(tried))
    return gains


@pytest.mark.parametrize("noise", [1.0, 0.05])
def test_the_greedy_gain_is_that_of_trying_all_candidates(noise):
    """To 1e-9; candidates may be chosen twice."""
    candidates = np.random.default_rng(1).uniform(-1, 1, (12, 2))
    for kernel in (SquaredExponential((0.5, 1.0)), Linear((1.0, 0.5)), Matern((1.0, 1.0), 0.5)):
        found = greedy_gain(kernel, jnp.asarray(candidates), noise, 8)
        np.testing.assert_allclose(found, greedily(kernel, candidates, noise, 8), rtol=1e-9)


@pytest.mark.parametrize("kernel", [SquaredExponential((0.5, 0.5)), Linear((1.0, 1.0)), Matern((0.3, 1.0))])
@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_the_greedy_gain_is_most_of_the_largest(kernel, noise):
    """Against all multisets of 3 out of 8 candidates."""
    candidates = np.random.default_rng(2).uniform(-1, 1, (8, 2))
    K = matrix(kernel, candidates)
    sets = itertools.combinations_with_replacement(range(8), 3)
    most = max(data_gain(K[np.ix_(chosen, chosen)], noise) for chosen in sets)
    greedy = greedy_gain(kernel, jnp.asarray(candidates), noise, 3)[-1]
    assert most * GREEDY_SHARE <= greedy <= most * (1 + 1e-9)


@pytest.mark.parametrize(("noise", "expected"), [(1.0, 10.6), (0.1, 32.3), (0.01, 62.6), (0.001, 100.4)])
def test_the_greedy_gains_of_the_notes(noise, expected):
    """Squared exponential, l = 0.5 on [-1, 1], 100 points, divided by 1 - 1/e; to the digit that is given."""
    found = greedy_gain(SE, jnp.asarray(LINE), noise, 100)[-1] / GREEDY_SHARE
    assert found == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("noise", [1.0, 0.1, 0.001])
@pytest.mark.parametrize("rank", [1, 3])
def test_the_rank_bound_is_attained_by_points_along_orthogonal_axes(rank, noise):
    """N / p points on each of p axes have p equal eigenvalues N / p; to 1e-9."""
    points = np.tile(np.eye(rank), (10, 1))
    exact = by_eigenvalues(Linear((1.0,) * rank), points, noise)
    assert rank_gain(rank, 1.0, noise, 10 * rank) == pytest.approx(exact, rel=1e-9)


BOUNDED = [
    (Linear((1.0, 0.5)), (1.0, 1.0)),
    (FiniteRank(pair, 2, 1.0), (1.0, 1.0)),
    (SquaredExponential((0.5, 1.0)), (1.0, 1.0)),
    (Matern((1.0, 0.5), 0.5), (1.0, 1.0)),
    (Matern((1.0, 1.0), 2.5), (1.0, 1.0)),
    (2.0 * SquaredExponential((1.0, 1.0)) * Linear((1.0, 1.0)), (1.0, 1.0)),
    (Matern((1.0, 1.0)) + 0.5 * Linear((1.0, 1.0)), (1.0, 1.0)),
    (SquaredExponential((1.0, 1.0, 1.0)).on(Angles((0,), 2)), (math.inf, 1.0)),
]


@pytest.mark.parametrize(("kernel", "limits"), BOUNDED, ids=[kernel.describe() for kernel, _ in BOUNDED])
@given(
    seed=st.integers(0, 10**6), count=st.sampled_from([1, 5, 40]), noise=st.floats(1e-3, 3), spread=st.floats(0.05, 1)
)
@settings(max_examples=5, deadline=None)
def test_the_bound_is_never_below_the_gain_of_any_points(kernel, limits, seed, count, noise, spread):
    points = np.random.default_rng(seed).uniform(-1, 1, (count, 2)) * spread
    assert information_gain(kernel, limits, noise)(count) >= by_eigenvalues(kernel, points, noise) * (1 - 1e-9)


@pytest.mark.parametrize("kernel", [SE, Matern((0.5,), 0.5), Matern((0.5,), 1.5), Linear((0.5,)), 4.0 * SE])
@pytest.mark.parametrize("noise", [1.0, 0.1, 0.01])
def test_the_bound_is_never_below_the_greedy_gain(kernel, noise):
    """Of 1, 2, .., 100 points."""
    greedy, gain = greedy_gain(kernel, jnp.asarray(LINE), noise, 100), information_gain(kernel, (1.0,), noise)
    assert np.all([gain(i + 1) >= found * (1 - 1e-9) for i, found in enumerate(greedy)])


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_both_bounds_of_a_squared_exponential_hold_and_features_are_better(noise):
    levels = feature_levels(SE, (1.0,))
    greedy = greedy_gain(SE, jnp.asarray(LINE), noise, 100)[-1]
    assert greedy <= tail_gain(levels, 1.0, noise, 100) <= net_gain(SE, (1.0,), noise, 100)


def test_the_bound_by_features_takes_the_best_number_of_them():
    """Against a search over p with the suprema 1, 0.1, 0.01 and a rest of 1e-3; to 2 % for the bins."""
    a, rest, noise, points = np.array([1.0, 0.1, 0.01]), 1e-3, 0.1, 50
    exact = math.inf
    for p in (1, 2, 3):
        left = np.sum(a[p:] ** 2) + rest**2
        head = p / 2 * math.log(1 + points * 1.5 / (p * noise**2))
        exact = min(exact, head + points * left / (2 * noise**2))
    levels = feature_levels(Linear((1.0, 10.0, 100.0)), (1.0,) * 3)._replace(rest=rest)
    assert exact * (1 - 1e-9) <= tail_gain(levels, 1.5, noise, points) <= 1.02 * exact
    assert tail_gain(Levels(0, np.zeros(1), rest), 1.5, noise, points) == pytest.approx(50 * 1e-6 / 0.02)


@pytest.mark.parametrize("kernel", [Matern((1.0, 0.5), 0.5), Matern((0.7, 0.7), 1.5)])
def test_what_a_net_leaves_unexplained_is_what_the_bound_says(kernel):
    """The variance given the values on 8 x 8 cell centres is at most the increment to the nearest, squared."""
    side = (np.arange(8) + 0.5) / 4 - 1
    net = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    points = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    cross = np.asarray(jitted_gram(kernel, jnp.asarray(points), jnp.asarray(net)))
    left = 1 - np.sum(np.linalg.solve(matrix(kernel, net), cross.T) * cross.T, axis=0)
    corner = np.array([[0.0, 0.0], [0.125, 0.125]])
    assert left.max() <= 1 - matrix(kernel, corner)[0, 1] ** 2


@pytest.mark.parametrize(("kernel", "limits"), BOUNDED, ids=[kernel.describe() for kernel, _ in BOUNDED])
@given(points=st.floats(1, 1e6), more=st.floats(1, 100), noise=st.floats(1e-3, 1), less=st.floats(0.1, 1))
@settings(max_examples=5, deadline=None)
def test_more_points_and_less_noise_give_more_information(kernel, limits, points, more, noise, less):
    gain = information_gain(kernel, limits, noise)
    assert gain(points) <= gain(points * more) * (1 + 1e-9)
    assert gain(points) <= information_gain(kernel, limits, noise * less)(points) * (1 + 1e-9)


@pytest.mark.parametrize(("kernel", "limits"), BOUNDED, ids=[kernel.describe() for kernel, _ in BOUNDED])
def test_astronomically_many_points_do_not_overflow(kernel, limits):
    """And inform less each: gamma_N / N falls."""
    gain = information_gain(kernel, limits, 1e-3)
    assert 0 < gain(1e30) / 1e30 < gain(1e10) / 1e10 < gain(1)
    assert gain(0) == 0


def test_a_net_in_many_dimensions_does_not_overflow():
    assert net_gain(Matern((1.0,) * 40), (1.0,) * 40, 0.1, 1e6) == pytest.approx(1e6 / 2 * math.log(101), rel=1e-9)


@given(variance=st.floats(0.01, 100), noise=st.floats(0.01, 1), points=st.floats(1, 1e5))
@settings(max_examples=20, deadline=None)
def test_a_multiple_of_a_kernel_is_the_same_kernel_with_less_noise(variance, noise, points):
    scaled = information_gain(variance * SE, (1.0,), noise * math.sqrt(variance))(points)
    assert scaled == pytest.approx(information_gain(SE, (1.0,), noise)(points), rel=1e-9)


def test_a_sum_gains_no_more_than_both_and_a_map_is_taken_at_its_limits():
    rough, linear = Matern((1.0,)), Linear((1.0,))
    both = information_gain(rough + linear, (1.0,), 0.1)(50)
    assert both == information_gain(rough, (1.0,), 0.1)(50) + information_gain(linear, (1.0,), 0.1)(50)
    clipped = information_gain(SE.on(Clip((0.5,))), (math.inf,), 0.1)(50)
    assert clipped == information_gain(SE, (0.5,), 0.1)(50)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: information_gain(SE, (1.0,), 0.0), "sigma_w=0 must be positive"),
        (lambda: information_gain(Linear((1.0,)), (math.inf,), 0.1), "has no known bound on .* give finite limits"),
        (lambda: information_gain(FiniteRank(pair, 2), (1.0,), 0.1), "has no known bound .* a bound of the features"),
        (lambda: information_gain(Matern((1.0,)) * Matern((1.0,)), (1.0,), 0.1), "no bound on the information gain of"),
        (lambda: information_gain(Matern((1.0,)), (math.inf,), 0.1), "has no finite bound"),
        (lambda: information_gain(SE, (math.inf,), 0.1), "has no finite bound"),
        (lambda: information_gain(SE, (1.0,), 0.1)(-1.0), "the number of points=-1 must be finite and at least 0"),
        (lambda: rank_gain(0, 1.0, 0.1, 10), "the rank=0 must be positive"),
        (lambda: rank_gain(1, 1.0, 0.0, 10), "sigma_w=0 must be positive"),
        (lambda: tail_gain(feature_levels(SE, (1.0,)), 1.0, 0.0, 10), "sigma_w=0 must be positive"),
        (lambda: net_gain(SE, (1.0,), 0.0, 10), "sigma_w=0 must be positive"),
        (lambda: net_gain(Matern((1.0, 1.0)), (1.0,), 0.1, 10), "has 2 inputs, and 1 limits were given"),
        (lambda: greedy_gain(SE, jnp.zeros((2, 1)), 0.0, 10), "sigma_w=0 must be positive"),
        (lambda: greedy_gain(SE, jnp.zeros((2, 1)), 1.0, 0), "the number of points=0 must be a whole number"),
        (lambda: data_gain(np.eye(2), 0.0), "sigma_w=0 must be positive"),
        (lambda: data_gain(np.diag([1.0, -3.0]), 1.0), "the Gram matrix is not positive semi-definite"),
    ],
)
def test_what_makes_no_sense_is_explained(call, said):
    with pytest.raises(UserError, match=said) as error:
        call()
    assert "\n" not in str(error.value)


def test_where_features_are_too_many_nets_are_left():
    short = SquaredExponential((1e-3,))
    assert information_gain(short, (1.0,), 0.1)(100) == net_gain(short, (1.0,), 0.1, 100)


def test_where_even_the_coarsest_net_has_too_many_points_every_point_counts_as_new():
    huge = Matern((1e-30,) * 50)
    assert net_gain(huge, (1e30,) * 50, 0.5, 10) == pytest.approx(5 * math.log1p(4))
