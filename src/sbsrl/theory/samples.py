"""How many samples (lemma sampling of the paper), always as ln M: M itself does not fit into a number.

    M >= ln delta / ln(1 - exp(-x)),   x = sum_j (B_j^2 / 2 + phi_j(zeta))

exp(-x) is a lower bound on the probability that one sample is zeta-close to f* in every output (Cameron and Martin:
shifting the small ball by f* costs at most exp(-B^2 / 2)).
"""

import math
from collections.abc import Callable

from ..errors import UserError
from .checks import at_least, positive, probability, whole

__all__ = [
    "affordable_exponent",
    "closeness_exponent",
    "failure_probability",
    "log_sample_count",
    "posterior_exponent",
    "resampling_delta",
    "sample_count",
    "smallest_closeness",
]


def closeness_exponent(bound: float, small_ball: float, outputs: int) -> float:
    """x = d_x (B^2 / 2 + phi(zeta)): a sample is zeta-close to f* in all outputs with probability at least exp(-x)."""
    at_least("the RKHS bound B", bound)
    at_least("phi", small_ball)
    return whole("the number of outputs", outputs) * (bound**2 / 2 + small_ball)


def posterior_exponent(width: float, small_ball: float, outputs: int) -> float:
    """The same for samples of the *posterior* (appendix A): x = d_x (beta_n^2 / 2 + phi_n(zeta)).

    Where the confidence sets hold, f* - mu_n has the norm at most beta_n in the RKHS of the posterior kernel: that is
    what the self-normalised bound says. phi_n is the exponent of the posterior, at most that of the prior.
    """
    return closeness_exponent(width, small_ball, outputs)


def log_sample_count(exponent: float, delta: float) -> float:
    """ln M, M = ln delta / ln(1 - e^-x); about x + ln ln(1/delta). At least 0: one sample is always drawn."""
    probability("delta", delta)
    at_least("the exponent", exponent)
    if exponent == 0:
        return 0.0
    return max(math.log(-math.log(delta)) - _log_rate(exponent), 0.0)


def _log_rate(x: float) -> float:
    """ln(-ln(1 - e^-x)), which is -x once e^-x is negligible."""
    return -x if x > 40 else math.log(_rate(x))


def _rate(x: float) -> float:
    """-ln(1 - e^-x), its own inverse, with all digits for small and for large x."""
    return -math.log1p(-math.exp(-x)) if x > math.log(2) else -math.log(-math.expm1(-x))


MOST = 2**53


def sample_count(exponent: float, delta: float) -> int:
    """M as a whole number, where it is one that can be counted to."""
    log_m = log_sample_count(exponent, delta)
    if log_m > math.log(MOST):
        raise UserError(
            f"M = 10^{log_m / math.log(10):.4g} samples cannot be drawn; use a larger zeta, or fewer outputs."
        )
    if exponent == 0:
        return 1
    return max(1, math.ceil(-math.log(delta) / _rate(exponent) - 1e-12))


def affordable_exponent(log_samples: float, delta: float) -> float:
    """The inverse: the largest x for which M samples suffice, x = -ln(1 - delta^(1/M))."""
    probability("delta", delta)
    at_least("ln M", log_samples)
    rate = math.exp(math.log(-math.log(delta)) - log_samples)  # ln(1 / delta) / M
    return log_samples - math.log(-math.log(delta)) if rate < 1e-15 else _rate(rate)


def failure_probability(exponent: float, log_samples: float) -> float:
    """delta = (1 - e^-x)^M: the probability that none of M samples is close, as the lemma bounds it."""
    at_least("the exponent", exponent)
    at_least("ln M", log_samples)
    if exponent == 0:
        return 0.0
    return math.exp(-math.exp(min(log_samples + _log_rate(exponent), 700.0)))


DECADES = 260.0
"""The search goes so many decades below the largest zeta."""


LEAST_LOG = -700.0
"""ln of about the smallest number that has all its digits."""


def smallest_closeness(
    small_ball: Callable[[float], float], bound: float, outputs: int, log_samples: float, delta: float, most: float
) -> float | None:
    """The smallest zeta <= most that M samples certify with probability 1 - delta; None if not even `most`.

    phi decreases, so this is one bisection on ln zeta, over `DECADES` decades.
    """
    positive("the largest zeta", most)
    room = affordable_exponent(log_samples, delta)

    def enough(zeta: float) -> bool:
        phi = small_ball(zeta)
        return math.isfinite(phi) and closeness_exponent(bound, phi, outputs) <= room

    if not enough(most):
        return None
    low, high = math.log(most) - 1, math.log(most)
    least = max(high - DECADES * math.log(10), LEAST_LOG)
    while low > least and enough(math.exp(low)):
        low, high = max(low - (high - low) * 2, least), low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(math.exp(middle)) else (middle, high)
    return math.exp(high)


def resampling_delta(delta: float, episode: int, episodes: int | None = None) -> float:
    """The share of delta for the samples drawn anew before episode n (union bound, appendix A).

    delta / n_bar if the number of episodes is bounded, else 6 delta / (pi^2 (n+1)^2), which sums to delta over all n.
    """
    probability("delta", delta)
    whole("the episode", episode, 0)
    if episodes is None:
        return delta * 6 / (math.pi**2 * (episode + 1) ** 2)
    if episode >= whole("the number of episodes", episodes):
        raise UserError(f"episode {episode} is beyond the {episodes} episodes that the union bound was made for.")
    return delta / episodes
