"""What several seeds say: mean, spread, the paper's intervals, and how sure the mean is."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import bootstrap

__all__ = ["Summary", "summarise"]

RESAMPLES = 10_000


class Summary(NamedTuple):
    """Of one number per seed."""

    mean: float
    deviation: float
    """Standard deviation over seeds, divided by n: the error bars of the paper's bar charts."""
    low: float
    high: float
    """The 2.5 and 97.5 % percentiles over seeds: the bands of the paper's curves."""
    mean_low: float
    mean_high: float
    """95 % bootstrap interval of the mean."""
    seeds: int

    def __str__(self) -> str:
        if self.seeds == 1:
            return f"{self.mean:.3f} (one seed)"
        return f"{self.mean:.3f} ± {self.deviation:.3f} ({self.mean_low:.3f} to {self.mean_high:.3f})"


def summarise(values: Sequence[float]) -> Summary:
    """One seed has no spread: its intervals are a point and say nothing."""
    data = np.asarray(values, float)
    low, high = (float(p) for p in np.percentile(data, [2.5, 97.5]))
    mean_low, mean_high = float(data.min()), float(data.max())
    if np.ptp(data) > 0:
        rng = np.random.default_rng(0)
        interval = bootstrap((data,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=rng).confidence_interval
        mean_low, mean_high = float(interval.low), float(interval.high)
    return Summary(float(data.mean()), float(data.std()), low, high, mean_low, mean_high, len(data))
