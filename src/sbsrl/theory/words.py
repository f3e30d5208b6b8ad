"""Numbers for people."""

import math

__all__ = ["count", "number", "power"]


def number(value: float) -> str:
    """Three digits, or as a whole number where that has a few more."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"


def count(value: int) -> str:
    """A whole number, in three digits where it has more than nine."""
    return f"{int(value):d}" if value < 10**9 else f"{value:.3g}"


def power(log10: float) -> str:
    """10^log10: a whole number if it is small, otherwise the power itself, rounded up."""
    if log10 < 0:
        return f"10^{log10:.0f}" if log10 > -1e9 else f"10^({log10:.3g})"
    if log10 < 6:
        return f"{math.ceil(10**log10 * (1 - 1e-12)):d}"
    if log10 < 1000:
        return f"10^{math.ceil(log10 * 10) / 10:.1f}"
    return f"10^{math.ceil(log10):d}" if log10 < 1e9 else f"10^({log10:.3g})"
