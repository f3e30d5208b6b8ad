"""How sure one can be of a frequency."""

from typing import NamedTuple

from scipy.stats import beta

__all__ = ["Frequency"]


class Frequency(NamedTuple):
    """k of n, with the exact interval of Clopper and Pearson."""

    hits: int
    trials: int

    @property
    def rate(self) -> float:
        return self.hits / self.trials

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Contains the true probability in at least this share of all experiments."""
        tail, k, n = (1 - level) / 2, self.hits, self.trials
        low = 0.0 if k == 0 else float(beta.ppf(tail, k, n - k + 1))
        high = 1.0 if k == n else float(beta.ppf(1 - tail, k + 1, n - k))
        return low, high

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.hits} of {self.trials} ({100 * low:.1f} to {100 * high:.1f} %)"
