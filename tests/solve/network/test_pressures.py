"""What presses on a policy whose gradients go through segments is what presses on one with whole episodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_problems import Parametric, known, make_problem, solver

from sbsrl.solve.network.forecast import Forecast, missing
from sbsrl.solve.network.improver import Trained, information_unit, weights_of
from sbsrl.solve.network.pressures import pressures

HORIZON = 8


def still(price):
    return known(lambda x, a: x, lambda x, a, y: a[0], lambda x, a, y: price * y)


def forecast(information, costs):
    return Forecast(jnp.float32(0), jnp.float32(information), jnp.asarray(costs, jnp.float32)[:, None], jnp.zeros(2))


@pytest.mark.parametrize(("trust", "threshold"), [(10.0, 2.0), (3.0, 6.0), (0.0, 2.0), (4.0, 0.0)])
def test_a_unit_of_information_is_worth_its_slope_in_the_objective(trust, threshold):
    """psi((threshold - J) / threshold) - w (J / trust - 1)_+, differentiated by hand at J = 5; lambda = 0.3, c = 2."""
    problem = make_problem(still(1.0), Parametric(jnp.ones(2, jnp.float32), still), 4.0, HORIZON, threshold=threshold)
    chosen = solver(lambda key: jnp.zeros(1), HORIZON, trust=trust, trust_weight=1.5, curvature=2.0)
    weights = weights_of(chosen.choices, 1.0)
    seen, unit = forecast(5.0, [1.0, 1.0]), information_unit(problem, weights)
    trained = Trained((), None, jnp.zeros((2, 1), jnp.float32), jnp.float32(0.3))
    found = pressures(problem, seen, trained, weights, problem.bounds, unit)
    lacking = float(missing(problem, seen.information)) if threshold else 0.0
    wanted = max(0.0, 0.3 + 2.0 * lacking) / threshold if threshold else 0.0
    near = 1.5 / trust if trust and trust < 5 else 0.0
    np.testing.assert_allclose(found.information / unit, wanted - near, rtol=1e-6)


def test_a_unit_of_cost_is_worth_the_slope_of_its_penalty():
    """g = (6 - 4) / 4 and (2 - 4) / 4, lambda = 0.3, c = 2: slopes 1.3 and 0, times the weight 5 over two samples."""
    problem = make_problem(still(1.0), Parametric(jnp.ones(2, jnp.float32), still), 4.0, HORIZON)
    chosen = solver(lambda key: jnp.zeros(1), HORIZON, curvature=2.0, safety_weight=5.0)
    trained = Trained((), None, jnp.full((2, 1), 0.3, jnp.float32), jnp.float32(0.0))
    found = pressures(problem, forecast(0.0, [6.0, 2.0]), trained, weights_of(chosen.choices, 1.0), problem.bounds, 1.0)
    np.testing.assert_allclose(jax.device_get(found.costs)[:, 0], [2.5 * 1.3, 0.0], rtol=1e-6)
