"""The figures that `sbsrl reproduce` makes, by name."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..errors import UserError, unknown
from ..runs.atomic import disk, write_atomically

__all__ = ["FIGURES", "Figure", "reproduce"]


class Figure(NamedTuple):
    """What it shows, and how its files are made."""

    summary: str
    draw: Callable[[int], dict[str, bytes]]
    """From the seed to the content of each file: the picture, its raw numbers, a README with the command."""


def _gp_samples(seed: int) -> dict[str, bytes]:
    from .gp_samples import files  # noqa: PLC0415  (importing matplotlib takes a second: only who draws pays)

    return files(seed)


FIGURES = {
    "gp-samples": Figure("samples of the prior, cut to the confidence sets, and the one near the truth", _gp_samples),
}


def reproduce(name: str, out: Path, seed: int = 0) -> list[Path]:
    """Makes a figure in a folder and returns the files. Made again, it replaces them."""
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES)
    if not 0 <= seed < 2**32:
        raise UserError(f"seed {seed} is out of range; it must be between 0 and 4294967295.")
    with disk(out):
        out.mkdir(parents=True, exist_ok=True)
    made = FIGURES[name].draw(seed)
    for file, content in made.items():
        write_atomically(out / file, content)
    return [out / file for file in made]
