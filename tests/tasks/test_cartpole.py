"""The cartpole against an independent simulation: the equations of motion solved as a linear system, in the angle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import collect, make_task
from sbsrl.tasks.cartpole import imperfect_simulator, kinematics, transition

CART, POLE, LENGTH, GRAVITY = 5.0, 1.0, 1.0, 9.81


def simulate_angle(p, theta, v, omega, action, gravity=GRAVITY, max_force=15.0):
    """Two forward Euler steps of 0.05 s; th = 0 is hanging."""
    for _ in range(2):
        mass = np.array(
            [[POLE + CART, POLE * LENGTH * np.cos(theta)], [POLE * LENGTH * np.cos(theta), POLE * LENGTH**2]]
        )
        force = max_force * np.clip(action, -1, 1) + POLE * LENGTH * omega**2 * np.sin(theta)
        v_dot, omega_dot = np.linalg.solve(mass, [force, -POLE * gravity * LENGTH * np.sin(theta)])
        p, theta, v, omega = p + 0.05 * v, theta + 0.05 * omega, v + 0.05 * v_dot, omega + 0.05 * omega_dot
    return p, theta, v, omega


def observed(p, theta, v, omega):
    return np.array([p, np.cos(theta), np.sin(theta), v, omega])


@pytest.fixture
def task():
    return make_task("cartpole")


@pytest.mark.parametrize(
    ("model", "gravity", "force"), [(transition, GRAVITY, 15.0), (imperfect_simulator, 0.9 * GRAVITY, 37.5)]
)
def test_dynamics_agree_with_a_simulation_of_the_angle(model, gravity, force):
    rng = np.random.default_rng(0)
    step = jax.jit(model)
    state = (0.0, 0.0, 0.0, 0.0)
    x = jnp.asarray(observed(*state))
    for action in rng.uniform(-1.5, 1.5, 100):
        state = simulate_angle(*state, action, gravity, force)
        x = step(x, jnp.array([action]))
        np.testing.assert_allclose(x, observed(*state), atol=1e-9)


def test_kinematics_are_the_dynamics_without_forces():
    rng = np.random.default_rng(0)
    for p, theta, v, omega in rng.uniform(-2, 2, (20, 4)):
        found = kinematics(jnp.asarray(observed(p, theta, v, omega)), jnp.array([1.0]))
        np.testing.assert_allclose(found, observed(p + 0.1 * v, theta + 0.1 * omega, v, omega), atol=1e-12)


def test_planning_precision_follows_the_true_dynamics_to_1e_5():
    rng = np.random.default_rng(1)
    theta = rng.uniform(-np.pi, np.pi, 1000)
    p, v, omega = rng.uniform([[-2], [-5], [-8]], [[2], [5], [8]], (3, 1000))
    states = np.stack([p, np.cos(theta), np.sin(theta), v, omega], axis=1)
    actions = rng.uniform(-1, 1, (1000, 1))
    exact = jax.vmap(transition)(jnp.asarray(states), jnp.asarray(actions))
    fast = jax.vmap(transition)(jnp.asarray(states, jnp.float32), jnp.asarray(actions, jnp.float32))
    np.testing.assert_allclose(fast, exact, atol=1e-5)


def test_it_starts_hanging_at_rest_in_the_middle(task):
    hanging = [0, 1, 0, 0, 0]
    assert np.array_equal(task.start(jax.random.key(3)), hanging)
    assert np.array_equal(task.equations.start(jax.random.key(3)), hanging)
    assert np.array_equal(task.open().reset(seed=3)[0], hanging)


def test_reward_is_at_the_state_before_the_step_and_cost_at_the_state_after(task):
    x = jnp.asarray(observed(0.7, np.pi - 0.5, -1.5, 2.0))
    y = jnp.asarray(observed(-1.7, 0.0, 0.0, 0.0))
    a = jnp.array([0.5])
    np.testing.assert_allclose(task.signals.reward(x, a, y), -(0.25 + 0.49 + 0.1 * (2.25 + 4)) - 0.01 * 0.25)
    np.testing.assert_allclose(task.signals.costs(x, a, y), [1.7])


def test_the_task_is_the_papers(task):
    (cost,) = task.costs
    assert (task.horizon, cost.budget, cost.aggregation) == (50, 1.5, "statewise")


def test_its_offline_data_are_what_collect_makes(task):
    again = collect(task, "wander", len(task.prior.data.actions), seed=0)
    for kept, made in zip(task.prior.data, again.transitions, strict=True):
        np.testing.assert_allclose(kept, made, atol=1e-12)


def test_its_offline_data_come_from_the_agents_own_transition_map(task):
    x, a, y, *_ = task.prior.data
    steps = [task.equations.step(jnp.asarray(x[i]), jnp.asarray(a[i]), jax.random.key(0)) for i in range(0, len(a), 29)]
    np.testing.assert_allclose(steps, y[::29], atol=1e-12)


def test_its_offline_data_stay_far_from_the_end_of_the_rail(task):
    assert np.abs(task.prior.data.next_states[:, 0]).max() < 0.5 * task.costs[0].budget


def test_without_data_nothing_makes_the_first_episode_safe():
    assert make_task("cartpole").prior.informative
    assert not make_task("cartpole", prior="none").prior.informative
