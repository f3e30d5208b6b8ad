"""Rollouts that are differentiated by their linearisation: the same values, the same first derivatives."""

import jax
import jax.numpy as jnp
import numpy as np

from sbsrl.problem import rollouts
from sbsrl.solve.tangent import tangent_rollouts

X = jnp.array([0.4, -0.2], jnp.float32)


def swing(x, a):
    """Two states that turn around each other, and an action that pushes where the first one is."""
    return jnp.stack([x[0] + 0.3 * jnp.sin(x[1]) + 0.5 * a[0], 0.9 * x[1] + 0.4 * a[0] * jnp.cos(x[0])])


def end(roll, actions):
    """A number that depends on all states."""
    return jnp.sum(roll(swing, X, actions) ** 3)


def test_values_and_derivatives_are_those_of_the_rollout(getkey):
    """Both are sums of the same numbers in another order: 1e-5 of the largest is rounding."""
    actions = jax.random.normal(getkey(), (7, 1, 5), jnp.float32)
    np.testing.assert_array_equal(tangent_rollouts(swing, X, actions), rollouts(swing, X, actions))
    expected, found = (jax.grad(end, argnums=1)(roll, actions) for roll in (rollouts, tangent_rollouts))
    assert np.max(np.abs(expected)) > 1
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.max(np.abs(expected)))
