"""The simulated small-ball exponent agrees with what is known exactly, within its error bar."""

import math

import numpy as np
import pytest
from scipy.special import erf

from sbsrl import UserError
from sbsrl.kernels import Linear, Matern, SquaredExponential
from sbsrl.theory import box_exponent, estimate_small_ball, subset
from sbsrl.theory.subset import grid_features, subset_simulation


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("zeta", [3.0, 0.3, 0.01])
def test_it_agrees_with_the_exact_exponent_of_a_linear_kernel(d, zeta):
    """Linear functions are largest in the corners, which are among the points. 4 standard errors, and 0.03 for bias."""
    scales = (1.0, 2.0, 0.5)[:d]
    found = estimate_small_ball(Linear(scales), (1.0,) * d, zeta, points=16, chains=2000)
    assert abs(found.value - box_exponent([1 / s for s in scales], zeta)) <= 4 * found.error + 0.03


def test_it_agrees_with_independent_variables_far_into_the_tail():
    """-ln P(max of 5 independent |xi| < zeta) = -5 ln erf(zeta / sqrt 2) = 24; to 3 %, 8 runs."""
    rng = np.random.default_rng(0)
    found = np.mean([subset_simulation(np.eye(5), 0.01, 1000, rng) for _ in range(8)])
    np.testing.assert_allclose(found, -5 * math.log(erf(0.01 / math.sqrt(2))), rtol=0.03)


@pytest.mark.parametrize(
    ("d", "scale", "zeta", "elsewhere"),
    [(1, 1.0, 1.0, 1.0), (1, 1.0, 0.1, 8.4), (1, 0.5, 0.3, 6.8), (2, 2.0, 0.3, 5.8), (2, 1.0, 0.3, 12.7)],
)
def test_it_agrees_with_a_simulation_elsewhere(d, scale, zeta, elsewhere):
    """4 standard errors, and 3 % and 0.1 for the error and the points of the other."""
    found = estimate_small_ball(SquaredExponential((scale,) * d), (1.0,) * d, zeta, points=225, chains=500)
    assert abs(found.value - elsewhere) <= 4 * found.error + 0.03 * elsewhere + 0.1


@pytest.mark.parametrize(
    ("kernel", "limits", "count"),
    [
        (SquaredExponential((1.0,)), (2.0,), 32),
        (Matern((1.0, 0.5)), (1.0, 2.0), 36),
        (Linear((1.0, 1.0, 1.0)), (1.0, 2.0, 0.5), 32 + 8),
        (Matern((1.0,) * 20), (1.0,) * 20, 32),
    ],
    ids=["line", "grid", "corners", "too many corners"],
)
def test_the_features_reproduce_the_variances_on_the_points(kernel, limits, count):
    """k(z, z) is 1 for stationary kernels, and in a corner as large as it gets for a linear one; to 1e-9."""
    features = grid_features(kernel, limits, points=32)
    variances = np.sum(features**2, axis=1)
    assert len(features) == count
    np.testing.assert_allclose(variances.max(), kernel.supremum(limits), rtol=1e-9)
    if kernel.rank is None:
        np.testing.assert_allclose(variances, 1, rtol=1e-9)


def test_more_points_leave_less_room():
    few, many = (estimate_small_ball(Matern((1.0,), 0.5), (1.0,), 1.0, points=n, chains=500) for n in (4, 100))
    assert few.value + 3 * few.error < many.value - 3 * many.error


def test_the_same_seed_gives_the_same_estimate_and_another_another():
    first, again, other = (
        estimate_small_ball(Linear((1.0,)), (1.0,), 0.1, points=2, chains=100, seed=s) for s in (0, 0, 1)
    )
    assert first == again != other


def test_it_is_given_up_where_it_is_told_to():
    assert estimate_small_ball(Linear((1.0,)), (1.0,), 1e-6, points=2, chains=100, deepest=5.0) == (math.inf, math.inf)
    assert math.isfinite(estimate_small_ball(Linear((1.0,)), (1.0,), 0.1, points=2, chains=100, deepest=5.0).value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"zeta": 0.0}, "zeta=0 must be positive"),
        ({"chains": 19}, "the number of chains=19 must be a whole number, at least 20"),
        ({"runs": 1}, "the number of runs=1 must be a whole number, at least 2"),
        ({"limits": (math.inf,)}, "has no finite bound"),
        ({"limits": (1.0, 1.0)}, "has 1 inputs, and 2 limits were given"),
    ],
)
def test_what_cannot_be_simulated_is_explained(changes, said):
    with pytest.raises(UserError, match=said):
        estimate_small_ball(**{"kernel": Linear((1.0,)), "limits": (1.0,), "zeta": 1.0, "points": 2, **changes})


def test_chains_that_no_longer_move_are_reported(monkeypatch):
    """Without moves, all chains are copies of one after a few levels."""
    monkeypatch.setattr(subset, "MOVES", 0)
    with pytest.raises(UserError, match=r"the chains got stuck at the level .*; use more chains, or a larger zeta"):
        subset_simulation(np.eye(5), 1e-6, 20, np.random.default_rng(0))
