"""A pendulum, and an arc at its hinge that is as long as it turns fast."""

import math

import numpy as np
from jaxtyping import Float, UInt8

from ...systems.sketch import Sketch
from .colours import BODY, EDGE, FORBIDDEN, GROUND, PAPER, ROD

__all__ = ["draw"]

SIZE, WIDTH = (320, 240), 3.6
LENGTH = 1.0
GAUGE, RADIANS = 0.42, 0.4
"""Radius of the arc in metres, and its angle for each rad/s."""


def draw(states: Float[np.ndarray, "t 3"], limit: float) -> UInt8[np.ndarray, "h w 3"]:
    """The last of the states (cos th, sin th, omega), th = 0 upright; faster than `limit` the arc is red."""
    c, s, omega = states[-1]
    angle = math.atan2(s, c) + math.pi / 2
    tip = LENGTH * np.array([math.cos(angle), math.sin(angle)])
    sheet = Sketch(SIZE, -WIDTH / 2, -WIDTH * SIZE[1] / SIZE[0] / 2, WIDTH, PAPER)
    sheet.arc((0, 0), LENGTH, 0.0, 2 * math.pi, 0.012, GROUND)
    for past in states[-8:-1]:
        past_angle = math.atan2(past[1], past[0]) + math.pi / 2
        sheet.disc((LENGTH * math.cos(past_angle), LENGTH * math.sin(past_angle)), 0.05, "#1D699630")
    if omega:
        sheet.arc((0, 0), GAUGE, angle, RADIANS * omega, 0.05, FORBIDDEN if abs(omega) > limit else EDGE)
    sheet.line(((0, 0), tip), 0.07, ROD)
    sheet.disc((0, 0), 0.06, ROD)
    sheet.disc(tip, 0.15, BODY)
    return sheet.pixels()
