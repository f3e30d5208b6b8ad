"""How far functions move over a distance, and how steep kernels are."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gamma, kv

from sbsrl import UserError
from sbsrl.kernels import Angles, FiniteRank, Linear, Matern, SquaredExponential, Tanh
from sbsrl.theory import kernel_lipschitz
from sbsrl.theory.modulus import holder, increment, power_increment

KERNELS = [SquaredExponential((1.0,)), *(Matern((1.0,), nu) for nu in (0.5, 1.5, 2.5, 4.5))]


def profile(kernel, r):
    """k(r), by Bessel functions for Matern."""
    if isinstance(kernel, SquaredExponential):
        return np.exp(-(r**2) / 2)
    t = math.sqrt(2 * kernel.nu) * r
    return 2 ** (1 - kernel.nu) / gamma(kernel.nu) * t**kernel.nu * kv(kernel.nu, t)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_deviation_of_an_increment_is_that_of_the_kernel(kernel):
    """sqrt(2 (1 - k(r))) to 1e-6, where the difference has so many digits."""
    r = np.geomspace(2e-3, 20, 40)
    np.testing.assert_allclose([increment(kernel, x) for x in r], np.sqrt(2 * (1 - profile(kernel, r))), rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_power_of_the_distance_is_never_below_the_increment_and_meets_it_at_0(kernel):
    r = np.geomspace(1e-12, 1e3, 200)
    power, exact = (np.array([f(kernel, x) for x in r]) for f in (power_increment, increment))
    assert np.all(exact <= power * (1 + 1e-12))
    assert np.all(np.diff(exact) >= -1e-12)
    np.testing.assert_allclose(exact[:20], power[:20], rtol=1e-6)
    np.testing.assert_allclose(power * 2 ** holder(kernel), [power_increment(kernel, 2 * x) for x in r], rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_steepest_slope_is_that_of_a_dense_grid(kernel):
    """Never exceeded by a difference quotient, and at most 0.1 % above the largest."""
    r = np.linspace(1e-6, 8, 200_001)
    steepest = np.max(np.abs(np.diff(profile(kernel, r)))) / (r[1] - r[0])
    assert steepest <= kernel_lipschitz(kernel, (1.0,)) * (1 + 1e-9) <= 1.001 * steepest


def test_the_steepest_slopes_with_closed_forms():
    """exp(-1/2) at r = 1; exp(-r) at 0; 3 r exp(-sqrt 3 r) at r = 1 / sqrt 3. To 0.1 %; divided by the scale."""
    for kernel, slope in (
        (SquaredExponential((0.5, 2.0)), math.exp(-0.5) / 0.5),
        (Matern((2.0,), 0.5), 0.5),
        (Matern((1.0,), 1.5), math.sqrt(3) / math.e),
    ):
        assert kernel_lipschitz(kernel, (1.0, 1.0)) == pytest.approx(slope, rel=1e-3)


def cosine(z):
    return jnp.stack([jnp.cos(z[0]), jnp.sin(z[1])])


LIMITS = (1.5, 0.7)
COMPOSED = [
    SquaredExponential((0.5, 2.0)),
    Linear((1.0, 0.3)),
    Matern((1.0, 1.0), 0.5) + Linear((1.0, 1.0)),
    SquaredExponential((9.0, 9.0)) * Linear((0.5, 1.0)),
    3.0 * Matern((0.4, 1.0), 2.5),
    SquaredExponential((0.5, 0.5, 0.5)).on(Angles((0,), 2)),
    Linear((1.0, 1.0)).on(Tanh((0.5, 0.5))),
]


@pytest.mark.parametrize("kernel", COMPOSED, ids=lambda kernel: kernel.describe())
@given(seed=st.integers(0, 10**6), near=st.floats(1e-3, 2.0))
@settings(max_examples=5, deadline=None)
def test_no_difference_quotient_exceeds_the_constant(kernel, seed, near):
    """|k(z, u) - k(z, v)| <= L_k |u - v| for 100 triples in the box."""
    rng = np.random.default_rng(seed)
    z, u = (rng.uniform(-1, 1, (100, 2)) * LIMITS for _ in range(2))
    v = np.clip(u + near * rng.normal(size=u.shape), -np.array(LIMITS), LIMITS)
    values = jax.vmap(lambda z, u, v: kernel(z, u) - kernel(z, v))(*map(jnp.asarray, (z, u, v)))
    assert np.all(np.abs(values) <= kernel_lipschitz(kernel, LIMITS) * np.linalg.norm(u - v, axis=1) * (1 + 1e-9))


def test_the_constant_of_a_linear_kernel_is_attained_in_a_corner():
    kernel, corner = Linear((1.0, 0.3)), np.array(LIMITS)
    direction = corner / np.array([1.0, 0.3]) ** 2
    direction /= np.linalg.norm(direction)
    quotient = kernel(jnp.asarray(corner), jnp.asarray(direction)) - kernel(jnp.asarray(corner), jnp.zeros(2))
    assert float(quotient) == pytest.approx(kernel_lipschitz(kernel, LIMITS), rel=1e-12)


def test_the_constants_of_sums_products_and_multiples_follow_the_rules_of_slopes():
    """L_1 + L_2, L_1 sup k_2 + L_2 sup k_1 and a L; to 1e-12."""
    smooth, linear = SquaredExponential((0.5, 2.0)), Linear((1.0, 0.3))
    one, other = (kernel_lipschitz(kernel, LIMITS) for kernel in (smooth, linear))
    assert kernel_lipschitz(smooth + linear, LIMITS) == pytest.approx(one + other, rel=1e-12)
    product = one * linear.supremum(LIMITS) + other
    assert kernel_lipschitz(smooth * linear, LIMITS) == pytest.approx(product, rel=1e-12)
    assert kernel_lipschitz(3.0 * linear, LIMITS) == pytest.approx(3 * other, rel=1e-12)


@pytest.mark.parametrize(
    ("kernel", "limits", "said"),
    [
        (Linear((1.0,)), (math.inf,), "give finite limits, or compose it with a bounded map"),
        (FiniteRank(cosine, 2, 1.0), (1.0, 1.0), r"the Lipschitz constant of FiniteRank\(cosine, 2\) is not known"),
    ],
)
def test_kernels_without_a_known_constant_are_named(kernel, limits, said):
    with pytest.raises(UserError, match=said):
        kernel_lipschitz(kernel, limits)
