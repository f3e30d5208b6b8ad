"""Actions as simulated systems read them."""

from typing import Any

import numpy as np
from jaxtyping import Float

from ..errors import UserError

__all__ = ["read_action"]


def read_action(action: Any, shape: tuple[int, ...] | None) -> Float[np.ndarray, " da"]:
    """The action as numbers of this shape; refuses another shape, and what is not finite."""
    a = np.asarray(action, float)
    if a.shape != shape:
        raise UserError(f"an action has shape {a.shape}; give one of shape {shape}.")
    if not np.isfinite(a).all():
        raise UserError(f"the action {a.tolist()} is not finite; give numbers.")
    return a
