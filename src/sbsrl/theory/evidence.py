"""Tests of what a guarantee assumes, by what episodes show; valid at any time, with the probability of a false alarm.

**Misfit.** With features f* = phi . w*, |w*| <= B, the posterior's V_n and m_n, and the noises eps of N observations,

    |eps|^2 / sigma_w^2 + |w*|^2 = Q_n + |w* - m_n|^2_{V_n},   Q_n = y^T (K + sigma_w^2 I)^-1 y,

since both sides are the penalised sum of squares at w*, whose minimum is Q_n. In the event of the confidence sets
|w* - m_n|_{V_n} <= beta_n, so that a chi-square number of N degrees of freedom lies between Q_n - B^2 and
Q_n + beta_n^2. Noise that is larger than declared, or smaller, shows in it, and so do dynamics that no function of that
norm explains.

**Costs.** If every policy has J_c <= d, then for any lambda in [0, 1)

    K_n = prod over i <= n of (1 + lambda (C_i - d) / (d - c_min)),  C_i >= c_min the cost of episode i,

is a nonnegative supermartingale that begins at 1, and so is the mean over several lambda. The probability that it ever
reaches 1 / alpha is alpha at most (Ville).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

__all__ = ["SPENT", "STAKES", "Misfit", "contradicted", "cost_evidence", "share_of_look"]

SPENT = 0.1
"""Of delta: the probability with which each of the tests may end a guarantee that holds."""
STAKES = tuple(2.0**-i for i in range(1, 9))
"""The lambdas: large ones see much that is beyond the budget soon, small ones little after many episodes."""


def cost_evidence(costs: Sequence[float], budget: float, least: float) -> float:
    """The largest that the mean of K_n over the stakes ever was; 1 without episodes.

    No cost is below `least`, which is below the budget.
    """
    gains = (np.asarray(costs, float) - budget) / (budget - least)
    logs = np.cumsum(np.log1p(np.outer(STAKES, np.maximum(gains, -1.0))), axis=1)
    if not logs.size:
        return 1.0
    with np.errstate(over="ignore"):
        return float(max(1.0, np.max(np.mean(np.exp(logs), axis=0))))


def share_of_look(number: int) -> float:
    """6 / (pi n)^2: the share of an error probability that look n = 1, 2, .. may spend; all of them sum up to 1."""
    return 6 / (math.pi * number) ** 2


class Misfit(NamedTuple):
    """How well the best function explains all data so far, of all outputs together."""

    observations: int
    """N d_x."""
    squares: float
    """Q_n."""
    least: float
    """B^2: by how much |eps|^2 / sigma_w^2 may be less."""
    most: float
    """beta_n^2: by how much it may be more."""


def contradicted(found: Misfit, alpha: float) -> bool:
    """Whether it contradicts the confidence sets or the noise; if both are right, so with probability alpha at most."""
    if not found.observations:
        return False
    low, high = (dof(alpha / 2, found.observations) for dof in (chi2.ppf, chi2.isf))
    return bool(found.squares - found.least > high or found.squares + found.most < low)
