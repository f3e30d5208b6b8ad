"""What the point robot's lidars will read after a movement, if what they see stands still.

A lidar tells directions and distances. Seen from the robot, everything that stands moves against its own movement, as a
rigid body; that is geometry, and no network need learn it. What cannot be known is left out: things hidden behind
others, vases that are pushed, and where the next goal lies.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..types import Scalar
from .point_places import BINS, RANGE, readings

__all__ = ["TINY", "Movement", "goal_seen", "moved_goal", "moved_things", "movement", "seen_after", "things_seen"]

Lidar = Float[Array, "16"]
SMALL, TINY = 1e-6, 1e-12
"""A reading below the first is none."""


class Movement(NamedTuple):
    """Of the robot, in the frame it had before."""

    ahead: Scalar
    left: Scalar
    turn: Scalar
    """Radians."""


def movement(before: Float[Array, "7"], after: Float[Array, "7"], seconds: float) -> Movement:
    """From the robot's other sensors before and after: velocity (numbers 2 and 3) and compass (the last two).

    The way is the mean of both velocities, each in its own frame.
    """
    turn = jnp.arctan2(before[5], before[6]) - jnp.arctan2(after[5], after[6])
    turn = -jnp.arctan2(jnp.sin(turn), jnp.cos(turn))
    c, s = jnp.cos(turn), jnp.sin(turn)
    later = jnp.stack([c * after[2] - s * after[3], s * after[2] + c * after[3]])
    ahead, left = seconds * (before[2:4] + later) / 2
    return Movement(ahead, left, turn)


def things_seen(lidar: Lidar) -> tuple[Float[Array, "16 2"], Float[Array, "16"]]:
    """A place for each bin, ahead and left in metres, and its reading; 0 where there is none to tell.

    A thing's own bin reads s, the next one at least a share p of that and the one before at least 1 - p, where p is how
    far it is from the bin's first edge to its last. So p is known to lie between two limits, which are the same unless
    other things are near. A bin that reads less than a neighbour may read what that spills into it and no more: what is
    there is not believed to be a thing, since such ghosts would get in the robot's way where nothing is.
    """
    after, before = jnp.roll(lidar, -1), jnp.roll(lidar, 1)
    known = jnp.maximum(lidar, SMALL)
    share = (jnp.maximum(0.0, 1 - before / known) + jnp.minimum(1.0, after / known)) / 2
    own = (lidar > SMALL) & (lidar >= after) & (lidar >= before)
    angle = (jnp.arange(BINS, dtype=lidar.dtype) + share) * 2 * jnp.pi / BINS
    distance = RANGE * (1 - lidar)
    return distance[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1), jnp.where(own, lidar, 0.0)


def goal_seen(lidar: Lidar) -> tuple[Float[Array, "2"], Scalar]:
    """Where the goal is, exactly, and 1; or anything and 0 if it is out of range."""
    places, _ = things_seen(lidar)
    nearest = jnp.argmax(lidar)
    return places[nearest], (lidar[nearest] > SMALL).astype(lidar.dtype)


def seen_after(place: Float[Array, "*n 2"], way: Movement) -> Float[Array, "*n 2"]:
    """The same places, seen after a movement."""
    c, s = jnp.cos(way.turn), jnp.sin(way.turn)
    ahead, left = place[..., 0] - way.ahead, place[..., 1] - way.left
    return jnp.stack([c * ahead + s * left, -s * ahead + c * left], axis=-1)


def moved_things(lidar: Lidar, way: Movement) -> Lidar:
    """What the lidar will read of all that it sees now."""
    places, seen = things_seen(lidar)
    after = seen_after(places, way)
    distance = jnp.where(seen > 0, _length(after), RANGE)  # what is out of range reads nothing
    return readings(jnp.arctan2(after[:, 1], after[:, 0]), distance)


def moved_goal(lidar: Lidar, way: Movement) -> tuple[Float[Array, "2"], Lidar]:
    """Where the goal will be, and what the lidar will read of it; zeros where it is not seen."""
    place, seen = goal_seen(lidar)
    after = seen_after(place[None], way)
    return after[0], seen * readings(jnp.arctan2(after[:, 1], after[:, 0]), _length(after))


def _length(places: Float[Array, "n 2"]) -> Float[Array, " n"]:
    return jnp.sqrt(jnp.sum(places**2, axis=1) + TINY)  # the root's slope at 0 is no number
