"""Where the things of Safety Gym's goal task lie, and what the point robot sees of them.

A robot, a goal, hazards and vases in a square of 4 m. Nothing lies closer to anything else than both keep out. The
lidars have 16 bins around the robot, beginning where it looks: each reads 1 - r / 3 m of the nearest thing in its
direction, and spills into its neighbours as the thing moves from bin to bin.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax import EXACT
from ..types import PRNGKey, Scalar

__all__ = ["BINS", "HAZARD_RADIUS", "RANGE", "Places", "draw_goal", "draw_places", "lidar", "observation", "readings"]

EXTENT = 2.0
"""Things lie within this of the middle, in metres along both axes."""
ROBOT_KEEPOUT, GOAL_KEEPOUT, HAZARD_KEEPOUT, VASE_KEEPOUT = 0.4, 0.305, 0.18, 0.15
HAZARD_RADIUS = 0.2
BINS, RANGE = 16, 3.0
FIELD = (0.0, -0.5)
"""Of the magnet that the robot's compass feels, in the frame of the square."""
CANDIDATES = 200
"""Places that are tried for each thing; if none is free, it takes the one that is least crowded."""

Pose = Float[Array, "3"]
"""Place and heading of the robot."""


class Places(NamedTuple):
    """Where everything lies."""

    robot: Pose
    goal: Float[Array, "2"]
    hazards: Float[Array, "H 2"]
    vases: Float[Array, "V 2"]


@partial(jax.jit, static_argnums=(1, 2))
def draw_places(key: PRNGKey, hazards: int, vases: int) -> Places:
    """A layout with so many hazards and vases."""
    keepouts = (ROBOT_KEEPOUT, GOAL_KEEPOUT, *(HAZARD_KEEPOUT,) * hazards, *(VASE_KEEPOUT,) * vases)
    placed, kept = jnp.zeros((0, 2), EXACT), jnp.zeros(0, EXACT)
    for i, keepout in enumerate(keepouts):
        free = _free_place(jax.random.fold_in(key, i), keepout, placed, kept)
        placed, kept = jnp.concatenate([placed, free[None]]), jnp.append(kept, keepout)
    heading = jax.random.uniform(jax.random.fold_in(key, len(keepouts)), (1,), EXACT, -jnp.pi, jnp.pi)
    return Places(jnp.concatenate([placed[0], heading]), placed[1], placed[2 : 2 + hazards], placed[2 + hazards :])


@jax.jit
def draw_goal(key: PRNGKey, places: Places) -> Float[Array, "2"]:
    """The next goal, among things that lie where they do now."""
    others = jnp.concatenate([places.robot[None, :2], places.hazards, places.vases])
    counts = (1, len(places.hazards), len(places.vases))
    kept = jnp.repeat(
        jnp.asarray([ROBOT_KEEPOUT, HAZARD_KEEPOUT, VASE_KEEPOUT]), jnp.asarray(counts), total_repeat_length=sum(counts)
    )
    return _free_place(key, GOAL_KEEPOUT, others, kept)


def _free_place(
    key: PRNGKey, keepout: float, placed: Float[Array, "n 2"], kept: Float[Array, " n"]
) -> Float[Array, "2"]:
    reach = EXTENT - keepout
    tried = jax.random.uniform(key, (CANDIDATES, 2), EXACT, -reach, reach)
    if not len(placed):
        return tried[0]
    gaps = jnp.linalg.norm(tried[:, None] - placed[None], axis=2) - keepout - kept[None]
    room = jnp.min(gaps, axis=1)
    return tried[jnp.where(jnp.any(room >= 0), jnp.argmax(room >= 0), jnp.argmax(room))]


def lidar(robot: Pose, things: Float[Array, "n 2"]) -> Float[Array, "16"]:
    """What the bins read of these things."""
    away = things - robot[None, :2]
    return readings(_directions(away) - robot[2], jnp.linalg.norm(away, axis=1))


def _directions(away: Float[Array, "n 2"]) -> Float[Array, " n"]:
    return jnp.arctan2(away[:, 1], away[:, 0])


def readings(direction: Float[Array, " n"], distance: Float[Array, " n"]) -> Float[Array, "16"]:
    """What the bins read of things in these directions, in radians to the left of where the robot looks."""
    angle = jnp.mod(direction, 2 * jnp.pi) * BINS / (2 * jnp.pi)
    reading = jnp.maximum(0.0, RANGE - distance) / RANGE
    own = jnp.floor(angle).astype(int) % BINS
    share = angle - jnp.floor(angle)
    found = jnp.zeros(BINS, reading.dtype).at[own].max(reading)
    return found.at[(own + 1) % BINS].max(share * reading).at[own - 1].max((1 - share) * reading)


@jax.jit
def observation(places: Places, sensors: Float[Array, "5"]) -> Float[Array, "39"]:
    """Lidar of hazards and vases, lidar of the goal, then acceleration, velocity (both forward and left) and turn rate.

    At the end the compass: the magnetic field in the robot's frame.
    """
    obstacles = jnp.concatenate([places.hazards, places.vases])
    return jnp.concatenate(
        [lidar(places.robot, obstacles), lidar(places.robot, places.goal[None]), sensors, compass(places.robot[2])]
    )


def compass(heading: Scalar) -> Float[Array, "2"]:
    """The magnetic field in the frame of a robot with this heading."""
    c, s = jnp.cos(heading), jnp.sin(heading)
    return jnp.stack([c * FIELD[0] + s * FIELD[1], -s * FIELD[0] + c * FIELD[1]])
