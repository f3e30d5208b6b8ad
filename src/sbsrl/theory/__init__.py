"""The paper's theory as pure functions: formulas in the docstrings, logarithms where numbers would overflow."""

from .assumptions import Assumption, TaskFacts, assumptions
from .certify import Certification, Point, certify, tradeoff
from .confidence import CONVENTIONS, confidence_width
from .exploration import (
    VARIANCE_SUM_FACTORS,
    episode_bound,
    exploration_threshold,
    uncertainty_factor,
    variance_sum,
)
from .information import data_gain, greedy_gain, information_gain, net_gain, rank_gain, tail_gain
from .lipschitz import mean_lipschitz, perturbation_bound, uncertainty_holder
from .modulus import kernel_lipschitz
from .premises import Premises
from .quantities import Quantity
from .samples import (
    affordable_exponent,
    closeness_exponent,
    failure_probability,
    log_sample_count,
    posterior_exponent,
    resampling_delta,
    sample_count,
    smallest_closeness,
)
from .small_ball import ball_exponent, box_exponent, chaining_exponent, levels_exponent, small_ball
from .subset import estimate_small_ball
from .tightening import (
    TIGHTENINGS,
    EpisodeShape,
    closeness_limit,
    largest_horizon,
    return_factor,
    tightening,
    total_variation,
)

__all__ = [
    "CONVENTIONS",
    "TIGHTENINGS",
    "VARIANCE_SUM_FACTORS",
    "Assumption",
    "Certification",
    "EpisodeShape",
    "Point",
    "Premises",
    "Quantity",
    "TaskFacts",
    "affordable_exponent",
    "assumptions",
    "ball_exponent",
    "box_exponent",
    "certify",
    "chaining_exponent",
    "closeness_exponent",
    "closeness_limit",
    "confidence_width",
    "data_gain",
    "episode_bound",
    "estimate_small_ball",
    "exploration_threshold",
    "failure_probability",
    "greedy_gain",
    "information_gain",
    "kernel_lipschitz",
    "largest_horizon",
    "levels_exponent",
    "log_sample_count",
    "mean_lipschitz",
    "net_gain",
    "perturbation_bound",
    "posterior_exponent",
    "rank_gain",
    "resampling_delta",
    "return_factor",
    "sample_count",
    "small_ball",
    "smallest_closeness",
    "tail_gain",
    "tightening",
    "total_variation",
    "tradeoff",
    "uncertainty_factor",
    "uncertainty_holder",
    "variance_sum",
]
