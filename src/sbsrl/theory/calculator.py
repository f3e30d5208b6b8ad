"""The formulas applied to given premises. Each number is computed when it is first asked for, and kept."""

import math
from functools import cache, cached_property

import jax.numpy as jnp

from ..errors import UserError
from ..kernels import Kernel
from .confidence import confidence_width
from .exploration import episode_bound, exploration_threshold
from .features import expandable
from .information import Gain, information_gain
from .premises import Premises
from .samples import (
    affordable_exponent,
    closeness_exponent,
    log_sample_count,
    posterior_exponent,
    smallest_closeness,
)
from .small_ball import Curve, Exponent, small_ball_curve
from .subset import Estimate, estimate_small_ball
from .tightening import MOST_STEPS, closeness_limit, largest_horizon, return_factor, tightening

__all__ = ["Calculator"]

GRID = 100
"""Searches over zeta evaluate phi at zeta = exp(i / GRID) only, and remember it: one per cent is fine enough."""

FAR = 1e3
"""zeta / sqrt(sigma_max) beyond which no smaller exponent is looked for."""

DEEPEST = 30.0
"""phi beyond which no simulation is attempted."""
MOST_INPUTS = 8
"""Inputs beyond which no simulation is attempted: the corners alone would be too many."""
MOST_KERNELS = 3


class Calculator:
    """All numbers that follow from the premises. Those that need B must not be asked for where it is not known."""

    def __init__(self, premises: Premises) -> None:
        self.premises = premises
        self._small_balls = cache(self._compute_small_balls)

    # how many samples ------------------------------------------------------------------------------------------------

    @cached_property
    def _curves(self) -> tuple[Curve, ...]:
        return tuple(small_ball_curve(kernel, self.premises.limits) for kernel in self.premises.kernels)

    def _compute_small_balls(self, zeta: float) -> tuple[Exponent, ...]:
        """phi_j(zeta); infinite, with the reason for a method, where there is no bound."""
        try:
            return tuple(curve(zeta) for curve in self._curves)
        except UserError as error:
            return (Exponent(math.inf, str(error)),)

    def small_ball(self, zeta: float) -> float:
        """sum_j phi_j(zeta) / d_x: the exponent of an output, or the mean of those of all outputs."""
        each = self._small_balls(zeta)
        return math.fsum(exponent.value for exponent in each) / len(each)

    def methods(self, zeta: float) -> tuple[str, ...]:
        """How phi_j was bounded, each way once; why it was not, where there is no bound."""
        return tuple(dict.fromkeys(exponent.method for exponent in self._small_balls(zeta)))

    def _coarse(self, zeta: float) -> float:
        """phi at the next smaller zeta of a grid. phi decreases, so this is a bound, too."""
        return self.small_ball(math.exp(math.floor(GRID * math.log(zeta)) / GRID))

    @property
    def bound(self) -> float:
        """B."""
        if self.premises.bound is None:
            raise UserError("B is not known.")
        return self.premises.bound

    def exponent(self, zeta: float) -> float:
        """x = sum_j (B^2 / 2 + phi_j(zeta))."""
        bound, phi = self.bound, self.small_ball(zeta)
        return closeness_exponent(bound, phi, self.premises.outputs) if math.isfinite(phi) else math.inf

    def log_samples(self, zeta: float) -> float:
        """ln M."""
        exponent = self.exponent(zeta)
        return log_sample_count(exponent, self.premises.delta) if math.isfinite(exponent) else math.inf

    def enough(self, zeta: float) -> bool:
        """Whether the M in use suffices for this zeta."""
        return self.premises.samples is not None and self.log_samples(zeta) <= self.log_in_use

    @cached_property
    def simulated(self) -> Estimate:
        """phi(zeta) by simulation, the mean over outputs; infinite where it is too deep."""
        premises = self.premises
        if len(premises.limits) > MOST_INPUTS or len(premises.kernels) > MOST_KERNELS:
            raise UserError(f"simulated for at most {MOST_INPUTS} inputs and {MOST_KERNELS} kernels")
        found = [
            estimate_small_ball(k, premises.limits, premises.closeness, 200, 400, 3, deepest=DEEPEST)
            for k in premises.kernels
        ]
        error = math.hypot(*(estimate.error for estimate in found)) / len(found)
        return Estimate(math.fsum(estimate.value for estimate in found) / len(found), error)

    def resampled_exponent(self, episode: int) -> float:
        """x for samples of the posterior before this episode, with the prior's phi as a bound on the posterior's."""
        phi = self.small_ball(self.premises.closeness)
        return posterior_exponent(self.width(episode), phi, self.premises.outputs)

    # what the M in use buys ------------------------------------------------------------------------------------------

    @property
    def log_in_use(self) -> float:
        """ln M of the M in use."""
        assert self.premises.samples is not None
        return math.log(self.premises.samples)

    @property
    def affordable(self) -> float:
        """The largest exponent for which the M in use suffices."""
        return affordable_exponent(self.log_in_use, self.premises.delta)

    @property
    def norm_exponent(self) -> float:
        """d_x B^2 / 2: the part of the exponent that no zeta makes smaller."""
        return self.premises.outputs * self.bound**2 / 2

    @cached_property
    def smallest_zeta(self) -> float | None:
        """The smallest zeta that the M in use certifies, or None."""
        if self.norm_exponent >= self.affordable:
            return None
        premises, most = self.premises, FAR * math.sqrt(self.premises.supremum)
        return smallest_closeness(self._coarse, self.bound, premises.outputs, self.log_in_use, premises.delta, most)

    @cached_property
    def longest(self) -> int | None:
        """The longest episode that the M in use certifies, at most `MOST_STEPS`; None: any."""
        if self.harmless is None or self.smallest_zeta is None:
            return self.harmless
        return self._largest_horizon(self.smallest_zeta, self.premises.form)

    @cached_property
    def harmless(self) -> int | None:
        """The longest episode whose cost cannot differ by the margin whatever the dynamics is; None: any."""
        premises, margin = self.premises, self.premises.largest_margin
        if premises.aggregation == "statewise" and margin >= premises.cost:
            return None
        return self._largest_horizon(FAR * premises.noise, "sharp")

    def _largest_horizon(self, zeta: float, form: str) -> int:
        try:
            return largest_horizon(zeta, self.premises.largest_margin, self.premises.shape, form)
        except UserError:
            return MOST_STEPS

    # tightening ------------------------------------------------------------------------------------------------------

    def tightening(self, zeta: float) -> float:
        """Delta_zeta in the form that the premises choose."""
        return tightening(zeta, self.premises.shape, self.premises.form)

    @cached_property
    def covered(self) -> float:
        """The zeta that the tightening in use covers: Delta_zeta is not above it. 0 for no tightening."""
        if not self.premises.tightening:
            return 0.0
        return closeness_limit(self.premises.tightening, self.premises.shape, self.premises.form)

    @property
    def tightening_suffices(self) -> bool:
        """Whether the tightening and the M in use go together: the samples that it covers are sure to be among M."""
        if self.premises.bound is None or not self.covered:
            return False
        return math.isinf(self.covered) or self.enough(self.covered)

    # confidence and exploration --------------------------------------------------------------------------------------

    @cached_property
    def gain(self) -> Gain:
        """gamma_N, the largest of all outputs."""
        gains = [self._gain_of(kernel) for kernel in self.premises.kernels]
        return cache(lambda points: max(gain(points) for gain in gains))

    def _gain_of(self, kernel: Kernel) -> Gain:
        """The best bound that is known; that of points which have nothing to do with each other always holds."""
        try:
            return information_gain(kernel, self.premises.limits, self.premises.noise)
        except UserError:
            return self.trivial_gain

    def trivial_gain(self, points: float) -> float:
        """N / 2 ln(1 + sigma_max / sigma_w^2): the gain of N points that have nothing to do with each other."""
        return points / 2 * math.log1p(self.premises.supremum / self.premises.noise**2)

    def width(self, episode: float) -> float:
        """beta_n, with beta_0 = B."""
        premises = self.premises
        if episode == 0:
            return self.bound
        gamma, noise = jnp.asarray(self.gain(episode * premises.horizon)), jnp.asarray(premises.noise)
        return float(confidence_width(gamma, self.bound, noise, premises.outputs, premises.delta, premises.convention))

    @property
    def calibrated(self) -> bool:
        """Whether beta_n is proven: the paper's is for sigma_w >= 1 only."""
        return self.premises.convention == "corrected" or self.premises.noise >= 1

    @property
    def reach(self) -> float:
        """xi = epsilon + Delta_zeta: the margin that policies must keep to be compared with (theorem Optimality)."""
        in_effect = self.premises.tightening if self.tightening_suffices else self.tightening(self.premises.closeness)
        return self.premises.accuracy + (in_effect or 0.0)

    @property
    def vacuous_accuracy(self) -> bool:
        """Whether no policy is left to compare with: one that costs xi less than the budget."""
        return self.reach >= self.premises.room

    def return_factor(self, episode: int) -> float:
        """lambda_n^G."""
        return return_factor(self.width(episode), self.premises.return_shape, self.premises.form)

    def threshold(self, episode: int) -> float:
        """d_sigma^n; infinite where beta_n = 0 and nothing is left to explore."""
        if self.width(episode) == 0:
            return math.inf
        return exploration_threshold(
            self.premises.accuracy, self.width(episode), self.premises.return_shape, self.premises.form
        )

    def episode_bound(self, factor: float) -> float:
        """n_bar."""
        premises = self.premises
        if not all(kernel.rank is not None or expandable(kernel) for kernel in premises.kernels):
            raise UserError("the bound on gamma_N that is known for this kernel grows too fast")
        return episode_bound(
            premises.accuracy,
            premises.delta,
            self.width,
            self.gain,
            premises.supremum,
            premises.return_shape,
            premises.form,
            factor,
        )
