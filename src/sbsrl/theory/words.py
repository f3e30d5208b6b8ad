"""Numbers for people."""

import math
from collections.abc import Callable
from fractions import Fraction

__all__ = ["above", "below", "count", "number", "power"]


def number(value: float) -> str:
    """Three digits, or as a whole number where that has a few more."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"


def above(value: float) -> str:
    """As `number`, but never less than the value: for upper bounds."""
    return _rounded(value - ROUNDING * abs(value), math.ceil)


def below(value: float) -> str:
    """As `number`, but never more than the value: for lower bounds."""
    return _rounded(value + ROUNDING * abs(value), math.floor)


ROUNDING = 1e-12
"""Relative: what computing has made of a number is not rounded up to the next digit."""


def _rounded(value: float, towards: Callable[[Fraction], int]) -> str:
    text = number(value)
    if value == 0 or not math.isfinite(value) or float(text) == value:
        return text
    digits = 0 if 1e3 <= abs(value) < 1e7 else 2 - math.floor(math.log10(abs(value)))
    shifted = Fraction(value) * Fraction(10) ** digits
    return number(float(towards(shifted) / Fraction(10) ** digits))


def count(value: int) -> str:
    """A whole number, in three digits where it has more than nine."""
    return f"{int(value):d}" if value < 10**9 else f"{value:.3g}"


def power(log10: float) -> str:
    """10^log10: a whole number if it is small, otherwise the power itself, rounded up."""
    if log10 < 0:
        return f"10^{math.ceil(log10)}" if log10 > -1e9 else f"10^({above(log10)})"
    if log10 < 6:
        return f"{math.ceil(10**log10 * (1 - 1e-12)):d}"
    if log10 < 1000:
        return f"10^{math.ceil(log10 * 10) / 10:.1f}"
    return f"10^{math.ceil(log10):d}" if log10 < 1e9 else f"10^({above(log10)})"
