"""How likely something is, from how often it happened in independent draws (Clopper and Pearson 1934).

Of n draws, k of which violate, the probability p of a violation is at most U(k, n, alpha), with a probability of error
of at most alpha over the draws, whatever p is:

    U = the p with P(Bin(n, p) <= k) = alpha,   the 1 - alpha quantile of Beta(k + 1, n - k);  1 for k = n

A policy *passes* if U is at most the risk that was asked for, which is P(Bin(n, risk) <= k) <= alpha. So whoever tests
policies on fresh draws, each with its share of an error probability, accepts none whose risk is too large, but for that
probability: also if the next policy depends on how the last one failed.
"""

import math

from scipy.stats import beta, binom

from ..errors import UserError

__all__ = ["admitted", "draws_for", "planning_samples", "share_of_error", "upper_bound"]

TOLERATED = 0.5
"""Of the risk: with so large a share of violations among the draws a policy is to pass."""


def upper_bound(violations: int, draws: int, alpha: float) -> float:
    """U(k, n, alpha): above the probability of a violation, but for a probability of alpha over the draws."""
    if not 0 <= violations <= draws or draws < 1 or not 0 < alpha < 1:
        raise UserError(
            f"{violations} violations in {draws} draws and alpha={alpha:g} say nothing about a probability."
        )
    return 1.0 if violations == draws else float(beta.isf(alpha, violations + 1, draws - violations))


def admitted(draws: int, risk: float, alpha: float) -> int:
    """The most violations with which a policy passes; -1 if so few draws cannot show that risk."""
    k = int(binom.ppf(alpha, draws, risk))
    while k >= 0 and binom.cdf(k, draws, risk) > alpha:
        k -= 1
    return k


def draws_for(risk: float, alpha: float) -> int:
    """The fewest draws with which a policy passes although half the risk, as a share of them, violates."""
    if not 0 < risk < 1 or not 0 < alpha < 1:
        raise UserError(f"risk={risk:g} and alpha={alpha:g} must be between 0 and 1.")
    k = 0
    while k < TOLERATED * risk * (draws := _fewest(k, risk, alpha)):
        k += 1
    return draws


def _fewest(k: int, risk: float, alpha: float) -> int:
    """The fewest draws of which k may violate: P(Bin(n, risk) <= k) falls with n."""
    low, high = k, max(k, 1)
    while binom.cdf(k, high, risk) > alpha:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if binom.cdf(k, middle, risk) > alpha else (low, middle)
    return high


def share_of_error(confidence: float, tests: int) -> float:
    """alpha of each of so many tests, so that with this confidence none of them errs (union bound)."""
    return (1 - confidence) / tests


MOST_SAMPLES = 300


def planning_samples(risk: float) -> int:
    """How many samples a policy is planned on: 3 / risk, and no more than 300.

    A policy with s parameters that bind, feasible on M samples, violates on a further one with a probability of about
    s / (M + 1) (the scenario approach). This only steers the search; whether a policy is played, fresh draws decide.
    """
    return min(MOST_SAMPLES, math.ceil(3 / risk))
