"""What is known of joints and their limits agrees with what costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.systems.joint_limits import excesses, joints_beyond
from sbsrl.tasks import rwrl_humanoid, rwrl_quadruped

LIMITS = [(-30.0, 30.0), (0.0, 40.0), (-40.0, 30.0), (-25.0, 35.0)]


def found(angles, rates=(0.0,) * 4, seconds=0.02):
    seen = jnp.asarray([*np.radians(angles), *np.radians(rates)], jnp.float32)
    return np.asarray(excesses(LIMITS, seconds)(seen))


def test_the_nearest_three_come_first_in_units_of_5_degrees():
    """Degrees beyond: 5, -10, -30, -20; 1e-4."""
    np.testing.assert_allclose(found([35.0, 10.0, 0.0, 15.0]), [1, -2, -4], atol=1e-4)


def test_joints_are_looked_at_where_they_will_be_after_a_step():
    """At 500 degrees per second 10 degrees farther after 0.02 s."""
    np.testing.assert_allclose(found([25.0, 20, -5, 5], (500.0, 0, 0, 0)), found([35.0, 20, -5, 5]), atol=1e-4)


suite = pytest.importorskip("dm_control.suite", reason="dm-control is an extra")
BODIES = {"humanoid": ("walk", rwrl_humanoid, "LIMITS"), "quadruped": ("run", rwrl_quadruped, "JOINTS")}


@pytest.mark.parametrize("name", BODIES)
def test_on_random_poses_a_joint_is_beyond_if_it_costs(name):
    """Of the bodies themselves, through their observations: 300 poses at rest, half of them within all limits."""
    what, module, limits = BODIES[name]
    limits = getattr(module, limits)
    env, cost = suite.load(name, what), joints_beyond(limits)
    env.reset()
    structure, rng = module.COST_STRUCTURE, np.random.default_rng(0)
    decide, charged = jax.jit(structure.features), []
    for i in range(300):
        stretch = 0.99 if i % 2 else 1.1
        with env.physics.reset_context():
            for joint, (low, high) in limits.items():
                middle, half = np.radians([(low + high) / 2, (high - low) / 2])
                env.physics.named.data.qpos[joint] = middle + stretch * half * rng.uniform(-1, 1)
        seen = np.concatenate([np.ravel(part) for part in env.task.get_observation(env.physics).values()])
        inputs = jnp.asarray(seen[np.array(structure.inputs)], jnp.float32)
        charged.append(cost(env.physics))
        assert (float(decide(inputs)[0]) > 0) == bool(charged[-1])
    assert 0.3 < np.mean(charged) < 0.6
