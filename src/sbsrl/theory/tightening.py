"""By how much the budget is tightened (lemma bound_J_general and the safety theorem of the paper).

If f and f' differ by at most zeta in every output, one step leads to two normal laws of the same variance whose total
variation is at most tv = 2 Phi(zeta sqrt(d_x) / (2 sigma_w)) - 1. The two processes can be coupled so that they still
agree after t steps with probability (1 - tv)^t. A cost in [0, C_max] charged after t steps then differs by at most
C_max (1 - (1 - tv)^t) in expectation; this is `sharp`. The paper bounds every term by T C_max zeta sqrt(d_x) / sigma_w.
"""

import math
from typing import Literal, NamedTuple

from scipy.special import erf, erfinv

from ..costs import Aggregation
from ..errors import UserError, unknown
from .checks import at_least, positive, whole

__all__ = [
    "TIGHTENINGS",
    "EpisodeShape",
    "closeness_limit",
    "largest_horizon",
    "return_factor",
    "tightening",
    "total_variation",
]

MOST_STEPS = 10**15
"""The longest episode: up to it the number of steps is exact in a float."""

Form = Literal["sharp", "paper"]
TIGHTENINGS = {
    "sharp": "by coupling: C_max sum_t (1 - (1 - tv)^t)",
    "paper": "zeta sqrt(d_x) T^2 C_max / sigma_w",
}


class EpisodeShape(NamedTuple):
    """What the bounds on returns need to know of episodes, in units in which the noise is sigma_w in every output."""

    horizon: int
    """T."""
    outputs: int
    """d_x."""
    noise: float
    """sigma_w."""
    most: float
    """C_max, R_max or G_max: one step costs or earns between 0 and this."""
    aggregation: Aggregation = "sum"
    """J = E sum_t c_t, or E max_t c_t."""
    delay: int = 1
    """1 if a step is charged for the state it leads to, c(x_t, a_t, x_{t+1}); 0 for c(x_t, a_t), as in the paper."""

    def check(self) -> "EpisodeShape":
        """The same, if episodes can be like this; a complaint otherwise."""
        whole("the horizon T", self.horizon, most=MOST_STEPS)
        whole("the number of outputs d_x", self.outputs)
        positive("sigma_w", self.noise)
        positive("the largest cost of a step", self.most)
        return self


def total_variation(zeta: float, shape: EpisodeShape) -> float:
    """tv = 2 Phi(zeta sqrt(d_x) / (2 sigma_w)) - 1."""
    shape.check()
    at_least("zeta", zeta)
    return float(erf(zeta * math.sqrt(shape.outputs) / (2 * math.sqrt(2) * shape.noise)))


def tightening(zeta: float, shape: EpisodeShape, form: str = "sharp") -> float:
    """Delta_zeta: |J_c(pi, f) - J_c(pi, f')| is at most this for every policy, if f and f' are zeta-close."""
    shape.check()
    _check_form(form)
    at_least("zeta", zeta)
    if form == "paper":
        if shape.aggregation != "sum":
            raise UserError("the paper's tightening is for summed costs; use form='sharp' for a bound on every step.")
        return zeta * math.sqrt(shape.outputs) * shape.horizon**2 * shape.most / shape.noise
    return shape.most * _apart(total_variation(zeta, shape), shape)


def _apart(tv: float, shape: EpisodeShape) -> float:
    """sum_t (1 - (1 - tv)^t) over the T times at which a cost falls due, or that of the last for the largest cost."""
    last = shape.horizon - 1 + shape.delay
    if tv >= 1:
        return float(min(last, 1) if shape.aggregation == "statewise" else last)
    log_together = math.log1p(-tv)
    if shape.aggregation == "statewise":
        return -math.expm1(last * log_together)
    return _summed(log_together, last)


def _summed(log_q: float, steps: int) -> float:
    """S(n) = sum_{t=1}^n (1 - q^t) in about log2(n) operations, none of which takes a difference of sums:

    S(2 m) = (1 + q^m) S(m) + m (1 - q^m), and S(m + 1) = S(m) + (1 - q^(m+1)).
    """
    total, m = 0.0, 0
    for bit in f"{steps:b}":
        apart = -math.expm1(m * log_q)
        total, m = (2 - apart) * total + m * apart, 2 * m
        if bit == "1":
            m += 1
            total -= math.expm1(m * log_q)
    return total


def closeness_limit(margin: float, shape: EpisodeShape, form: str = "sharp") -> float:
    """zeta_max: Delta_zeta < Delta for every zeta below it. The safe policies of assumption 3 stay feasible then."""
    shape.check()
    _check_form(form)
    positive("the margin Delta", margin)
    if form == "paper":
        return shape.noise * margin / (math.sqrt(shape.outputs) * shape.horizon**2 * shape.most)
    if margin >= shape.most * _apart(1.0, shape):
        return math.inf
    low, high = margin / shape.most / shape.horizon**2 / 2, 1.0  # 1 - (1 - tv)^t <= t tv, so this one is below
    for _ in range(200):
        middle = (low + high) / 2 if high < 4 * low else math.sqrt(low * high)
        low, high = (middle, high) if shape.most * _apart(middle, shape) < margin else (low, middle)
    return float(erfinv(low)) * 2 * math.sqrt(2) * shape.noise / math.sqrt(shape.outputs)


def largest_horizon(zeta: float, margin: float, shape: EpisodeShape, form: str = "sharp") -> int:
    """The longest episode for which zeta-close samples certify: the largest T with Delta_zeta < Delta; 0 if none."""
    positive("the margin Delta", margin)

    def fits(T: int) -> bool:
        return tightening(zeta, shape._replace(horizon=T), form) < margin

    low, high = 0, 1
    while fits(high):
        if high == MOST_STEPS:
            raise UserError(f"the margin Delta={margin:g} leaves the horizon unlimited at zeta={zeta:g}.")
        low, high = high, min(2 * high, MOST_STEPS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def return_factor(width: float, shape: EpisodeShape, form: str = "sharp") -> float:
    """lambda_n^g: |J_g(pi, f) - J_g(pi, mu_n)| <= lambda_n^g J_{s_n}(pi, mu_n) for every f in the confidence set.

    Paper (corollary bound_uncertainty_general): G_max T beta_n / sigma_w. Sharp: a step at which f and mu_n are
    r = beta_n s_n apart changes the law by tv <= r / (sigma_w sqrt(2 pi)), and what is still to be earned is at most
    G_max (T - 1 + delay), so lambda = G_max (T - 1 + delay) beta_n / (sigma_w sqrt(2 pi)); G_max in its place for the
    largest cost of an episode.
    """
    shape.check()
    _check_form(form)
    at_least("the confidence width beta_n", width)
    if form == "paper":
        return shape.most * shape.horizon * width / shape.noise
    steps = 1 if shape.aggregation == "statewise" else shape.horizon - 1 + shape.delay
    return shape.most * steps * width / (shape.noise * math.sqrt(2 * math.pi))


def _check_form(form: str) -> None:
    if form not in TIGHTENINGS:
        raise unknown("tightening", form, TIGHTENINGS)
