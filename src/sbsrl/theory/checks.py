"""What the formulas demand of their arguments: one line that says what was seen and what to do."""

import math

from ..errors import UserError

__all__ = ["at_least", "positive", "probability", "whole"]


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


def whole(name: str, value: float, least: int = 1) -> int:
    """A whole number not below `least`."""
    if not math.isfinite(value) or int(value) != value or value < least:
        raise UserError(f"{name}={value:g} must be a whole number, at least {least}.")
    return int(value)
