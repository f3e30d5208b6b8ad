"""The race car's track from above: the wall of tyres, the goal, the car and the way that it came."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from ...systems.sketch import Sketch
from .colours import BODY, EDGE, FORBIDDEN, GOAL, GROUND, PAPER, TRAIL

__all__ = ["Track", "car_outlines", "draw"]

SIZE = (320, 320)
LEFT, BOTTOM, WIDTH = -0.62, -1.40, 2.34
LENGTH, BREADTH = 0.19, 0.095
"""Of a drawn car, in metres. The car that is computed with is a point."""
HOLE = 0.46
"""Of a tyre, as a share of its radius."""


class Track(NamedTuple):
    """What does not move. The goal is in the middle."""

    obstacles: Sequence[tuple[float, float]]
    obstacle_radius: float
    goal_radius: float


def draw(frames: Float[np.ndarray, "t 7"], track: Track) -> UInt8[np.ndarray, "h w 3"]:
    """The car in the last of the frames (p_x, p_y, sin th, cos th, v_x, v_y, omega); red while it is in an obstacle."""
    sheet = Sketch(SIZE, LEFT, BOTTOM, WIDTH, PAPER)
    sheet.disc((0, 0), track.goal_radius, f"{GOAL}30", GOAL, 0.012)
    for centre in track.obstacles:
        sheet.disc(centre, track.obstacle_radius, GROUND, EDGE, 0.008)
        sheet.disc(centre, HOLE * track.obstacle_radius, PAPER, EDGE, 0.008)
    if len(frames) > 1:
        sheet.line(frames[:, :2], 0.018, TRAIL)
    place, heading = frames[-1, :2], math.atan2(frames[-1, 2], frames[-1, 3])
    inside = np.min(np.linalg.norm(np.asarray(track.obstacles) - place, axis=1)) < track.obstacle_radius
    (outline,) = car_outlines(place[None], np.array([heading]))
    sheet.shape(outline, FORBIDDEN if inside else BODY)
    return sheet.pixels()


def car_outlines(places: Float[np.ndarray, "r 2"], headings: Float[np.ndarray, " r"]) -> Float[np.ndarray, "r 6 2"]:
    """Rectangles about these places, whose front is narrower."""
    along = LENGTH / 2 * np.array([-1.0, 0.4, 1.0, 1.0, 0.4, -1.0])
    across = BREADTH / 2 * np.array([1.0, 1.0, 0.5, -0.5, -1.0, -1.0])
    c, s = np.cos(headings)[:, None], np.sin(headings)[:, None]
    return places[:, None] + np.stack([along * c - across * s, along * s + across * c], axis=-1)
