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


def test_a_constraint_on_the_mean_presses_on_all_samples_alike():
    """The mean of 6 and 4 is 5 of 4: g = 1/4, lambda = 0.3, c = 2: slope 0.8, weight 5, shared by two samples."""
    samples = Parametric(jnp.ones(2, jnp.float32), still)
    problem = make_problem(still(1.0), samples, 4.0, HORIZON, constraint="mean")
    chosen = solver(lambda key: jnp.zeros(1), HORIZON, curvature=2.0, safety_weight=5.0)
    trained = Trained((), None, jnp.full((1, 1), 0.3, jnp.float32), jnp.float32(0.0))
    weights = weights_of(chosen.choices, 1.0)
    found = pressures(problem, forecast(0.0, [6.0, 4.0]), trained, weights, problem.bounds, 1.0)
    np.testing.assert_allclose(jax.device_get(found.costs)[:, 0], [5 * 0.8 / 2] * 2, rtol=1e-6)


def test_what_is_beyond_the_trust_region_presses_the_more_the_farther_if_estimates_are_noisy():
    """Trust 4, weight 1.5: at 4.5 half of a ramp of a quarter of 4; beyond 5 all of it; without a ramp at once."""
    problem = make_problem(still(1.0), None, 4.0, HORIZON)
    weights = weights_of(solver(lambda key: jnp.zeros(1), HORIZON, trust=4.0, trust_weight=1.5).choices, 1.0)
    trained = Trained((), None, jnp.zeros((0, 1), jnp.float32), jnp.float32(0.0))
    told = Forecast(jnp.float32(0), jnp.float32(0), jnp.zeros((0, 1), jnp.float32), jnp.zeros(0))
    for information, ramp, share in ((4.5, 0.25, 0.5), (6.0, 0.25, 1.0), (4.1, 0.0, 1.0), (3.9, 0.25, 0.0)):
        seen = told._replace(information=jnp.float32(information))
        found = pressures(problem, seen, trained, weights, problem.bounds, 4.0, ramp)
        np.testing.assert_allclose(found.information, -1.5 * share, rtol=1e-5)
