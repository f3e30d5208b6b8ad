"""The bounds and the learning rate of the offline phase change as they were chosen to."""

import jax.numpy as jnp
import numpy as np
from known_problems import Parametric, known, make_problem, solver

from sbsrl.solve.network.forecast import Forecast
from sbsrl.solve.network.offline import OfflinePhase

HORIZON = 8


def still(price):
    return known(lambda x, a: x, lambda x, a, y: a[0], lambda x, a, y: price * y)


def offline(**choices):
    chosen = solver(lambda key: jnp.zeros(1), HORIZON, **choices)
    return OfflinePhase(chosen.choices, chosen._gate, chosen._block)


def test_bounds_count_after_a_while_and_then_fall_to_their_own():
    """Two free blocks, then four from what the policy costs, 8, to what is wanted, 0.9 of 2."""
    phase = offline(budget=2.0, free_blocks=2, annealing=4, margin=0.1)
    problem = make_problem(still(1.0), Parametric(jnp.ones(2, jnp.float32), still), 2.0, HORIZON)
    dear = Forecast(jnp.float32(0), jnp.float32(0), jnp.full((2, 1), 8.0, jnp.float32), jnp.zeros(2, jnp.float32))
    bounds = [float(phase._annealed(problem, dear, block)[0]) for block in range(1, 8)]
    assert min(bounds[:2]) > 1000
    np.testing.assert_allclose(bounds[2:], 1.8 + 6.2 * np.array([0.75, 0.5, 0.25, 0.0, 0.0]) ** 1.5, rtol=1e-6)


def test_the_offline_learning_rate_falls_to_that_of_the_episodes():
    phase = offline(offline_rate=8e-2, policy_rate=1e-2, offline_blocks=3)
    np.testing.assert_allclose([phase._rate(i) for i in (1, 2, 3)], [4e-2, 2e-2, 1e-2], rtol=1e-9)
