"""What stands below the pictures of a film: which episode it is, and step, return and costs so far."""

from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from ..costs import Cost, total
from ..runs.replay import Replay
from .charts import UNSAFE

__all__ = ["framed"]

LEAST, MOST = 280, 480
"""Between which the width of a film lies, in pixels: words must be read, and files stay small."""
EDGE, LINE, BAR = 8, 16, 5
"""Pixels: the margin, a line of words, the height of a bar."""
PAPER, INK, FAINT, MEASURE = "#FFFFFF", "#1A1A1A", "#6B6A66", "#1D6996"
LETTERS = 12


def framed(replay: Replay, t: int) -> Image.Image:
    """The picture after step t, with the words and a bar for each cost below it."""
    picture = _fitted(replay.pictures[t])
    width, height = max(picture.width, LEAST), 2 * LINE + len(replay.costs) * (LINE + BAR + 3) + EDGE
    width += width % 2  # films want even sizes
    sheet = Image.new("RGB", (width, picture.height + height + (picture.height + height) % 2), PAPER)
    sheet.paste(picture, ((width - picture.width) // 2, 0))
    pen = ImageDraw.Draw(sheet)
    y, record, steps = picture.height + 2, replay.record, len(replay.episode.actions)
    _line(pen, y, f"{replay.task}, episode {record.episode} ({record.phase})", f"step {t} of {steps}", FAINT)
    _line(pen, y + LINE, f"return {replay.episode.rewards[:t].sum():.4g}", "", INK)
    for k, cost in enumerate(replay.costs):
        _meter(pen, y + 2 * LINE + k * (LINE + BAR + 3), cost, replay.episode.costs[:, k], t)
    return sheet


def _fitted(pixels: UInt8[np.ndarray, "h w 3"]) -> Image.Image:
    """As a picture that is not too wide."""
    picture = Image.fromarray(pixels)
    picture.thumbnail((MOST, MOST), Image.Resampling.BOX)
    return picture


def _meter(pen: ImageDraw.ImageDraw, y: int, cost: Cost, charged: np.ndarray, t: int) -> None:
    """What an episode has cost so far, in words and as a bar on the way to the budget; red beyond it."""
    spent, whole = total(charged[:t], cost.aggregation), total(charged, cost.aggregation)
    colour = UNSAFE if spent > cost.budget else MEASURE
    _line(pen, y, cost.name, f"{spent:.3g} of {cost.budget:g}", UNSAFE if spent > cost.budget else INK)
    low, high = min(0.0, cost.budget, whole), 1.1 * max(cost.budget, whole, 1e-9)
    left, right = EDGE, _width(pen) - EDGE

    def place(value: float) -> float:
        return left + (right - left) * (min(max(value, low), high) - low) / (high - low)

    pen.rectangle((left, y + LINE, right, y + LINE + BAR), "#E8E7E3")
    pen.rectangle((left, y + LINE, place(spent), y + LINE + BAR), colour)
    pen.rectangle((place(cost.budget) - 1, y + LINE - 2, place(cost.budget), y + LINE + BAR + 2), UNSAFE)


def _line(pen: ImageDraw.ImageDraw, y: int, left: str, right: str, colour: str) -> None:
    """Words at both ends; those on the left are shortened where there is no room."""
    font, edge = _font(), _width(pen) - EDGE
    room = edge - EDGE - font.getlength(right) - LETTERS
    while len(left) > 1 and font.getlength(left) > room:
        left = f"{left.removesuffix('…')[:-1]}…"
    pen.text((EDGE, y), left, colour, font)
    pen.text((edge - font.getlength(right), y), right, colour, font)


def _width(pen: ImageDraw.ImageDraw) -> int:
    return int(pen.im.size[0])


@lru_cache
def _font() -> ImageFont.FreeTypeFont:
    """The one that matplotlib brings along: names of costs may have letters of any language."""
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", LETTERS - 1)
