"""A sled before a ledge."""

import numpy as np
from jaxtyping import Float, UInt8

from ...systems.sketch import Sketch
from .colours import BODY, EDGE, FORBIDDEN, GROUND, PAPER, TRAIL

__all__ = ["draw"]

SIZE, LEFT, WIDTH, BOTTOM = (320, 240), -2.6, 5.2, -1.7
FALL = 0.35
"""By how much the ground is lower beyond the ledge, where the sled shall not be."""
SLOPE = 0.2
REACH, FAR = 2.0, 50.0
"""How far the sled may be from the middle of the sheet before that follows; to where ground is drawn."""


def draw(states: Float[np.ndarray, "t 1"], ledge: float) -> UInt8[np.ndarray, "h w 3"]:
    """Where the sled has been, and where it is."""
    x = float(states[-1, 0])
    sheet = Sketch(SIZE, LEFT + x - np.clip(x, -REACH, REACH), BOTTOM, WIDTH, PAPER)
    sheet.shape([(-FAR, BOTTOM), (-FAR, 0), (ledge - SLOPE, 0), (ledge - SLOPE, BOTTOM)], GROUND)
    lower = [(ledge - SLOPE, BOTTOM), (ledge - SLOPE, 0), (ledge + SLOPE, -FALL), (FAR, -FALL), (FAR, BOTTOM)]
    sheet.shape(lower, f"{FORBIDDEN}60")
    sheet.line(((ledge, -FALL / 2), (ledge, 0.9)), 0.02, FORBIDDEN)
    for past in states[:-1, 0]:
        sheet.disc((past, _height(past, ledge) + 0.24), 0.07, TRAIL)
    y = _height(x, ledge)
    sheet.box((x - 0.32, y + 0.12), (x + 0.32, y + 0.36), BODY if x <= ledge else FORBIDDEN)
    sheet.line(((x - 0.36, y + 0.04), (x + 0.36, y + 0.04), (x + 0.46, y + 0.14)), 0.06, EDGE)
    return sheet.pixels()


def _height(x: float, ledge: float) -> float:
    """Of the ground."""
    return float(np.interp(x, [ledge - SLOPE, ledge + SLOPE], [0.0, -FALL]))
