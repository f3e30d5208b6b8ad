"""Episodes on models: sums, gradients, aggregations, against computations by hand."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from known_problems import Parametric, known, make_problem, units

from sbsrl.networks import Layer
from sbsrl.problem import Bonus, Curiosity
from sbsrl.solve.network.episodes import episodes, rows_of
from sbsrl.solve.network.forecast import forecast

A, B, R, C = 0.9, 0.5, 1.3, 0.7


def linear(shift=0.0):
    """y = A x + B a + shift, reward R y, cost C x^2."""
    return known(
        lambda x, a: A * x + B * a + jnp.asarray(shift, x.dtype),
        lambda x, a, y: R * y[0],
        lambda x, a, y: C * x**2,
    )


def one_layer(w, b=0.0):
    """The policy a = tanh(w x + b)."""
    return (Layer(jnp.full((1, 1), w, jnp.float32), jnp.full(1, b, jnp.float32)),)


def totals(network, problem, starts, horizon, each, nominal):
    rows = rows_of(problem, each, nominal)
    return episodes(network, units(), rows, starts, problem, horizon, 0.0, False, jax.random.key(0))


def test_gradients_of_both_returns_through_a_linear_model_are_those_of_the_closed_form():
    """Two steps with a_t = tanh(w x_t): J_r = R (x_1 + x_2), J_c = C (x_0^2 + x_1^2); float32, 1e-5."""
    w, x0 = 0.6, 0.8
    problem = make_problem(linear(), None, 1.0, 2)
    starts = jnp.full((1, 1), x0, jnp.float32)

    def returns(w):
        found = totals(one_layer(w), problem, starts, 2, 0, 1)
        return jnp.stack([found.rewards[0], found.costs[0, 0]])

    a0 = np.tanh(w * x0)
    x1 = A * x0 + B * a0
    a1 = np.tanh(w * x1)
    x2 = A * x1 + B * a1
    dx1 = B * (1 - a0**2) * x0
    dx2 = A * dx1 + B * (1 - a1**2) * (x1 + w * dx1)
    values, slopes = returns(jnp.float32(w)), jax.jacobian(returns)(jnp.float32(w))
    np.testing.assert_allclose(values, [R * (x1 + x2), C * (x0**2 + x1**2)], rtol=1e-5)
    np.testing.assert_allclose(slopes, [R * (dx1 + dx2), C * 2 * x1 * dx1], rtol=1e-5)


def test_every_sample_has_a_trajectory_of_its_own():
    """x grows by the shift in every step: J_c of sample s is C sum_t (t s)^2."""
    model = lambda s: known(lambda x, a: x + s, lambda x, a, y: y[0], lambda x, a, y: C * x**2)  # noqa: E731
    shifts = jnp.array([0.1, -0.3, 0.5], jnp.float32)
    problem = make_problem(model(jnp.float32(0.2)), Parametric(shifts, model), 1.0, 4)
    found = forecast(one_layer(0.0), units(), problem, jnp.zeros((3, 1), jnp.float32), 4, 1, jax.random.key(0))
    squares = sum(t**2 for t in range(4))
    np.testing.assert_allclose(found.costs[:, 0], C * squares * np.asarray(shifts) ** 2, rtol=1e-5)
    np.testing.assert_allclose(found.reward, 0.2 * (1 + 2 + 3 + 4), rtol=1e-5)
    np.testing.assert_allclose(found.sampled_rewards, 10 * np.asarray(shifts), rtol=1e-5)


def test_statewise_costs_are_the_largest_of_the_episode():
    model = known(lambda x, a: x + 1, lambda x, a, y: y[0], lambda x, a, y: jnp.concatenate([x, -x]))
    problem = make_problem(model, None, 1.0, 3)
    object.__setattr__(problem, "aggregations", ("statewise", "sum"))
    found = totals(one_layer(0.0), problem, jnp.zeros((1, 1), jnp.float32), 4, 0, 1)
    np.testing.assert_allclose(found.costs, [[3.0, -6.0]])


def test_information_counts_in_the_steps_that_gather_it():
    model = linear()
    problem = make_problem(model, None, 1.0, 3, uncertainty=lambda x, a: jnp.float32(2.0))
    found = totals(one_layer(0.0), problem, jnp.zeros((1, 1), jnp.float32), 5, 0, 1)
    np.testing.assert_allclose(found.information, [6.0])


def test_an_objective_of_the_method_takes_the_place_of_the_reward():
    problem = make_problem(linear(), None, 1.0, 3)
    object.__setattr__(problem, "objective", lambda x, a, y: jnp.float32(0.25))
    found = totals(one_layer(0.0), problem, jnp.zeros((1, 1), jnp.float32), 4, 0, 1)
    np.testing.assert_allclose(found.rewards, [1.0])


def test_uncertainty_in_the_place_of_rewards_is_what_the_rows_know_of_it():
    """As an objective that is asked for it row by row would say. To 1e-6."""
    uncertainty = lambda x, a: 0.1 + x[0] ** 2 * a[0]  # noqa: E731
    problem = make_problem(linear(), None, 1.0, 3, uncertainty=uncertainty)
    starts = jnp.array([[0.5], [-0.4]], jnp.float32)
    known_by_rows, asked = (
        totals(one_layer(0.3), replace(problem, objective=objective), starts, 3, 0, 2).rewards
        for objective in (Curiosity(uncertainty), lambda x, a, y: uncertainty(x, a))
    )
    np.testing.assert_allclose(known_by_rows, asked, rtol=1e-6)
    assert abs(float(asked[0] - asked[1])) > 0.01


def test_a_bonus_adds_information_to_what_every_row_earns():
    """As an objective that is asked for both row by row would say. To 1e-6."""
    uncertainty = lambda x, a: 0.1 + x[0] ** 2 * a[0]  # noqa: E731
    problem = make_problem(linear(), None, 1.0, 3, uncertainty=uncertainty)
    starts = jnp.array([[0.5], [-0.4]], jnp.float32)
    both = Bonus(problem.reward, uncertainty, jnp.float32(2.5))
    known_by_rows, asked = (
        totals(one_layer(0.3), replace(problem, objective=objective), starts, 3, 0, 2).rewards
        for objective in (both, lambda x, a, y: R * y[0] + 2.5 * uncertainty(x, a))
    )
    np.testing.assert_allclose(known_by_rows, asked, rtol=1e-6)
    assert abs(float(asked[0] - asked[1])) > 0.01
