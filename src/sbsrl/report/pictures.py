"""The pictures that every run leaves in its folder."""

from pathlib import Path

from ..atomic import write_atomically
from ..runs import Result, RunFolder, look_at_last
from .picture import draw_run
from .trajectory import draw_episode

__all__ = ["draw_pictures"]


def draw_pictures(result: Result) -> list[Path]:
    """Draws the run, and its last episode if it came to its end; says where."""
    if result.folder is None:
        return []
    drawn = {"learning.png": draw_run(RunFolder.open(result.folder).view())}
    if look := look_at_last(result):
        drawn["trajectory.png"] = draw_episode(look)
    for name, content in drawn.items():
        write_atomically(result.folder / name, content)
    return [result.folder / name for name in drawn]
