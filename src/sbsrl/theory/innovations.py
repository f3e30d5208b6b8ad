"""Whether observations are as a Gaussian process foretold them.

If the truth is a draw from GP(mu, k) and the noise is as declared, each observation, less its mean given the ones
before and divided by its deviation given these, is a standard normal number, however the inputs were chosen. With
L L^T = K + sigma_w^2 I these are the entries of L^-1 y, and the sum of their squares

    Q_n = y^T (K + sigma_w^2 I)^-1 y

has a chi-square distribution with as many degrees of freedom as there are observations.
"""

from typing import NamedTuple

from scipy.stats import chi2

__all__ = ["Tails", "tails"]


class Tails(NamedTuple):
    """How probable it is, under the belief, that the data are so far from what was foretold."""

    farther: float
    """So far or farther; small where the belief is too sure of itself."""
    nearer: float
    """So near or nearer; small where it is more careful than it need be."""


def tails(observations: int, squares: float) -> Tails:
    """Of Q_n for so many observations, all outputs together."""
    return Tails(float(chi2.sf(squares, observations)), float(chi2.cdf(squares, observations)))
