"""Drive to goals: what is said to be known of the lidars and the reward is what the environment does."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.systems.point_places import RANGE
from sbsrl.systems.point_robot import PointRobotEnv
from sbsrl.tasks import make_task
from sbsrl.tasks.go_to_goal import (
    COST_STRUCTURE,
    GOAL,
    OBSTACLES,
    SENSORS,
    STRUCTURE,
    GoToGoalSettings,
    complete,
    nearness,
    progress,
)

pytest.importorskip("mujoco", reason="MuJoCo is an extra")
STEPS = 250


class Step(NamedTuple):
    """One of an episode: states before and after it, its reward, and whether a goal was reached."""

    x: jax.Array
    a: jax.Array
    y: jax.Array
    reward: float
    reached: bool

    @property
    def foretold(self):
        """The next state, from the robot's other sensors there."""
        return foretell(self.x, self.a, self.y[SENSORS])

    @property
    def progress(self):
        return float(way(self.x, self.a, self.y))


foretell, way = jax.jit(complete), jax.jit(progress)


@pytest.fixture(scope="module")
def steps():
    """An episode of the driver, who reaches goals."""
    env, driver = PointRobotEnv(8, 1, 1000, 4), make_task("go-to-goal").behaviours["driver"](jax.random.key(1))
    (x, _), hand, found = env.reset(seed=2), driver.init(), []
    for t in range(STEPS):
        a, hand, _ = driver.act(jnp.asarray(x), hand, jax.random.fold_in(jax.random.key(0), t))
        goal = env.places.goal
        y, reward, *_ = env.step(np.asarray(a))
        reached = not np.array_equal(env.places.goal, goal)
        found.append(Step(jnp.asarray(x), a, jnp.asarray(y), reward, reached))
        x = y
    return found


def on_the_way(steps):
    """Those in which no goal was reached, and the goal was in sight at both ends."""
    return [s for s in steps if not s.reached and min(float(jnp.max(z[GOAL])) for z in (s.x, s.y)) > 0]


def test_progress_is_the_reward_away_from_goals(steps):
    """The way is taken from velocities at both ends of a step of 0.08 s: 5 mm."""
    checked = on_the_way(steps)
    assert len(checked) > 200
    assert max(abs(s.progress - s.reward) for s in checked) < 5e-3
    assert max(abs(s.reward) for s in checked) > 0.04


def test_a_goal_that_is_reached_is_worth_1(steps):
    """Of four goals; 0.05, since the next goal's way counts in the environment from the moment it is there."""
    reached = [s for s in steps if s.reached]
    assert len(reached) == 4
    for s in reached:
        assert s.progress == pytest.approx(s.reward, abs=0.05)
        assert s.progress > 1


def test_the_next_lidar_of_the_goal_is_foretold(steps):
    """Step by step while the goal stays; 0.02, of which most is what a bin spills into its neighbours."""
    for s in on_the_way(steps):
        np.testing.assert_allclose(s.foretold[GOAL], s.y[GOAL], atol=0.02)
        np.testing.assert_array_equal(s.foretold[SENSORS], s.y[SENSORS])


def test_the_next_lidar_of_the_nearest_thing_is_foretold(steps):
    """How near it is: 5e-3, which are 15 mm; nine of ten times ten times better than that nothing changes."""
    foretold, before, after = (
        np.array([np.max(z[OBSTACLES]) for z in states])
        for states in zip(*((s.foretold, s.x, s.y) for s in steps), strict=True)
    )
    errors, still = np.abs(foretold - after), np.abs(before - after)
    assert errors.max() < 5e-3
    assert 10 * np.quantile(errors, 0.9) < np.quantile(still, 0.9)


def test_half_of_all_bins_are_foretold_though_things_hide_behind_others(steps):
    """The median error is 1e-3 at most, a tenth of that of who says that nothing changes."""
    errors = np.abs([s.foretold - s.y for s in steps])[:, OBSTACLES]
    still = np.abs([s.x - s.y for s in steps])[:, OBSTACLES]
    assert np.median(errors) < 1e-3
    assert 10 * np.median(errors) < np.median(still)


def test_another_goal_follows_one_that_is_reached(steps):
    """It is in sight, and not as near as the last one was."""
    for s in steps:
        if s.reached:
            assert 0 < float(jnp.max(s.foretold[GOAL])) < 1 - 0.5 / RANGE


def test_it_is_the_same_in_the_precision_of_plans(steps):
    """1e-5."""
    for s in on_the_way(steps)[::25]:
        x, a, y = (part.astype(jnp.float32) for part in (s.x, s.a, s.y))
        np.testing.assert_allclose(foretell(x, a, y[SENSORS]), s.foretold, atol=1e-5)
        assert way(x, a, y).dtype == jnp.float32
        assert float(way(x, a, y)) == pytest.approx(s.progress, abs=1e-5)


def test_without_anything_in_sight_no_way_counts():
    x = jnp.zeros(39).at[34].set(1.0).at[38].set(-0.5)
    assert float(progress(x, jnp.zeros(2), x)) == 0


def test_a_goal_out_of_sight_lies_among_the_things_that_are_seen():
    """Two of them, both ahead: to drive there is a way towards it; 1 m/s for 0.08 s, less for the angle."""
    x = jnp.zeros(39).at[1].set(0.5).at[14].set(0.5).at[34].set(1.0).at[38].set(-0.5)
    assert 0.05 < float(progress(x, jnp.zeros(2), x)) <= 0.08


def test_what_decides_about_costs_is_the_nearest_thing():
    """One straight ahead, 0.2 m from its edge, to which the robot drives at 1 m/s: the units are 0.1 m and 0.5 m/s."""
    seen = jnp.zeros(19).at[0].set(1 - 0.4 / 3).at[15].set(1 - 0.4 / 3).at[16].set(1.0)
    found = np.asarray(nearness(seen))
    assert found.shape == (COST_STRUCTURE.size,)
    assert found[0] == pytest.approx(2.0, abs=1e-6)
    assert found[2] == pytest.approx(2.0, abs=0.2)  # coming at about 1 m/s
    assert found[3] == pytest.approx(2.0)


@pytest.mark.parametrize("view", ["geometry", "learned"])
def test_the_geometry_is_known_if_that_is_chosen(view):
    task = make_task("go-to-goal", settings=GoToGoalSettings(view=view))
    known = (task.structure, task.cost_structure, task.known.reward)
    assert known == ((STRUCTURE, COST_STRUCTURE, progress) if view == "geometry" else (None, None, None))
