"""By how much the budget is tightened (lemma bound_J_general and the safety theorem of the paper).

If f and f' differ by at most zeta in every output, one step leads to two normal laws of the same variance whose total
variation is at most tv = 2 Phi(zeta sqrt(d_x) / (2 sigma_w)) - 1. The two processes can be coupled so that they still
agree after t steps with probability (1 - tv)^t. A cost in [0, C_max] charged after t steps then differs by at most
C_max (1 - (1 - tv)^t) in expectation; this is `sharp`. The paper bounds every term by T C_max zeta sqrt(d_x) / sigma_w.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import erf, erfinv

from ..errors import UserError, unknown
from ..task import Aggregation, Task
from .checks import at_least, positive, whole

__all__ = [
    "TIGHTENINGS",
    "Episodes",
    "closeness_limit",
    "largest_horizon",
    "return_factor",
    "tightening",
    "total_variation",
]

Form = Literal["sharp", "paper"]
TIGHTENINGS = {
    "sharp": "by coupling: C_max sum_t (1 - (1 - tv)^t)",
    "paper": "zeta sqrt(d_x) T^2 C_max / sigma_w",
}


class Episodes(NamedTuple):
    """What the bounds on returns need to know of a task, in units in which the noise is sigma_w in every output."""

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

    @classmethod
    def of(cls, task: Task) -> "Episodes":
        """Of a task, in units of its prior's scale, with the larger of the ranges of cost and reward.

        Where outputs have different noise the smallest counts. Costs are charged to the state a step leads to.
        """
        ranges = (high - low for low, high in (task.cost_limits, task.reward_limits))
        return cls(task.horizon, task.state_size, float(np.min(task.prior.noise)), max(ranges), task.aggregation)

    def check(self) -> "Episodes":
        """Refuses what is not a task."""
        whole("the horizon T", self.horizon)
        whole("the number of outputs d_x", self.outputs)
        positive("sigma_w", self.noise)
        positive("the largest cost of a step", self.most)
        return self


def total_variation(zeta: float, episodes: Episodes) -> float:
    """tv = 2 Phi(zeta sqrt(d_x) / (2 sigma_w)) - 1."""
    episodes.check()
    at_least("zeta", zeta)
    return float(erf(zeta * math.sqrt(episodes.outputs) / (2 * math.sqrt(2) * episodes.noise)))


def tightening(zeta: float, episodes: Episodes, form: str = "sharp") -> float:
    """Delta_zeta: |J_c(pi, f) - J_c(pi, f')| is at most this for every policy, if f and f' are zeta-close."""
    episodes.check()
    _check_form(form)
    at_least("zeta", zeta)
    if form == "paper":
        if episodes.aggregation != "sum":
            raise UserError("the paper's tightening is for summed costs; use form='sharp' for a bound on every step.")
        return zeta * math.sqrt(episodes.outputs) * episodes.horizon**2 * episodes.most / episodes.noise
    return episodes.most * _apart(total_variation(zeta, episodes), episodes)


def _apart(tv: float, episodes: Episodes) -> float:
    """sum_t (1 - (1 - tv)^t) over the T times at which a cost falls due, or that of the last for the largest cost."""
    last = episodes.horizon - 1 + episodes.delay
    if tv >= 1:
        return float(min(last, 1) if episodes.aggregation == "statewise" else last)
    log_together = math.log1p(-tv)
    if episodes.aggregation == "statewise":
        return -math.expm1(last * log_together)
    return math.fsum(-math.expm1(t * log_together) for t in range(episodes.delay, last + 1))


def closeness_limit(margin: float, episodes: Episodes, form: str = "sharp") -> float:
    """zeta_max: Delta_zeta < Delta for every zeta below it. The safe policies of assumption 3 stay feasible then."""
    episodes.check()
    _check_form(form)
    positive("the margin Delta", margin)
    if form == "paper":
        return episodes.noise * margin / (math.sqrt(episodes.outputs) * episodes.horizon**2 * episodes.most)
    if margin >= episodes.most * _apart(1.0, episodes):
        return math.inf
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if episodes.most * _apart(middle, episodes) < margin else (low, middle)
    return float(erfinv(low)) * 2 * math.sqrt(2) * episodes.noise / math.sqrt(episodes.outputs)


def largest_horizon(zeta: float, margin: float, episodes: Episodes, form: str = "sharp") -> int:
    """The longest episode for which zeta-close samples certify: the largest T with Delta_zeta < Delta; 0 if none."""
    positive("the margin Delta", margin)

    def fits(T: int) -> bool:
        return tightening(zeta, episodes._replace(horizon=T), form) < margin

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
        if high > 10**7:
            raise UserError(f"the margin Delta={margin:g} leaves the horizon unlimited at zeta={zeta:g}.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def return_factor(width: float, episodes: Episodes, form: str = "sharp") -> float:
    """lambda_n^g: |J_g(pi, f) - J_g(pi, mu_n)| <= lambda_n^g J_{s_n}(pi, mu_n) for every f in the confidence set.

    Paper (corollary bound_uncertainty_general): G_max T beta_n / sigma_w. Sharp: a step at which f and mu_n are
    r = beta_n s_n apart changes the law by tv <= r / (sigma_w sqrt(2 pi)), and what is still to be earned is at most
    G_max (T - 1 + delay), so lambda = G_max (T - 1 + delay) beta_n / (sigma_w sqrt(2 pi)); G_max in its place for the
    largest cost of an episode.
    """
    episodes.check()
    _check_form(form)
    at_least("the confidence width beta_n", width)
    if form == "paper":
        return episodes.most * episodes.horizon * width / episodes.noise
    steps = 1 if episodes.aggregation == "statewise" else episodes.horizon - 1 + episodes.delay
    return episodes.most * steps * width / (episodes.noise * math.sqrt(2 * math.pi))


def _check_form(form: str) -> None:
    if form not in TIGHTENINGS:
        raise unknown("tightening", form, TIGHTENINGS)
