"""The point robot: what lies where, what it sees, what it earns and what it costs, computed once more by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.behaviours import record
from sbsrl.errors import UserError
from sbsrl.systems.point_places import BINS, Places, draw_goal, draw_places, lidar
from sbsrl.systems.point_robot import GOAL_RADIUS, PointRobotEnv
from sbsrl.tasks import make_task
from sbsrl.tasks.go_to_goal import GoToGoalSettings

pytest.importorskip("mujoco", reason="MuJoCo is an extra")


@pytest.fixture
def env():
    return PointRobotEnv(8, 1, 1000, 4)


KEEPOUTS = {"robot": 0.4, "goal": 0.305, "hazards": 0.18, "vases": 0.15}


def listed(places):
    """Every thing with how far it keeps others away; the goal is second."""
    places = Places(*map(np.asarray, places))
    rows = [(places.robot[:2], KEEPOUTS["robot"]), (places.goal, KEEPOUTS["goal"])]
    rows += [(place, KEEPOUTS["hazards"]) for place in places.hazards]
    return rows + [(place, KEEPOUTS["vases"]) for place in places.vases]


@pytest.mark.parametrize("counts", [(8, 1), (10, 10)])
def test_nothing_lies_too_close_to_anything(counts):
    for seed in range(20):
        places = draw_places(jax.random.key(seed), *counts)
        assert (len(places.hazards), len(places.vases)) == counts
        things = listed(places)
        for i, (one, keeps) in enumerate(things):
            assert np.abs(one).max() <= 2 - keeps
            for other, also in things[:i]:
                assert np.linalg.norm(one - other) >= keeps + also - 1e-9


def test_the_next_goal_keeps_away_from_what_is_there():
    places = draw_places(jax.random.key(0), 8, 1)
    goals = np.stack([draw_goal(jax.random.key(seed), places) for seed in range(50)])
    assert np.ptp(goals, axis=0).min() > 1.5
    for place, keeps in [listed(places)[0], *listed(places)[2:]]:
        assert np.linalg.norm(goals - place, axis=1).min() >= keeps + KEEPOUTS["goal"] - 1e-9


def by_hand(robot, things):
    """Bin by bin and thing by thing, as Safety Gym describes its lidar."""
    bins = np.zeros(BINS)
    for x, y in np.asarray(things):
        dx, dy = x - robot[0], y - robot[1]
        c, s = np.cos(robot[2]), np.sin(robot[2])
        ahead, left = c * dx + s * dy, -s * dx + c * dy
        reading = max(0.0, 3.0 - np.hypot(dx, dy)) / 3.0
        place = (np.arctan2(left, ahead) % (2 * np.pi)) / (2 * np.pi / BINS)
        own, share = int(place), place - int(place)
        for number, value in ((own, 1.0), (own + 1, share), (own - 1, 1 - share)):
            bins[number % BINS] = max(bins[number % BINS], value * reading)
    return bins


def test_the_lidar_reads_what_is_computed_thing_by_thing():
    rng = np.random.default_rng(0)
    for count in (1, 3, 20):
        robot, things = rng.uniform(-2, 2, 3), rng.uniform(-3, 3, (count, 2))
        np.testing.assert_allclose(lidar(jnp.asarray(robot), jnp.asarray(things)), by_hand(robot, things), atol=1e-12)


def test_reward_and_cost_follow_from_the_states_between(env):
    """Of a reckless driver: the way towards the goal, 1 for each goal, and costs, recomputed step by step."""
    observation, _ = env.reset(seed=4)
    rng, goals, offences = np.random.default_rng(0), 0, 0
    single = PointRobotEnv(8, 1, 1000, 1)
    single.reset(seed=4)
    for k in range(250):
        towards = np.arctan2(
            *(observation[16:32] ** 2 @ f(2 * np.pi * (np.arange(16) + 0.5) / 16) for f in (np.sin, np.cos))
        )
        action = np.clip([0.8, 0.8 * towards], -1, 1) + 0.1 * rng.normal(size=2)
        observation, reward, terminated, truncated, info = env.step(action)
        expected, cost = 0.0, 0.0
        for _ in range(4):
            before = np.linalg.norm(np.asarray(single.places.robot[:2]) - np.asarray(single.places.goal))
            goal = np.asarray(single.places.goal)
            single.step(action)
            places = single.places
            after = np.linalg.norm(np.asarray(places.robot[:2]) - goal)
            expected += before - after
            if after <= GOAL_RADIUS:
                expected, goals = expected + 1.0, goals + 1
            inside = np.linalg.norm(np.asarray(places.hazards) - np.asarray(places.robot[:2]), axis=1).min() <= 0.2
            moving = np.linalg.norm(single._data.joint("vase0").qvel[:3]) > 0.05
            cost += inside or moving or single._touches()
        assert reward == pytest.approx(expected, abs=1e-9)
        assert info["cost"] == cost
        offences += cost
        assert not terminated
        assert truncated == (k == 249)
    assert goals >= 2
    assert offences > 0


def test_a_vase_that_is_pushed_costs(env):
    """The robot is set before the vase and drives into it."""
    env.reset(seed=0)
    env._place(Places(jnp.zeros(3), jnp.asarray([1.5, 1.5]), jnp.full((8, 2), -1.7), jnp.asarray([[0.4, 0.0]])))
    costs = [env.step(np.array([1.0, 0.0]))[4]["cost"] for _ in range(15)]
    assert costs[0] == 0
    assert max(costs) == 4
    assert env.places.vases[0, 0] > 0.45


def test_the_robot_moves_as_its_motors_do(env):
    """Speed and turn rate settle where motor and damping balance: 0.05 x 0.3 / 0.01 m/s, and 0.3 / 0.095 rad/s."""
    env.reset(seed=0)
    env._place(Places(jnp.zeros(3), jnp.asarray([1.5, 1.5]), jnp.full((8, 2), -1.7), jnp.asarray([[-1.0, 1.0]])))
    for _ in range(60):
        observation, *_ = env.step(np.array([1.0, 0.0]))
    assert observation[34] == pytest.approx(1.5, rel=0.01)
    for _ in range(5):
        observation, *_ = env.step(np.array([0.0, 1.0]))
    assert observation[36] == pytest.approx(0.3 / 0.095, rel=0.01)


def test_the_same_seed_gives_the_same_episode(env):
    runs = []
    for _ in range(2):
        env.reset(seed=7)
        runs.append(np.stack([env.step(np.array([0.5, 0.3]))[0] for _ in range(20)]))
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize(("action", "said"), [([1.0], "give one of shape"), ([np.nan, 0.0], "is not finite")])
def test_actions_that_are_none_are_refused(env, action, said):
    env.reset(seed=0)
    with pytest.raises(UserError, match=said):
        env.step(np.array(action))


@pytest.mark.parametrize("layout", ["easy", "full"])
def test_initial_states_are_drawn_as_resets_are(layout):
    task = make_task("go-to-goal", settings=GoToGoalSettings(layout))
    real = np.stack([task.open().reset(seed=seed)[0] for seed in range(1)])
    assert real.shape[1] == task.state_size
    seed_0 = np.asarray(task.start(jax.random.fold_in(jax.random.key(0), 0)))
    np.testing.assert_allclose(real[0], seed_0, atol=1e-6)


def test_the_driver_reaches_goals_and_is_not_always_safe():
    """Over 4 episodes: better than standing still, which earns 0, and a step that costs somewhere."""
    task = make_task("go-to-goal")
    data = record(task, task.behaviours["driver"], 4, jax.random.key(0))
    assert data.rewards.sum() / 4 > 5
    assert data.costs.sum() > 0
