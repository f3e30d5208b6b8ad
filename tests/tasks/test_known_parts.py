"""What tasks say is known of their dynamics and costs is what ensembles make of it."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.ensemble import EnsembleSettings
from sbsrl.model import Model
from sbsrl.prior import Prior
from sbsrl.systems.clock import advanced
from sbsrl.task import Task
from sbsrl.tasks import go_to_goal, rwrl_humanoid, rwrl_quadruped
from sbsrl.transitions import Transitions

pytest.importorskip("dm_control.suite", reason="dm-control is an extra")
SMALL = {"networks": 2, "width": 8, "cost_width": 8, "layers": 1}
CLOCKED = rwrl_humanoid.HumanoidSettings(clock=20)
MAKES = {
    "go-to-goal": (go_to_goal.make, {}),
    "humanoid with a clock": (rwrl_humanoid.make, {"settings": CLOCKED}),
    "humanoid": (rwrl_humanoid.make, {}),
    "quadruped": (rwrl_quadruped.make, {}),
}


class Believed(NamedTuple):
    """A task, an ensemble that has learned nothing of it, and what that says of a step from each of two states."""

    task: Task
    model: Model
    x: jax.Array
    a: jax.Array
    y: jax.Array
    rewards: jax.Array
    costs: jax.Array


@cache
def believed(name):
    """At initial states, in the precision of plans."""
    make, settings = MAKES[name]
    task = make(Prior("data", informative=True), (25.0,), **settings)
    x = np.asarray(jax.jit(jax.vmap(task.start))(jax.random.split(jax.random.key(0), 40)))
    a = np.random.default_rng(0).uniform(task.action_low, task.action_high, (40, task.action_size))
    data = Transitions(x, a, x + 0.01, np.ones(40), np.ones((40, 1)), np.ones(40, bool))
    task = make(Prior("data", informative=True, data=data), (25.0,), **settings)
    model = EnsembleSettings(**SMALL).create(task, 1, jax.random.key(0)).nominal()

    @jax.jit
    @jax.vmap
    def step(x, a):
        y = model(x, a)
        return y, model.reward(x, a, y), model.costs(x, a, y)

    states, actions = jnp.asarray(x[:2], jnp.float32), jnp.asarray(a[:2], jnp.float32)
    return Believed(task, model, states, actions, *step(states, actions))


@pytest.mark.parametrize("name", MAKES)
def test_steps_are_numbers_of_the_right_shapes_in_single_precision(name):
    found = believed(name)
    assert (found.y.shape, found.rewards.shape, found.costs.shape) == (found.x.shape, (2,), (2, 1))
    for part in (found.y, found.rewards, found.costs):
        assert part.dtype == jnp.float32
        assert np.all(np.isfinite(part))
    assert np.all(np.asarray(found.costs) <= found.task.costs[0].limits[1])


def test_the_clock_of_a_believed_humanoid_goes_on():
    found = believed("humanoid with a clock")
    np.testing.assert_array_equal(found.x[:, -2:], [[0, 1], [0, 1]])
    np.testing.assert_allclose(found.y[:, -2:], [advanced(clock, 20) for clock in found.x[:, -2:]], atol=1e-6)
    assert float(found.y[0, -2]) == pytest.approx(np.sin(2 * np.pi / 20), abs=1e-6)


def test_what_a_believed_robot_sees_and_earns_is_what_geometry_says():
    """From what the networks say of its other sensors; 1e-5."""
    found = believed("go-to-goal")
    complete, progress = jax.jit(jax.vmap(go_to_goal.complete)), jax.jit(jax.vmap(go_to_goal.progress))
    np.testing.assert_allclose(found.y, complete(found.x, found.a, found.y[:, go_to_goal.SENSORS]), atol=1e-5)
    np.testing.assert_allclose(found.rewards, progress(found.x, found.a, found.y), atol=1e-5)


@pytest.mark.parametrize(("name", "size"), [("go-to-goal", 6), ("humanoid with a clock", 3), ("quadruped", 3)])
def test_costs_are_learned_from_what_decides_them(name, size):
    found = believed(name)
    assert found.task.cost_structure.size == size
    assert found.model.ensemble.nets.members.cost[0].weights.shape[-2] == size


def test_a_clock_is_observed_where_one_was_asked_for():
    """By the humanoid itself, as in the initial states that are drawn; after a quarter of its period it is there."""
    task = rwrl_humanoid.make(Prior("data", informative=True), (100.0,), CLOCKED)
    env = task.open()
    x, _ = env.reset(seed=0)
    assert len(x) == task.state_size == len(task.start(jax.random.key(0)))
    np.testing.assert_array_equal(x[-2:], task.start(jax.random.key(0))[-2:])
    for _ in range(5):
        x, *_ = env.step(np.zeros(task.action_size))
    np.testing.assert_allclose(x[-2:], [1, 0], atol=1e-12)
    env.close()
