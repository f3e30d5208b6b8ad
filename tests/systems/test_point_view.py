"""What lidars will read after a movement: as if the robot had really moved, and never more than there is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.systems.point_places import BINS, RANGE, Places, lidar, observation
from sbsrl.systems.point_view import (
    Movement,
    goal_seen,
    moved_goal,
    moved_things,
    movement,
    seen_after,
    things_seen,
)

CASES = range(40)
"""Random poses, movements and places."""


def drawn(seed):
    """A pose, and a movement of up to 0.3 m and half a radian from it, in the frame it had before."""
    rng = np.random.default_rng(seed)
    before = np.array([*rng.uniform(-1.5, 1.5, 2), rng.uniform(-np.pi, np.pi)])
    way = Movement(*map(jnp.asarray, (rng.uniform(-0.3, 0.3), rng.uniform(-0.1, 0.1), rng.uniform(-0.5, 0.5))))
    c, s = np.cos(before[2]), np.sin(before[2])
    moved = before + np.array([c * way.ahead - s * way.left, s * way.ahead + c * way.left, way.turn])
    return rng, before, way, moved


def read(pose, things):
    return np.asarray(lidar(jnp.asarray(pose), jnp.asarray(np.asarray(things, float).reshape(-1, 2))))


def around(pose, angles, distances):
    """Things in these directions, seen from a pose."""
    return pose[:2] + distances[:, None] * np.stack([np.cos(pose[2] + angles), np.sin(pose[2] + angles)], axis=1)


def test_the_goal_is_foretold_exactly():
    """Wherever it is in range: where it is, and what the lidar reads after a movement; 1e-6."""
    for seed in CASES:
        rng, before, way, moved = drawn(seed)
        goal = around(before, rng.uniform(-np.pi, np.pi, 1), rng.uniform(0.4, RANGE - 0.1, 1))
        place, seen = goal_seen(jnp.asarray(read(before, goal)))
        c, s = np.cos(before[2]), np.sin(before[2])
        np.testing.assert_allclose(place, np.array([[c, s], [-s, c]]) @ (goal[0] - before[:2]), atol=1e-6)
        assert float(seen) == 1
        after, reading = moved_goal(jnp.asarray(read(before, goal)), way)
        np.testing.assert_allclose(reading, read(moved, goal), atol=1e-6)
        assert np.linalg.norm(after) == pytest.approx(np.linalg.norm(goal[0] - moved[:2]), abs=1e-6)


def test_of_what_is_out_of_range_nothing_is_read():
    _, before, way, _ = drawn(0)
    far = read(before, around(before, np.array([0.3]), np.array([RANGE + 0.01])))
    np.testing.assert_array_equal(far, np.zeros(BINS))
    assert float(goal_seen(jnp.asarray(far))[1]) == 0
    np.testing.assert_array_equal(moved_goal(jnp.asarray(far), way)[1], np.zeros(BINS))
    np.testing.assert_array_equal(moved_things(jnp.asarray(far), way), np.zeros(BINS))


def test_things_that_are_far_apart_are_foretold_exactly():
    """Four of them, about four bins from each other; 1e-6."""
    for seed in CASES:
        rng, before, way, moved = drawn(seed)
        angles = rng.uniform(0, 2 * np.pi) + np.arange(4) * np.pi / 2 + rng.uniform(-0.1, 0.1, 4)
        things = around(before, angles, rng.uniform(0.8, 2.5, 4))
        found = moved_things(jnp.asarray(read(before, things)), way)
        np.testing.assert_allclose(found, read(moved, things), atol=1e-6)


def test_nothing_is_invented():
    """Among 20 things: each that is seen is as far away as one that is there, and the nearest is seen; 1e-6 m."""
    for seed in CASES:
        rng, before, _, _ = drawn(seed)
        things = rng.uniform(-2, 2, (20, 2))
        now = jnp.asarray(read(before, things))
        places, readings = (np.asarray(part) for part in things_seen(now))
        real, seen = np.linalg.norm(things - before[:2], axis=1), np.linalg.norm(places[readings > 0], axis=1)
        assert seen.min() == pytest.approx(real.min(), abs=1e-6)
        assert np.abs(seen[:, None] - real[None]).min(axis=1).max() < 1e-6
        still = moved_things(now, Movement(*jnp.zeros(3)))
        assert float(jnp.max(still)) == pytest.approx(float(jnp.max(now)), abs=1e-6)


def test_after_a_movement_nothing_is_nearer_than_what_is_there():
    """Of 9 things, as in the task: by no more than 0.1 m, by which directions that others hide may mislead."""
    for seed in CASES:
        rng, before, way, moved = drawn(seed)
        things = rng.uniform(-2, 2, (9, 2))
        foretold = np.max(moved_things(jnp.asarray(read(before, things)), way))
        assert foretold <= read(moved, things).max() + 0.1 / RANGE


def test_it_is_the_same_in_the_precision_of_plans():
    """1e-5."""
    _, before, way, _ = drawn(1)
    now = read(before, np.random.default_rng(1).uniform(-2, 2, (9, 2)))
    for what in (moved_things, lambda z, way: moved_goal(z, way)[1]):
        found, exact = (
            what(jnp.asarray(now, dtype), Movement(*(part.astype(dtype) for part in way)))
            for dtype in (jnp.float32, jnp.float64)
        )
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, exact, atol=1e-5)


@pytest.mark.parametrize(("first", "speed", "turn"), [(0.3, 0.7, 0.2), (3.1, -0.5, 0.3), (-3.1, 1.0, -3.0)])
def test_a_movement_is_read_from_velocity_and_compass(first, speed, turn):
    """Of a robot that goes straight, of one that turns on the spot, and of one that turns while it coasts; 1e-9."""

    def sensors(heading, forward, left):
        nothing = jnp.zeros((0, 2))
        places = Places(jnp.array([0.0, 0.0, heading]), jnp.zeros(2), nothing, nothing)
        return observation(places, jnp.array([0.0, 0.0, forward, left, 0.0]))[-7:]

    straight = movement(sensors(first, speed, 0.0), sensors(first, speed, 0.0), 0.08)
    np.testing.assert_allclose(straight, [0.08 * speed, 0, 0], atol=1e-9)
    spin = movement(sensors(first, 0.0, 0.0), sensors(first + turn, 0.0, 0.0), 0.08)
    np.testing.assert_allclose(spin, [0, 0, turn], atol=1e-9)
    c, s = np.cos(turn), np.sin(turn)  # the same velocity in the square, seen from another direction
    coasting = movement(sensors(first, speed, 0.0), sensors(first + turn, c * speed, -s * speed), 0.08)
    np.testing.assert_allclose(coasting, [0.08 * speed, 0, turn], atol=1e-9)


def test_places_turn_against_the_robot():
    way = Movement(*map(jnp.asarray, (0.5, 0.0, np.pi / 2)))
    np.testing.assert_allclose(seen_after(jnp.array([[1.5, 0.0], [0.5, 2.0]]), way), [[0, -1], [2, 0]], atol=1e-12)


def test_slopes_are_numbers_everywhere():
    """Also where nothing is seen, and where the robot all but stands on a thing."""
    rng = np.random.default_rng(0)
    for now in (np.zeros(BINS), read(np.zeros(3), np.full((1, 2), 1e-6)), rng.uniform(size=BINS)):
        for what in (lambda z, way: jnp.sum(moved_things(z, way)), lambda z, way: jnp.sum(moved_goal(z, way)[1])):
            slopes = jax.grad(what, argnums=(0, 1))(jnp.asarray(now), Movement(*jnp.array([0.0, 0.0, 0.1])))
            assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slopes))
