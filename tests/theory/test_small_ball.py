"""The small-ball exponent: exact where it can be, and nowhere below the truth."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.optimize import minimize
from scipy.special import erf, gammaln, softmax
from scipy.stats import chi2, norm

from sbsrl import UserError
from sbsrl.kernels import Angles, Clip, FiniteRank, Linear, Matern, SquaredExponential, Tanh
from sbsrl.theory import ball_exponent, box_exponent, chaining_exponent, estimate_small_ball, small_ball
from sbsrl.theory.features import Levels, feature_levels
from sbsrl.theory.modulus import increment
from sbsrl.theory.small_ball import MOST_CELLS, _cheapest, levels_exponent, small_ball_curve, two_sided


def pair(z):
    return jnp.stack([jnp.cos(z[0]), jnp.sin(z[0])])


# --- One normal variable, balls and boxes: exact ---


def test_two_sided_has_all_digits_at_both_ends():
    """-ln P(|xi| < c): to 1e-12 where c is moderate, by the density at 0 for small c and by the tail for large c."""
    c = np.linspace(0.1, 5, 50)
    np.testing.assert_allclose(two_sided(c), -np.log(1 - 2 * norm.sf(c)), rtol=1e-9)
    np.testing.assert_allclose(two_sided(1e-200), -math.log(1e-200 * math.sqrt(2 / math.pi)), rtol=1e-14)
    np.testing.assert_allclose(two_sided(np.array([12.0, 30.0])), 2 * norm.sf([12.0, 30.0]), rtol=1e-12)
    assert two_sided(0.0) == math.inf


@pytest.mark.parametrize("rank", [1, 2, 3, 7, 50])
def test_the_exponent_of_a_ball_is_that_of_chi_squared(rank):
    """To 1e-10, for probabilities from 1e-10 to 1 - 1e-10."""
    radius = np.sqrt(chi2.ppf([1e-10, 1e-3, 0.5, 0.99], rank))
    np.testing.assert_allclose([ball_exponent(rank, r) for r in radius], -chi2.logcdf(radius**2, rank), rtol=1e-10)
    far = math.sqrt(chi2.isf(1e-10, rank))
    np.testing.assert_allclose(ball_exponent(rank, far), 1e-10, rtol=1e-8)


@pytest.mark.parametrize("rank", [1, 4, 100])
@pytest.mark.parametrize("radius", [1e-3, 1e-9, 1e-150])
def test_a_tiny_ball_has_the_volume_times_the_density_at_its_centre(rank, radius):
    """P = pi^(p/2) r^p / Gamma(p/2 + 1) (2 pi)^(-p/2), smaller by at most a factor exp(-r^2 / 2)."""
    log = rank * math.log(radius) - rank / 2 * math.log(2) - gammaln(rank / 2 + 1)
    assert -log - 1e-9 <= ball_exponent(rank, radius) <= -log + radius**2 / 2 + 1e-9


def two_by_quadrature(a, b, zeta):
    """P(a |v| + b |w| < zeta), the integral over the variable of the smaller side."""
    a, b = max(a, b), min(a, b)
    inner = lambda x: 2 * norm.pdf(x) * erf((zeta - b * x) / (a * math.sqrt(2)))  # noqa: E731
    return integrate.quad(inner, 0, min(zeta / b, 40), epsabs=0, epsrel=1e-12, limit=200)[0]


def three_by_quadrature(a, b, c, zeta):
    outer = lambda x: 2 * norm.pdf(x) * two_by_quadrature(b, c, zeta - a * x)  # noqa: E731
    return integrate.quad(outer, 0, zeta / a, epsabs=0, epsrel=1e-10)[0]


@pytest.mark.parametrize("zeta", [1e-6, 0.1, 1.0, 4.0, 20.0])
def test_the_exponent_of_a_box_of_one_side_is_that_of_a_normal_variable(zeta):
    np.testing.assert_allclose(box_exponent([2.0], zeta), two_sided(zeta / 2), rtol=1e-14)
    assert box_exponent([0.0, 2.0, 0.0], zeta) == box_exponent([2.0], zeta)
    assert box_exponent([0.0], zeta) == 0


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 0.3), (3.0, 1e-3)])
@pytest.mark.parametrize("zeta", [1e-5, 0.1, 1.0, 3.0])
def test_the_exponent_of_a_box_of_two_sides_is_the_integral(a, b, zeta):
    """To 1e-10 of the probability."""
    np.testing.assert_allclose(math.exp(-box_exponent([a, b], zeta)), two_by_quadrature(a, b, zeta), rtol=1e-10)


@pytest.mark.parametrize("zeta", [1e-3, 0.5, 3.0])
def test_the_exponent_of_a_box_of_three_sides_is_the_integral(zeta):
    """To 1e-8 of the probability."""
    exact = three_by_quadrature(1.0, 0.5, 2.0, zeta)
    np.testing.assert_allclose(math.exp(-box_exponent([1.0, 0.5, 2.0], zeta)), exact, rtol=1e-8)


@pytest.mark.parametrize("sides", [5, 20])
def test_the_exponent_of_a_box_agrees_with_draws(sides):
    """4 standard errors of 200000 draws, at three quantiles."""
    rng = np.random.default_rng(0)
    a = rng.uniform(0.1, 2, sides)
    draws = np.abs(rng.standard_normal((200_000, sides))) @ a
    for quantile in (0.01, 0.3, 0.95):
        zeta = np.quantile(draws, quantile)
        error = math.sqrt(quantile * (1 - quantile) / len(draws))
        assert abs(math.exp(-box_exponent(a.tolist(), zeta)) - quantile) <= 4 * error


@pytest.mark.parametrize("sides", [2, 3, 10, 20, 60])
@pytest.mark.parametrize("zeta", [1e-6, 1e-7, 1e-8, 1e-10, 1e-20, 1e-100])
def test_a_tiny_box_has_the_volume_times_the_density_at_its_centre(sides, zeta):
    """P = zeta^p / p! prod_i sqrt(2 / pi) / a_i, smaller by at most exp(-(zeta / min a)^2 / 2)."""
    a = np.linspace(0.5, 2, sides)
    log = sides * math.log(zeta) - gammaln(sides + 1) + np.sum(np.log(math.sqrt(2 / math.pi) / a))
    np.testing.assert_allclose(box_exponent(a.tolist(), zeta), -log, rtol=1e-9)


def test_a_box_so_large_that_nothing_leaves_it_costs_nothing():
    """And never less than nothing, whatever the rounding; to 1e-12."""
    for sides in (2, 5, 20):
        assert 0 <= box_exponent([1.0] * sides, 100.0) < 1e-12


scales = st.lists(st.floats(0.05, 5.0), min_size=1, max_size=6)


@given(a=scales, zeta=st.floats(1e-6, 20), more=st.floats(1.0, 3.0), factor=st.floats(0.01, 100))
@settings(max_examples=30, deadline=None)
def test_the_exponent_of_a_box_falls_with_zeta_grows_with_its_sides_and_knows_no_units(a, zeta, more, factor):
    phi = box_exponent(a, zeta)
    slack = 1e-9 * (1 + phi)
    assert box_exponent(a, zeta * more) <= phi + slack
    assert box_exponent([*a, 0.5], zeta) >= phi - slack
    assert box_exponent([v * factor for v in a], zeta * factor) == pytest.approx(phi, rel=1e-9, abs=1e-12)


@given(a=scales, zeta=st.floats(1e-3, 10))
@settings(max_examples=30, deadline=None)
def test_a_box_lies_between_the_two_balls(a, zeta):
    """|a . |w|| <= |a| |w|, and a . |w| >= min a |w|."""
    phi, slack = box_exponent(a, zeta), 1e-9
    assert phi <= ball_exponent(len(a), zeta / float(np.linalg.norm(a))) * (1 + slack) + slack
    assert phi >= ball_exponent(len(a), zeta / min(a)) * (1 - slack) - slack


# --- The bound by features ---

TAYLOR = [
    (1, 1.0, [5.8, 13.3, 21.7, 32.4]),
    (1, 0.5, [18.8, 35.1, 52.3, 73.3]),
    (2, 2.0, [11.2, 28.9, 52.3, 86.5]),
    (2, 1.0, [62.3, 123.9, 198.2]),
    (3, 2.0, [56.7, 138.8, 255.2, 436.4]),
    (4, 1.0, [6498, 11717, 18388, 28179]),
]
"""Dimension, length scale, and the bound at zeta = 1, 0.3, 0.1, 0.03, computed elsewhere from unrounded features."""


@pytest.mark.parametrize(("d", "scale", "expected"), TAYLOR)
def test_the_bound_by_features_reproduces_the_table(d, scale, expected):
    """To 1.5 %, of which bins and the share of the rest are the most."""
    levels = feature_levels(SquaredExponential((scale,) * d), (1.0,) * d)
    found = [levels_exponent(levels, zeta) for zeta in (1, 0.3, 0.1, 0.03)[: len(expected)]]
    np.testing.assert_allclose(found, expected, rtol=0.015)


def histogram(suprema):
    return feature_levels(Linear(tuple(1 / a for a in suprema)), (1.0,) * len(suprema))


@given(a=st.lists(st.floats(0.05, 5.0), min_size=1, max_size=8), zeta=st.floats(1e-6, 30))
@settings(max_examples=30, deadline=None)
def test_the_bound_by_features_is_never_below_the_exact_exponent(a, zeta):
    """1e-12 for the rounding of exponents near 0."""
    assert levels_exponent(histogram(a), zeta) >= box_exponent(a, zeta) - 1e-12


@pytest.mark.parametrize("zeta", [0.01, 1.0, 4.0])
def test_the_bound_by_features_is_the_minimum(zeta):
    """Against a search over how zeta is shared among two features of unequal size; to 1 %."""
    a, b = 1.0, 0.2
    shares = np.linspace(1e-4, 1 - 1e-4, 20_001)
    searched = np.min(two_sided(shares * zeta / a) + two_sided((1 - shares) * zeta / b))
    found = levels_exponent(histogram([a, b]), zeta)
    assert searched * (1 - 1e-6) <= found <= searched * 1.03 + 0.01


@pytest.mark.parametrize("zeta", [1e-150, 1e3])
def test_the_bound_by_features_uses_up_zeta_beyond_its_table(zeta):
    """One feature of supremum 1 is exact at every zeta."""
    np.testing.assert_allclose(levels_exponent(Levels(0, np.ones(1), 0.0), zeta), two_sided(zeta), rtol=1e-12)


def test_what_is_not_counted_costs_as_much_as_markov_says():
    """(1 - 0.001) zeta for what is counted, and -ln(1 - sqrt(2 / pi) rest / (0.001 zeta)) for the rest."""
    levels = Levels(0, np.ones(1), 1e-7)
    expected = two_sided(0.999) - math.log1p(-math.sqrt(2 / math.pi) * 1e-4)
    np.testing.assert_allclose(levels_exponent(levels, 1.0), expected, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_bound_by_features_grows_like_a_power_of_the_logarithm(d):
    """(ln 1/zeta)^(1 + d) is the rate: between 1e-16 and 1e-28 the power is below 1 + d, and within a third of it."""
    levels = feature_levels(SquaredExponential((1.0,) * d), (1.0,) * d)
    low, high = (levels_exponent(levels, zeta) for zeta in (1e-16, 1e-28))
    power = math.log(high / low) / math.log(28 / 16)
    assert (1 + d) * 2 / 3 - 0.1 < power < 1 + d


def test_too_small_a_zeta_is_refused_and_not_resolved_wrongly():
    levels = feature_levels(SquaredExponential((1.0,)), (1.0,))
    with pytest.raises(UserError, match="zeta=1e-40 is smaller than the expansion in features resolves; use a larger"):
        levels_exponent(levels, 1e-40)


# --- The bound by chaining ---


@pytest.mark.parametrize(
    "kernel", [Matern((1.0,), 0.5), Matern((1.0,), 1.5), Matern((0.5,), 2.5), SquaredExponential((1.0,))]
)
@pytest.mark.parametrize("zeta", [2.0, 1.0, 0.5])
def test_chaining_is_never_below_the_simulated_exponent(kernel, zeta):
    """On 100 points, where the exponent is a little smaller; less 3 standard errors."""
    simulated = estimate_small_ball(kernel, (1.0,), zeta, points=100, chains=300)
    assert chaining_exponent(kernel, (1.0,), zeta) >= simulated.value - 3 * simulated.error


@pytest.mark.parametrize(("nu", "power"), [(0.5, 2), (1.5, 1), (2.5, 1)])
def test_chaining_grows_at_the_rate_of_its_increments(nu, power):
    """zeta^(-d / min(nu, 1)); the power is found to 5 % between 1e-3 and 1e-4."""
    few, many = (chaining_exponent(Matern((1.0,), nu), (1.0,), zeta) for zeta in (1e-3, 1e-4))
    assert math.log10(many / few) == pytest.approx(power, rel=0.05)
    flat = [chaining_exponent(Matern((1.0, 1.0), nu), (1.0, 1.0), zeta) for zeta in (1e-3, 1e-4)]
    assert math.log10(flat[1] / flat[0]) == pytest.approx(2 * power, rel=0.05)


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_chaining_shares_zeta_among_its_levels_in_the_best_way(nu):
    """Against a general minimiser over the shares of 20 levels, from each of 8 first nets; to 1 %."""
    kernel, zeta, best = Matern((1.0,), nu), 1.0, math.inf
    for first in range(8):
        levels = np.arange(first + 1, first + 21)
        deviations = np.array([1.0, *(increment(kernel, 2.0**-k) for k in levels)])
        counts = 2.0 ** np.array([first, *levels])

        def cost(v, scale=zeta / deviations, counts=counts):
            share = softmax(v)
            x = share * scale
            slope = -counts * scale * 2 * norm.pdf(x) / (1 - 2 * norm.sf(x))
            return -counts @ np.log1p(-2 * norm.sf(x)), share * (slope - share @ slope)

        found = minimize(cost, np.append(2.0, -0.3 * np.arange(20)), jac=True, method="L-BFGS-B")
        best = min(best, found.fun)
    assert chaining_exponent(kernel, (1.0,), zeta) == pytest.approx(best, rel=0.01)


def test_inputs_that_do_not_vary_are_no_dimensions_of_a_chain():
    kernel = Matern((1.0, 0.3), 1.5)
    assert chaining_exponent(kernel, (1.0, 0.0), 0.5) == chaining_exponent(Matern((1.0,), 1.5), (1.0,), 0.5)
    assert chaining_exponent(kernel, (0.0, 0.0), 0.5) == pytest.approx(float(two_sided(0.5)))


def test_chains_that_would_need_too_many_cells_have_no_bound_and_do_not_overflow():
    assert chaining_exponent(Matern((1.0,) * 40, 0.5), (1.0,) * 40, 1e-6) == math.inf
    assert 0 < math.log2(chaining_exponent(Matern((1.0,) * 8, 0.5), (1.0,) * 8, 1e-6)) < MOST_CELLS


# --- Any kernel ---


@pytest.mark.parametrize(("d", "scale"), [(1, 1.0), (1, 0.5), (2, 2.0)])
@pytest.mark.parametrize("zeta", [1.0, 0.3, 0.1])
def test_the_bound_is_never_below_the_simulated_exponent(d, scale, zeta):
    """Less 3 standard errors; points on the axes of a grid."""
    kernel = SquaredExponential((scale,) * d)
    simulated = estimate_small_ball(kernel, (1.0,) * d, zeta, points=100, chains=300)
    assert small_ball(kernel, (1.0,) * d, zeta).value >= simulated.value - 3 * simulated.error


def test_it_is_exact_for_a_linear_kernel_and_the_smallest_bound_for_others():
    assert small_ball(Linear((2.0, 0.5)), (1.0, 1.0), 0.7) == (box_exponent([0.5, 2.0], 0.7), "exact")
    kernel, limits = SquaredExponential((1.0,)), (1.0,)
    for zeta in (1.0, 0.1):
        features = levels_exponent(feature_levels(kernel, limits), zeta)
        chained = chaining_exponent(kernel, limits, zeta)
        found = small_ball(kernel, limits, zeta)
        assert found == min((features, "features"), (chained, "chaining"))
    assert small_ball(kernel, limits, 1.0).method == "chaining"
    assert small_ball(kernel, limits, 0.1).method == "features"


def test_few_bounded_features_are_as_good_as_a_ball():
    """|phi(z)|^2 <= 1 in 2 dimensions: sup |f| = |w| exactly, on a full circle."""
    found = small_ball(FiniteRank(pair, 2, bound=1.0), (math.inf,), 0.3)
    assert found == (ball_exponent(2, 0.3), "rank")
    np.testing.assert_allclose(found.value, -math.log(-math.expm1(-(0.3**2) / 2)), rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [SquaredExponential((0.7,)), Matern((1.0,), 2.5), Linear((1.0,)), FiniteRank(pair, 2, bound=1.0)]
)
@given(variance=st.floats(1e-4, 1e4), zeta=st.floats(0.05, 3.0))
@settings(max_examples=6, deadline=None)
def test_a_multiple_of_a_kernel_is_the_same_kernel_in_other_units(kernel, variance, zeta):
    scaled = small_ball(variance * kernel, (1.0,), zeta * math.sqrt(variance))
    assert scaled.value == pytest.approx(small_ball(kernel, (1.0,), zeta).value, rel=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential((0.7,)),
        Matern((1.0,), 0.5),
        Linear((0.3,)),
        SquaredExponential((1.0,)) * Linear((1.0,)),
    ],
)
@given(zeta=st.floats(0.02, 3.0), more=st.floats(1.0, 2.0))
@settings(max_examples=6, deadline=None)
def test_the_exponent_falls_as_zeta_grows(kernel, zeta, more):
    """To 1e-6, to which the minimum is found."""
    less, phi = (small_ball(kernel, (1.0,), z).value for z in (zeta * more, zeta))
    assert less <= phi * (1 + 1e-6) + 1e-9


@given(r=st.floats(0.1, 2.0), more=st.floats(1.0, 2.0), zeta=st.floats(0.1, 2.0))
@settings(max_examples=6, deadline=None)
def test_the_exponent_grows_with_the_box(r, more, zeta):
    """To 1 % for the bins."""
    for kernel in (SquaredExponential((1.0,)), Linear((1.0,)), Matern((1.0,))):
        small, large = (small_ball(kernel, (side,), zeta).value for side in (r, r * more))
        assert small <= 1.01 * large + 1e-9


@pytest.mark.parametrize("zeta", [2.0, 0.5])
def test_a_sum_costs_no_more_than_any_way_to_share_zeta_and_no_less_than_a_part(zeta):
    """1 % for the search; one part alone is smaller by Anderson's inequality, here where it is exact."""
    rough, linear = Matern((1.0,), 1.5), Linear((1.0,))
    found = small_ball(rough + linear, (1.0,), zeta)
    shared = [
        small_ball(rough, (1.0,), share * zeta).value + small_ball(linear, (1.0,), (1 - share) * zeta).value
        for share in np.linspace(0.1, 0.9, 9)
    ]
    assert found.method == "split"
    assert found.value <= 1.01 * min(shared)
    assert found.value >= small_ball(linear, (1.0,), zeta).value


def test_a_map_is_taken_at_its_own_limits():
    kernel = SquaredExponential((1.0, 1.0))
    assert small_ball(kernel.on(Clip((0.5, 2.0))), (math.inf, 1.0), 0.5) == small_ball(kernel, (0.5, 1.0), 0.5)
    assert small_ball(kernel.on(Angles((0,), 1)), (math.inf,), 0.5) == small_ball(kernel, (1.0, 1.0), 0.5)
    bounded = small_ball(Linear((1.0, 1.0)).on(Tanh((0.5, 0.5))), (math.inf, math.inf), 0.5)
    assert bounded == small_ball(Linear((1.0, 1.0)), (0.5, 0.5), 0.5)


@pytest.mark.parametrize(
    ("kernel", "limits", "zeta", "said"),
    [
        (Linear((1.0,)), (1.0,), 0.0, "zeta=0 must be positive and finite"),
        (SquaredExponential((1.0,)), (1.0,), -1.0, "zeta=-1 must be positive"),
        (SquaredExponential((1.0,)), (1.0,), math.nan, "zeta=nan must be positive"),
        (Linear((1.0,)), (math.inf,), 1.0, "give finite limits, or compose it with a bounded map"),
        (Matern((1.0,)), (math.inf,), 1.0, "has no finite bound"),
        (Matern((1.0, 1.0)), (1.0,), 1.0, "has 2 inputs, and 1 limits were given"),
        (FiniteRank(pair, 2), (1.0,), 1.0, "has no bound on .* give one"),
        (Matern((1.0,)) * Matern((1.0,)), (1.0,), 1.0, "no bound on the small ball of Matern.* is known; use sums and"),
        (Matern((1.0,)) * Linear((1.0,)), (1.0,), 1.0, "no bound on the small ball"),
    ],
)
def test_what_has_no_small_ball_is_explained(kernel, limits, zeta, said):
    with pytest.raises(UserError, match=said) as error:
        small_ball(kernel, limits, zeta)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "call", [lambda: ball_exponent(0, 1.0), lambda: ball_exponent(2, 0.0), lambda: box_exponent([1.0], 0.0)]
)
def test_balls_and_boxes_of_no_size_are_refused(call):
    with pytest.raises(UserError, match="must be"):
        call()


def test_a_curve_is_the_small_ball_at_every_zeta():
    kernels = (SquaredExponential((1.0,)), Matern((1.0,), 0.5), Linear((1.0,)), 4.0 * Matern((1.0,)) + Linear((1.0,)))
    for kernel in kernels:
        curve = small_ball_curve(kernel, (1.0,))
        assert [curve(zeta) for zeta in (0.3, 1.0)] == [small_ball(kernel, (1.0,), zeta) for zeta in (0.3, 1.0)]


def test_where_features_are_too_many_or_too_coarse_chaining_is_left():
    """Length scales too short for the expansion, and a zeta that it does not resolve."""
    assert small_ball(SquaredExponential((1e-3,)), (1.0,), 0.5).method == "chaining"
    assert small_ball(SquaredExponential((1.0,)), (1.0,), 1e-40).method == "chaining"
    product = SquaredExponential((1.0,)) * Linear((1.0,))
    with pytest.raises(UserError, match="smaller than the expansion in features resolves"):
        small_ball(product, (1.0,), 1e-40)


def test_the_smallest_features_are_left_out_without_a_trace():
    """Bins that do not matter: to 1e-9 of what a sum over all of them gives."""
    levels = feature_levels(SquaredExponential((1.0, 1.0)), (2.0, 2.0))
    for zeta in (1e-6, 1e-2, 1.0):
        used = levels.counts > 0
        count, price = levels.counts[used], (levels.counts * levels.suprema)[used]
        missed = math.sqrt(2 / math.pi) * levels.rest / (1e-3 * zeta)
        everything = _cheapest(count, price, 0.999 * zeta) - math.log1p(-missed)
        assert levels_exponent(levels, zeta) == pytest.approx(everything, rel=1e-9, abs=1e-9)


def test_equal_features_are_computed_at_once():
    """A box of many equal sides with one that differs by 1e-9 is nearly the same; to 1e-7."""
    equal, different = [1.0] * 6, [1.0 + 1e-9 * i for i in range(6)]
    assert box_exponent(equal, 0.7) == pytest.approx(box_exponent(different, 0.7), rel=1e-7)
