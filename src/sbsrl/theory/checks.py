"""What the formulas demand of their arguments: one line that says what was seen and what to do."""

import math

from ..errors import UserError

__all__ = ["at_least", "moderate", "positive", "probability", "whole"]


def probability(name: str, value: float) -> float:
    """A number strictly between 0 and 1."""
    if not 0 < value < 1:
        raise UserError(f"{name}={value:g} is a probability; it must lie strictly between 0 and 1.")
    return float(value)


def positive(name: str, value: float) -> float:
    """A finite number above 0."""
    if not (value > 0 and math.isfinite(value)):
        raise UserError(f"{name}={value:g} must be positive and finite.")
    return float(value)


def at_least(name: str, value: float, least: float = 0.0) -> float:
    """A finite number not below `least`."""
    if not (value >= least and math.isfinite(value)):
        raise UserError(f"{name}={value:g} must be finite and at least {least:g}.")
    return float(value)


def whole(name: str, value: float, least: int = 1, most: float = 1e15) -> int:
    """A whole number between `least` and `most`."""
    if value > most and value != math.inf:
        raise UserError(f"{name}={_shown(value, 16)} is more than can be computed with, {most:.16g}.")
    if not (least <= value <= most and int(value) == value):
        raise UserError(f"{name}={value:g} must be a whole number, at least {least}.")
    return int(value)


SMALLEST, LARGEST = 1e-30, 1e30


def moderate(name: str, value: float) -> float:
    """0, or a number whose size lies between 1e-30 and 1e30: the formulas neither overflow nor lose it then."""
    if value and not SMALLEST <= abs(value) <= LARGEST:
        raise UserError(
            f"{name}={_shown(value)} cannot be computed with: its size must lie between {SMALLEST:g} and {LARGEST:g}; "
            "use other units."
        )
    return float(value)


def _shown(value: float, digits: int = 6) -> str:
    """The number in a few characters; a whole number need not fit into a float."""
    try:
        return f"{value:.{digits}g}"
    except OverflowError:
        return "1e308 or more" if value > 0 else "-1e308 or less"
