"""What the tasks with a hanging pole have in common."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import make_task


@pytest.mark.parametrize("name", ["pendulum", "cartpole"])
def test_hanging_still_costs_pi_squared_per_step(name):
    task = make_task(name)
    x, a = task.equations.start(jax.random.key(0)), jnp.zeros(1)
    y = task.equations.step(x, a, jax.random.key(0))
    np.testing.assert_allclose(y, x, atol=1e-15)
    np.testing.assert_allclose(task.signals.reward(x, a, y), -(np.pi**2))
