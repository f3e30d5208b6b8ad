"""What several seeds say: mean, spread, the paper's intervals, and how sure the mean is."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import bootstrap

__all__ = ["Summary", "summarise"]

RESAMPLES = 10_000


class Summary(NamedTuple):
    """Of one number a seed."""

    mean: float
    deviation: float
    """Standard deviation over seeds, divided by n: the error bars of the paper's bar charts."""
    low: float
    high: float
    """The 2.5 and 97.5 % percentiles over seeds: the bands of the paper's curves."""
    mean_low: float
    mean_high: float
    """95 % bootstrap interval of the mean."""

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.deviation:.3f} ({self.mean_low:.3f} to {self.mean_high:.3f})"


def summarise(values: Sequence[float]) -> Summary:
    """One seed has no spread, and its mean is as sure as it looks: not at all."""
    data = np.asarray(values, float)
    low, high = np.percentile(data, [2.5, 97.5])
    mean_low, mean_high = data.min(), data.max()
    if np.ptp(data) > 0:
        rng = np.random.default_rng(0)
        interval = bootstrap((data,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=rng).confidence_interval
        mean_low, mean_high = interval.low, interval.high
    return Summary(*(float(v) for v in (data.mean(), data.std(), low, high, mean_low, mean_high)))
