"""The pendulum against an independent simulation in the angle itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError, make_task
from sbsrl.tasks.pendulum import imperfect_simulator, transition


def simulate_angle(theta, omega, action, gravity=9.81, max_torque=2.0):
    """Two semi-implicit Euler steps of 0.05 s, as gym's Pendulum-v1 does them, with th = 0 upright."""
    for _ in range(2):
        acceleration = 3 * gravity / 2 * np.sin(theta) + 3 * max_torque * np.clip(action, -1, 1)
        omega = np.clip(omega + 0.05 * acceleration, -8, 8)
        theta = theta + 0.05 * omega
    return theta, omega


@pytest.fixture
def task():
    return make_task("pendulum")


@pytest.mark.parametrize(
    ("model", "gravity", "torque"), [(transition, 9.81, 2.0), (imperfect_simulator, 0.75 * 9.81, 2.6)]
)
def test_dynamics_agree_with_a_simulation_of_the_angle(model, gravity, torque):
    rng = np.random.default_rng(0)
    step = jax.jit(model)
    theta, omega = np.pi, 0.0
    x = jnp.array([-1.0, 0.0, 0.0])
    for action in rng.uniform(-1.5, 1.5, 100):
        theta, omega = simulate_angle(theta, omega, action, gravity, torque)
        x = step(x, jnp.array([action]))
        np.testing.assert_allclose(x, [np.cos(theta), np.sin(theta), omega], atol=1e-12)


def test_speed_is_clipped_at_8():
    x = transition(jnp.array([0.0, 1.0, 7.9]), jnp.array([1.0]))
    assert x[2] == 8


def test_planning_precision_follows_the_true_dynamics_to_1e_6():
    rng = np.random.default_rng(1)
    theta = rng.uniform(-np.pi, np.pi, 1000)
    states = np.stack([np.cos(theta), np.sin(theta), rng.uniform(-8, 8, 1000)], axis=1)
    actions = rng.uniform(-1, 1, (1000, 1))
    exact = jax.vmap(transition)(jnp.asarray(states), jnp.asarray(actions))
    fast = jax.vmap(transition)(jnp.asarray(states, jnp.float32), jnp.asarray(actions, jnp.float32))
    np.testing.assert_allclose(fast, exact, atol=2e-6)


def test_it_starts_hanging_at_rest(task):
    assert np.array_equal(task.start(jax.random.key(3)), [-1, 0, 0])
    assert np.array_equal(task.equations.start(jax.random.key(3)), [-1, 0, 0])
    assert np.array_equal(task.open().reset(seed=3)[0], [-1, 0, 0])


def test_reward_is_at_the_state_before_the_step_and_cost_at_the_state_after(task):
    x, a = jnp.array([np.cos(0.5), np.sin(0.5), -2.0]), jnp.array([0.5])
    y = jnp.array([1.0, 0.0, -7.0])
    np.testing.assert_allclose(task.signals.reward(x, a, y), -(0.25 + 0.1 * 4 + 0.02 * 0.25))
    assert np.array_equal(task.signals.costs(x, a, y), [7])


def test_the_task_is_the_papers(task):
    (cost,) = task.costs
    assert (task.horizon, cost.budget, cost.aggregation) == (50, 6.0, "statewise")


def test_the_simulator_is_informative_and_nothing_is_not(task):
    assert task.prior.informative
    assert not make_task("pendulum", prior="none").prior.informative


def test_the_stated_norm_bound_covers_the_mismatch():
    """|f|_k >= w.y / sqrt(w'Kw) for any w: at 400 points this must lie below the assumed bound, and not far below."""
    prior = make_task("pendulum").prior.gp
    rng = np.random.default_rng(2)
    theta, omega, a = rng.uniform(-np.pi, np.pi, 400), rng.uniform(-6, 6, 400), rng.uniform(-1, 1, (400, 1))
    x = jnp.asarray(np.stack([np.cos(theta), np.sin(theta), omega], axis=1))
    mismatch = np.asarray(jax.vmap(transition)(x, jnp.asarray(a)) - jax.vmap(prior.mean)(x, jnp.asarray(a)))
    z = np.concatenate([x, a], axis=1) / np.array(prior.kernel.lengthscales)
    k = np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(-1))
    y = mismatch / np.array(prior.scale)
    w = np.linalg.solve(k + 1e-10 * np.eye(400), y)
    lower = np.sum(w * y, axis=0) / np.sqrt(np.sum(w * (k @ w), axis=0))
    assert prior.bound is not None
    assert lower.max() < prior.bound < 3 * lower.max()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"name": "pendulun"}, "did you mean 'pendulum'"),
        ({"name": "pendulum", "prior": "simulater"}, "did you mean 'simulator'"),
        ({"name": "pendulum", "budget": -1.0}, "no policy can meet budget=-1"),
    ],
)
def test_mistakes_are_explained(arguments, hint):
    with pytest.raises(UserError, match=hint):
        make_task(**arguments)
