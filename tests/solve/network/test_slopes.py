"""Slopes on their way back through an episode: as they are, or no longer than a limit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.solve.network.slopes import limited

STD = jnp.array([1.0, 2.0], jnp.float32)
X = jnp.array([[1.0, -2.0], [0.5, 3.0]], jnp.float32)
PULL = jnp.array([[3.0, 2.0], [0.03, 0.02]], jnp.float32)
"""The slopes by both rows: in units of STD their lengths are 5 and 0.05."""


def slopes(most):
    return jax.grad(lambda x: jnp.sum(PULL * limited(x, STD, most)))(X)


def test_values_are_as_they_were():
    np.testing.assert_array_equal(limited(X, STD, 0.1), X)


def test_without_a_limit_so_are_slopes():
    np.testing.assert_array_equal(slopes(0.0), PULL)


def test_a_long_slope_keeps_its_direction_and_a_short_one_its_length():
    """A limit of 1 for two rows is 0.5 for each: a tenth of the first slope, and more than the second."""
    np.testing.assert_allclose(slopes(1.0), [[0.3, 0.2], [0.03, 0.02]], rtol=1e-6)


@pytest.mark.parametrize("most", [0.0, 1.0])
def test_nothing_explodes_through_an_unstable_system(most):
    """x' = 3 x for 40 steps: the slope by the first state is 3^40, or what the limit says."""

    def end(x):
        return jax.lax.scan(lambda x, _: (3 * limited(x, STD[:1], most), None), x, None, length=40)[0].sum()

    slope = float(jax.grad(end)(jnp.ones((1, 1), jnp.float32))[0, 0])
    np.testing.assert_allclose(slope, 1.0 if most else 3.0**40, rtol=1e-4)
