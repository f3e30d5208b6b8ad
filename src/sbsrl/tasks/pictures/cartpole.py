"""A cart on its rail, with a pole that hangs or stands."""

import numpy as np
from jaxtyping import Float, UInt8

from ...systems.sketch import Sketch
from .colours import BODY, EDGE, FORBIDDEN, GROUND, PAPER, ROD

__all__ = ["draw"]

SIZE, WIDTH, BOTTOM = (320, 240), 4.4, -1.65
LENGTH = 1.0
REACH = 1.8
"""How far the cart may be from the middle of the sheet; further away, the sheet follows."""
FAR = 50.0
"""Metres to either side to which rail and forbidden ground are drawn."""


def draw(states: Float[np.ndarray, "t 5"], limit: float) -> UInt8[np.ndarray, "h w 3"]:
    """The last of the states (p, cos th, sin th, v, omega), th = 0 hanging; red is where |p| is beyond `limit`."""
    p, c, s = states[-1, :3] / np.array([1.0, *([np.hypot(*states[-1, 1:3])] * 2)])
    middle = p - np.clip(p, -REACH, REACH)
    sheet = Sketch(SIZE, middle - WIDTH / 2, BOTTOM, WIDTH, PAPER)
    for side in (-1, 1):
        sheet.box((side * limit, BOTTOM), (side * FAR, BOTTOM + WIDTH), f"{FORBIDDEN}20")
    sheet.line(((-FAR, 0), (FAR, 0)), 0.04, GROUND)
    for side in (-1, 1):
        sheet.line(((side * limit, -0.2), (side * limit, 0.2)), 0.04, FORBIDDEN)
    sheet.box((p - 0.22, -0.11), (p + 0.22, 0.11), BODY if abs(p) <= limit else FORBIDDEN)
    tip = (p + LENGTH * s, -LENGTH * c)
    sheet.line(((p, 0), tip), 0.06, ROD)
    sheet.disc((p, 0), 0.05, EDGE)
    sheet.disc(tip, 0.11, ROD)
    return sheet.pixels()
