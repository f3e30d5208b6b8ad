"""What an environment that can be drawn says of itself."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from ..errors import UserError

__all__ = ["MODE", "Drawing", "check_mode", "drawing_metadata"]

MODE = "rgb_array"
"""The one way in which the systems of this package are drawn: `render()` returns rows of pixels."""


class Drawing(NamedTuple):
    """How a system is drawn whose observations say all that is seen."""

    draw: Callable[[Float[np.ndarray, "t dx"]], UInt8[np.ndarray, "h w 3"]]
    """A picture of the last of the observations of an episode so far."""
    rate: float
    """Control steps per second."""


def drawing_metadata(rate: float) -> dict[str, Any]:
    """Gymnasium's metadata of a system that takes so many control steps per second."""
    return {"render_modes": [MODE], "render_fps": rate}


def check_mode(render_mode: str | None, metadata: dict[str, Any]) -> str | None:
    """The mode, if it is one of those of a system with this metadata, or None."""
    modes = metadata["render_modes"]
    if render_mode is not None and render_mode not in modes:
        offer = f"it has {', '.join(modes)}" if modes else "it cannot be drawn"
        raise UserError(f"there is no render_mode '{render_mode}' of this system; {offer}; or leave it out.")
    return render_mode
