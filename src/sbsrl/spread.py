"""In which units networks see states: how far each number of them varies in the data."""

import numpy as np
from jaxtyping import Float

__all__ = ["LEAST", "SPREADS", "middle", "spread"]

SPREADS = ("deviation", "quantiles")
LEAST, LEAST_INNER = 0.05, 1e-3
"""What is added, so that what does not vary is not divided by nothing."""
INNER, WIDTH = (0.1, 0.9), 2.563
"""Of a normal distribution these quantiles are so many standard deviations apart."""


def spread(values: Float[np.ndarray, "N d"], kind: str) -> Float[np.ndarray, " d"]:
    """The standard deviation of every column; or that of the eight tenths in the middle, were they normal.

    A few falls of a body that mostly stands multiply its standard deviations, and networks that see standing in units
    of falling see nothing of it.
    """
    if kind == "deviation":
        return values.std(axis=0) + LEAST
    low, high = np.quantile(values, INNER, axis=0)
    return (high - low) / WIDTH + LEAST_INNER


def middle(values: Float[np.ndarray, "N d"], kind: str) -> Float[np.ndarray, " d"]:
    """The mean of every column, or its median."""
    return values.mean(axis=0) if kind == "deviation" else np.median(values, axis=0)
