"""Multipliers follow their constraints, and penalties are what their formulas say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.solve.network.lagrangian import PENALTIES, penalty, pressure, updated


@pytest.mark.parametrize("multiplier", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("g", [-5.0, -0.3, 0.0, 0.4, 1.9])
def test_the_slope_of_the_augmented_penalty_is_the_next_multiplier(multiplier, g):
    slope = jax.grad(lambda g: penalty("augmented", jnp.asarray(multiplier), g, 2.0))(jnp.asarray(g))
    np.testing.assert_allclose(slope, max(0.0, multiplier + 2.0 * g), atol=1e-12)


@pytest.mark.parametrize("multiplier", [0.0, 3.0])
def test_beyond_a_large_violation_the_penalty_goes_on_straight(multiplier):
    """From g = 2 on with the slope there, lambda + 2 c; without a jump."""
    value = lambda g: penalty("augmented", jnp.asarray(multiplier), jnp.asarray(g), 0.5)  # noqa: E731
    np.testing.assert_allclose(value(2.0 + 1e-9), value(2.0), atol=1e-6)
    np.testing.assert_allclose(value(20.0) - value(2.0), 18 * (multiplier + 1.0), rtol=1e-12)
    np.testing.assert_allclose(jax.grad(value)(20.0), multiplier + 1.0, rtol=1e-12)
    np.testing.assert_allclose(
        pressure("augmented", jnp.asarray(multiplier), jnp.asarray([1.0, 20.0]), 0.5),
        [multiplier + 0.5, multiplier + 1.0],
    )


def test_far_inside_the_augmented_penalty_is_constant():
    values = penalty("augmented", jnp.asarray([1.5, 1.5]), jnp.asarray([-4.0, -9.0]), 1.0)
    np.testing.assert_allclose(values, -(1.5**2) / 2)


def test_the_simpler_penalties():
    g = jnp.asarray([-1.0, 0.5])
    np.testing.assert_allclose(penalty("primal-dual", jnp.asarray([2.0, 2.0]), g, 9.0), [-2.0, 1.0])
    np.testing.assert_allclose(penalty("fixed", jnp.asarray([2.0, 2.0]), g, 9.0), [0.0, 4.5])


@pytest.mark.parametrize("kind", ["augmented", "primal-dual"])
def test_multipliers_rise_under_violation_and_fall_under_slack(kind):
    before = jnp.asarray([1.0, 1.0, 1.0])
    after = updated(kind, before, jnp.asarray([0.5, 0.0, -0.5]), 0.1, 20.0)
    np.testing.assert_allclose(after, [1.05, 1.0, 0.95])


def test_multipliers_stay_between_0_and_their_limit_and_do_not_outrun():
    after = updated(
        "augmented", jnp.asarray([0.01, 19.99, 1.0, 1.0]), jnp.asarray([-2.0, 2.0, 1e9, jnp.nan]), 0.1, 20.0
    )
    np.testing.assert_allclose(after, [0.0, 20.0, 1.2, 1.0])


def test_fixed_weights_stay():
    np.testing.assert_array_equal(updated("fixed", jnp.asarray([1.0]), jnp.asarray([5.0]), 0.1, 20.0), [1.0])
    assert set(PENALTIES) == {"augmented", "primal-dual", "fixed"}
