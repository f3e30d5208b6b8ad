"""A step of fourth order, whatever the form of the place, and its gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from sbsrl.systems.runge_kutta import runge_kutta

TURN = np.array([[-0.3, 1.7], [-1.1, 0.2]])
"""dy/dt = A y: y(t) = exp(A t) y(0)."""


def turned(y):
    return jnp.asarray(TURN, y.dtype) @ y


def test_a_step_of_a_linear_system_is_its_exponential_up_to_the_fourth_power():
    """One step is the Taylor polynomial of degree four of exp(A dt), exactly."""
    dt, y = 0.4, np.array([0.7, -1.2])
    powers, term = y.copy(), y.copy()
    for i in range(1, 5):
        term = TURN @ term * dt / i
        powers = powers + term
    np.testing.assert_allclose(runge_kutta(turned, jnp.asarray(y), dt), powers, rtol=1e-13)


def test_the_error_of_an_interval_falls_by_16_when_the_step_halves():
    y, truth = np.array([0.7, -1.2]), expm(TURN * 1.0) @ np.array([0.7, -1.2])

    def error(count):
        now = jnp.asarray(y)
        for _ in range(count):
            now = runge_kutta(turned, now, 1.0 / count)
        return np.abs(np.asarray(now) - truth).max()

    assert error(8) / error(16) == pytest.approx(16, rel=0.1)


def test_a_place_may_be_any_tree_and_keeps_its_type():
    """A pendulum as a pair of single-precision numbers: the same as in one vector."""
    pair = runge_kutta(
        lambda at: {"q": at["w"], "w": -jnp.sin(at["q"])}, {"q": jnp.float32(1), "w": jnp.float32(0)}, 0.1
    )
    vector = runge_kutta(lambda at: jnp.stack([at[1], -jnp.sin(at[0])]), jnp.array([1.0, 0.0], jnp.float32), 0.1)
    np.testing.assert_allclose([pair["q"], pair["w"]], vector, rtol=1e-6)
    assert {leaf.dtype for leaf in jax.tree.leaves(pair)} == {jnp.dtype("float32")}


def test_the_gradient_is_that_of_the_taylor_polynomial():
    """Of a linear system the Jacobian of a step is the polynomial itself."""
    dt = 0.4
    polynomial = sum(np.linalg.matrix_power(TURN * dt, i) / np.prod(range(1, i + 1)) for i in range(5))
    found = jax.jacrev(lambda y: runge_kutta(turned, y, dt))(jnp.array([0.7, -1.2]))
    np.testing.assert_allclose(found, polynomial, rtol=1e-12)
