"""Humanoid and quadruped: the suite's rewards, the joints' limits as costs, a beginning on the feet, and behaviours."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from sbsrl.behaviours import record
from sbsrl.systems.joint_limits import joints_beyond
from sbsrl.tasks import make_task, rwrl_humanoid, rwrl_quadruped

suite = pytest.importorskip("dm_control.suite", reason="dm-control is an extra")
BODIES = {"rwrl-quadruped": ("quadruped", "run", rwrl_quadruped), "rwrl-humanoid": ("humanoid", "walk", rwrl_humanoid)}


@pytest.fixture(params=BODIES, scope="module")
def body(request):
    domain, what, module = BODIES[request.param]
    env = module.open_system()
    yield make_task(request.param), env, suite.load(domain, what)
    env.close()


def flat(observation):
    return np.concatenate([np.ravel(part) for part in observation.values()])


def test_steps_are_those_of_the_suite_from_the_same_place(body):
    """Observations and rewards against the suite itself; costs against angles that are read by name."""
    task, env, plain = body
    limits = {"rwrl-quadruped": rwrl_quadruped.JOINTS, "rwrl-humanoid": rwrl_humanoid.LIMITS}[task.name]
    observation, _ = env.reset(seed=3)
    plain.reset()
    with plain.physics.reset_context():
        plain.physics.set_state(env._env.physics.get_state())
    np.testing.assert_allclose(observation, flat(plain.task.get_observation(plain.physics)), atol=1e-9)
    rng, costs = np.random.default_rng(0), []
    for _ in range(30):
        action = rng.uniform(task.action_low, task.action_high)
        now, (seen, reward, terminated, truncated, info) = plain.step(action), env.step(action)
        np.testing.assert_allclose(seen, flat(now.observation), rtol=1e-6, atol=1e-6)
        assert reward == pytest.approx(now.reward, abs=1e-9)
        angles = {joint: float(np.degrees(plain.physics.named.data.qpos[joint][0])) for joint in limits}
        assert info["cost"] == any(not low <= angles[joint] <= high for joint, (low, high) in limits.items())
        assert not terminated
        assert not truncated
        costs.append(info["cost"])
    assert sum(costs) > 0  # random actions do not keep to the limits


def test_limits_of_the_humanoid_are_those_of_the_model():
    """All but the ankles'."""
    model = suite.load("humanoid", "walk").physics.model
    found = {model.id2name(i, "joint"): tuple(np.degrees(model.jnt_range[i]).round(3)) for i in range(1, model.njnt)}
    assert list(found) == list(rwrl_humanoid.JOINTS)
    assert {joint: limits for joint, limits in found.items() if "ankle" not in joint} == rwrl_humanoid.LIMITS


def test_limits_of_the_quadruped_are_20_degrees_within_those_of_the_model():
    model = suite.load("quadruped", "run").physics.model
    found = {model.id2name(i, "joint"): np.degrees(model.jnt_range[i]) for i in range(1, model.njnt)}
    assert found.keys() == rwrl_quadruped.JOINTS.keys()
    for joint, (low, high) in found.items():
        assert rwrl_quadruped.JOINTS[joint] == pytest.approx((low + 20, high - 20))


def test_a_joint_beyond_its_limits_costs_1():
    env = suite.load("quadruped", "run")
    cost = joints_beyond({"yaw_front_left": (-30.0, 30.0), "ankle_back_left": (-25.0, 35.0)})
    for angles, expected in (((0, 0), 0.0), ((31, 0), 1.0), ((0, -26), 1.0), ((29, 34), 0.0), ((-31, 36), 1.0)):
        with env.physics.reset_context():
            env.physics.named.data.qpos[["yaw_front_left", "ankle_back_left"]] = np.radians(angles)
        assert cost(env.physics) == expected


def test_it_begins_on_its_feet_a_little_different_each_time(body):
    task, env, _ = body
    first = np.stack([env.reset(seed=seed)[0] for seed in range(5)])
    assert len(np.unique(first, axis=0)) == 5
    assert env._env.physics.torso_upright() == pytest.approx(1.0)
    assert env._env.physics.data.ncon == 0 or task.name == "rwrl-humanoid"  # which stands
    assert np.ptp(first[:, : len(task.action_low)], axis=0).max() < 0.15  # radians


def test_initial_states_are_known_from_resets(body):
    """Each number within 6 deviations of those of 20 resets with other seeds, and 1e-3."""
    task, env, _ = body
    real = np.stack([env.reset(seed=1000 + seed)[0] for seed in range(20)])
    known = np.asarray(jax.vmap(task.start)(jax.random.split(jax.random.key(0), 20)))
    assert known.shape[1] == task.state_size == len(set(task.state_names))
    away = np.abs(known.mean(axis=0) - real.mean(axis=0))
    assert np.all(away < 6 * real.std(axis=0) / np.sqrt(20) + 6 * known.std(axis=0) / np.sqrt(20) + 1e-3)


@pytest.mark.parametrize(
    ("name", "behaviour", "least", "most"), [("rwrl-quadruped", "trot", 135, 40), ("rwrl-humanoid", "stand", 35, 60)]
)
def test_the_behaviour_is_better_than_nothing_and_within_the_budget(name, behaviour, least, most):
    """In 250 steps: the animal moves on (standing still earns 125), and the human stands (falling earns 10)."""
    task = make_task(name)
    short = replace(task, horizon=250)
    data = record(short, task.behaviours[behaviour], 2, jax.random.key(5))
    assert data.rewards.sum() / 2 > least
    assert data.costs.sum() / 2 < most
