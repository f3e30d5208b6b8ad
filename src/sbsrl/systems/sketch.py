"""Simple drawings in the plane: shapes in metres become smooth pixels. Pillow is all they need."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw

__all__ = ["Sketch"]

FINER = 3
"""Shapes are drawn so many times as large, and reduced: edges become smooth."""
Point = Sequence[float] | Float[np.ndarray, "2"]


class Sketch:
    """A sheet of so many pixels that shows a stretch of the plane; what is drawn later lies above."""

    def __init__(self, size: tuple[int, int], left: float, bottom: float, width: float, paper: str) -> None:
        """`left` and `bottom` are the lower left corner, in metres, and `width` what is shown from there."""
        self._image = Image.new("RGB", (FINER * size[0], FINER * size[1]), paper)
        self._pen = ImageDraw.Draw(self._image, "RGBA")
        self._size, self._left, self._bottom = size, left, bottom
        self._scale = FINER * size[0] / width

    def disc(self, centre: Point, radius: float, colour: str, edge: str | None = None, thick: float = 0.0) -> None:
        """A disc, with an edge that is so thick, in metres."""
        (x, y), r = self._place(centre), self._scale * radius
        self._pen.ellipse((x - r, y - r, x + r, y + r), colour, edge, round(self._scale * thick))

    def line(self, points: Sequence[Point] | Float[np.ndarray, "n 2"], thick: float, colour: str) -> None:
        """A line through points, with round ends."""
        places = [self._place(point) for point in points]
        self._pen.line(places, colour, max(1, round(self._scale * thick)), joint="curve")
        for point in (points[0], points[-1]):
            self.disc(point, thick / 2, colour)

    def shape(self, corners: Sequence[Point] | Float[np.ndarray, "n 2"], colour: str) -> None:
        """A filled polygon."""
        self._pen.polygon([self._place(corner) for corner in corners], colour)

    def box(self, low: Point, high: Point, colour: str) -> None:
        """A rectangle between two of its corners."""
        self.shape(((low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1])), colour)

    def arc(self, centre: Point, radius: float, begin: float, turn: float, thick: float, colour: str) -> None:
        """A part of a circle, from an angle on by another one, in radians, counterclockwise from the right."""
        angles = begin + np.linspace(0.0, turn, 2 + int(16 * abs(turn)))
        self.line(np.asarray(centre) + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1), thick, colour)

    def pixels(self) -> UInt8[np.ndarray, "h w 3"]:
        """The finished drawing."""
        return np.array(self._image.resize(self._size, Image.Resampling.BOX))

    def _place(self, point: Point) -> tuple[float, float]:
        x, y = self._scale * (point[0] - self._left), self._scale * (point[1] - self._bottom)
        return float(x), float(self._image.height - y)
