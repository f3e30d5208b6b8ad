"""How much uncertainty an episode must see, and how many episodes there can be (theorem merged of the paper)."""

import math
from collections.abc import Callable

from ..errors import UserError
from .checks import at_least, positive, probability
from .tightening import EpisodeShape, return_factor

__all__ = ["VARIANCE_SUM_FACTORS", "episode_bound", "exploration_threshold", "uncertainty_factor", "variance_sum"]

VARIANCE_SUM_FACTORS = {"derived": 2.0, "paper": 1.0}
"""kappa of `variance_sum`: with gamma = 1/2 ln det the derivation gives 2; the paper has 1."""


def exploration_threshold(epsilon: float, width: float, shape: EpisodeShape, form: str = "sharp") -> float:
    """d_sigma^n = epsilon / (2 lambda_n^G), in the paper epsilon sigma_w / (2 G_max T beta_n).

    When no safe policy sees that much, J_c and J_r are known to epsilon and epsilon / 2 on all safe policies. The
    reward is summed, so lambda_n^G is that of a sum, whichever way costs are aggregated.
    """
    positive("epsilon", epsilon)
    positive("the confidence width beta_n", width)
    factor = return_factor(width, shape._replace(aggregation="sum"), form)
    return epsilon / (2 * factor) if factor > 0 else math.inf


def uncertainty_factor(width: float, supremum: float, shape: EpisodeShape, form: str = "sharp") -> float:
    """lambda_n^s: as lambda_n^g, for g = s_n <= sqrt(d_x sigma_max), which is counted before the step."""
    positive("sigma_max", supremum)
    most = math.sqrt(shape.check().outputs * supremum)
    return return_factor(width, shape._replace(most=most, aggregation="sum", delay=0), form)


def variance_sum(gain: float, supremum: float, noise: float, factor: float = 2.0) -> float:
    """sum_i sigma_i^2(z_i) <= kappa sigma_max gamma_N / ln(1 + sigma_max / sigma_w^2), sigma_i given all points before.

    s <= (sigma_max / ln(1 + sigma_max / sigma_w^2)) ln(1 + s / sigma_w^2) for 0 <= s <= sigma_max, and the sum of
    1/2 ln(1 + sigma_i^2 / sigma_w^2) is the information gain of the points.
    """
    at_least("gamma", gain)
    return factor * positive("sigma_max", supremum) * gain / math.log1p(supremum / positive("sigma_w", noise) ** 2)


MOST_EPISODES = 1e150
"""Beyond it no bound is looked for."""


def episode_bound(
    epsilon: float,
    delta: float,
    width: Callable[[float], float],
    gain: Callable[[float], float],
    supremum: float,
    shape: EpisodeShape,
    form: str = "sharp",
    factor: float = 2.0,
) -> float:
    """n_bar: with probability 1 - 2 delta Algorithm 1 has stopped before it (theorem complexity, appendix D).

    The smallest n that violates

        sqrt(n) d_sigma^n <= T (1 + lambda_n^s) (sqrt(d_x V_n) + sqrt(2 d_x sigma_max ln(1 / delta))),

    V_n the bound on the variance sum of n T points; found by about a hundred evaluations, first at powers of 2 and then
    between two of them. `width` is beta_n of n, `gain` is gamma_N of N. A worst case: real runs stop many orders of
    magnitude earlier.
    """
    positive("epsilon", epsilon)
    probability("delta", delta)
    T, dx = shape.check().horizon, shape.outputs
    deviation = math.sqrt(2 * dx * positive("sigma_max", supremum) * math.log(1 / delta))

    def goes_on(n: float) -> bool:
        beta = width(n)
        spread = math.sqrt(dx * variance_sum(gain(n * T), supremum, shape.noise, factor)) + deviation
        most = T * (1 + uncertainty_factor(beta, supremum, shape, form)) * spread
        return math.sqrt(n) * exploration_threshold(epsilon, beta, shape, form) <= most

    low, high = _bracket(goes_on)
    while high - low > max(1.0, 1e-12 * high):
        middle = (low + high) / 2
        low, high = (middle, high) if goes_on(middle) else (low, middle)
    return float(math.ceil(high))


def _bracket(goes_on: Callable[[float], bool]) -> tuple[float, float]:
    """2^(k-1) and 2^k between which Algorithm 1 stops; k by doubling and bisection."""
    below, k = -1, 0
    while goes_on(2.0**k):
        if 2.0**k > MOST_EPISODES:
            raise UserError(
                "no bound on the number of episodes was found: the information gain grows too fast for this kernel "
                "(assumption information_gain needs gamma_N^3 = o(N)); use a smoother one."
            )
        below, k = k, 2 * k or 1
    while k - below > 1:
        middle = (below + k) // 2
        below, k = (middle, k) if goes_on(2.0**middle) else (below, middle)
    return 2.0**below, 2.0**k
