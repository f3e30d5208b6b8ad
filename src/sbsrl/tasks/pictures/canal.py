"""A boat between the banks of a canal and its basin."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from ...systems.sketch import Sketch
from .colours import BODY, EDGE, FORBIDDEN, GOAL, GROUND, PAPER, TRAIL

__all__ = ["Water", "draw"]

SIZE, WIDTH = (480, 240), 84.0
LENGTH, BEAM = 4.6, 1.9
"""Of the boat, which is drawn larger than it is."""


class Water(NamedTuple):
    """Where a boat may be, in metres: within `margin` of a disc, or of the line from its middle to the quay."""

    basin: float
    radius: float
    quay: float
    margin: float


def draw(states: Float[np.ndarray, "t 2"], water: Water) -> UInt8[np.ndarray, "h w 3"]:
    """Where the boat has been, and where it is; ashore it is red."""
    sheet = Sketch(SIZE, (water.basin - water.radius + water.quay - WIDTH) / 2, -WIDTH / 4, WIDTH, GROUND)
    sheet.disc((water.basin, 0), water.radius + water.margin, PAPER, EDGE, 0.3)
    mouth, end = (
        water.basin + math.sqrt((water.radius + water.margin) ** 2 - water.margin**2),
        water.quay + water.margin,
    )
    for side in (-water.margin, water.margin):
        sheet.line(((mouth, side), (end, side)), 0.3, EDGE)
    sheet.box((water.basin, -water.margin), (end, water.margin), PAPER)
    sheet.box((end, -4.0), (end + 1.0, 4.0), GOAL)
    for past in states[:-1]:
        sheet.disc(past, 0.5, TRAIL)
    before, now = states[max(len(states) - 2, 0)], states[-1]
    sheet.shape(_hull(now, now - before), BODY if _afloat(now, water) else FORBIDDEN)
    return sheet.pixels()


def _hull(middle: Float[np.ndarray, "2"], way: Float[np.ndarray, "2"]) -> Float[np.ndarray, "5 2"]:
    """The corners of a boat with its bow where it goes, or to the right if it lies still."""
    angle = math.atan2(way[1], way[0])
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    outline = np.array([[-0.5, -0.5], [0.2, -0.5], [0.5, 0.0], [0.2, 0.5], [-0.5, 0.5]]) * (LENGTH, BEAM)
    return np.asarray(middle) + outline @ turn.T


def _afloat(place: Float[np.ndarray, "2"], water: Water) -> bool:
    x, y = place
    to_basin = math.hypot(x - water.basin, y) - water.radius
    to_canal = math.hypot(x - np.clip(x, water.basin, water.quay), y)
    return min(to_basin, to_canal) <= water.margin
