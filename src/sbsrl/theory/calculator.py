"""The formulas applied to one setting. Each number is computed when it is first asked for, and kept."""

import math
from functools import cache, cached_property

import jax.numpy as jnp

from ..errors import UserError
from .confidence import confidence_width
from .exploration import episode_bound, exploration_threshold
from .features import expandable
from .information import Gain, information_gain
from .samples import (
    affordable_exponent,
    closeness_exponent,
    log_sample_count,
    posterior_exponent,
    smallest_closeness,
)
from .setting import Setting
from .small_ball import Exponent, small_ball
from .subset import Estimate, estimate_small_ball
from .tightening import closeness_limit, largest_horizon, return_factor, tightening

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
    """All numbers of a setting. Those that need B must not be asked for where it is not known."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._small_balls = cache(self._compute_small_balls)

    # how many samples ------------------------------------------------------------------------------------------------

    def _compute_small_balls(self, zeta: float) -> tuple[Exponent, ...]:
        return tuple(small_ball(kernel, self.setting.limits, zeta) for kernel in self.setting.kernels)

    def small_ball(self, zeta: float) -> float:
        """sum_j phi_j(zeta) / d_x: the exponent of an output, or the mean of those of all outputs."""
        each = self._small_balls(zeta)
        return math.fsum(exponent.value for exponent in each) / len(each)

    def methods(self, zeta: float) -> tuple[str, ...]:
        """How phi_j was bounded, each way once."""
        return tuple(dict.fromkeys(exponent.method for exponent in self._small_balls(zeta)))

    def _coarse(self, zeta: float) -> float:
        """phi at the next smaller zeta of a grid. phi decreases, so this is a bound, too."""
        return self.small_ball(math.exp(math.floor(GRID * math.log(zeta)) / GRID))

    @property
    def bound(self) -> float:
        """B."""
        if self.setting.bound is None:
            raise UserError("B is not known.")
        return self.setting.bound

    def exponent(self, zeta: float) -> float:
        """x = sum_j (B^2 / 2 + phi_j(zeta))."""
        bound, phi = self.bound, self.small_ball(zeta)
        return closeness_exponent(bound, phi, self.setting.outputs) if math.isfinite(phi) else math.inf

    def log_samples(self, zeta: float) -> float:
        """ln M."""
        exponent = self.exponent(zeta)
        return log_sample_count(exponent, self.setting.delta) if math.isfinite(exponent) else math.inf

    def enough(self, zeta: float) -> bool:
        """Whether the M in use suffices for this zeta."""
        return self.setting.samples is not None and self.log_samples(zeta) <= self.log_in_use

    @cached_property
    def simulated(self) -> Estimate:
        """phi(zeta) by simulation, the mean over outputs; infinite where it is too deep."""
        setting = self.setting
        if len(setting.limits) > MOST_INPUTS or len(setting.kernels) > MOST_KERNELS:
            raise UserError(f"simulated for at most {MOST_INPUTS} inputs and {MOST_KERNELS} kernels")
        found = [
            estimate_small_ball(k, setting.limits, setting.closeness, 200, 400, 3, deepest=DEEPEST)
            for k in setting.kernels
        ]
        error = math.hypot(*(estimate.error for estimate in found)) / len(found)
        return Estimate(math.fsum(estimate.value for estimate in found) / len(found), error)

    def resampled_exponent(self, episode: int) -> float:
        """x for samples of the posterior before this episode, with the prior's phi as a bound on the posterior's."""
        phi = self.small_ball(self.setting.closeness)
        return posterior_exponent(self.width(episode), phi, self.setting.outputs)

    # what the M in use buys ------------------------------------------------------------------------------------------

    @property
    def log_in_use(self) -> float:
        """ln M of the M in use."""
        assert self.setting.samples is not None
        return math.log(self.setting.samples)

    @property
    def affordable(self) -> float:
        """The largest exponent for which the M in use suffices."""
        return affordable_exponent(self.log_in_use, self.setting.delta)

    @property
    def norm_exponent(self) -> float:
        """d_x B^2 / 2: the part of the exponent that no zeta makes smaller."""
        return self.setting.outputs * self.bound**2 / 2

    @cached_property
    def smallest_zeta(self) -> float | None:
        """The smallest zeta that the M in use certifies, or None."""
        if self.norm_exponent >= self.affordable:
            return None
        setting, most = self.setting, FAR * math.sqrt(self.setting.supremum)
        return smallest_closeness(self._coarse, self.bound, setting.outputs, self.log_in_use, setting.delta, most)

    @cached_property
    def longest(self) -> int | None:
        """The longest episode that the M in use certifies; None: any."""
        if self.harmless is None or self.smallest_zeta is None:
            return self.harmless
        setting = self.setting
        return largest_horizon(self.smallest_zeta, setting.largest_margin, setting.episodes, setting.form)

    @cached_property
    def harmless(self) -> int | None:
        """The longest episode whose cost cannot differ by the margin whatever the dynamics is; None: any."""
        setting, margin = self.setting, self.setting.largest_margin
        if setting.aggregation == "statewise" and margin >= setting.cost:
            return None
        return largest_horizon(FAR * setting.noise, margin, setting.episodes, "sharp")

    # tightening ------------------------------------------------------------------------------------------------------

    def tightening(self, zeta: float) -> float:
        """Delta_zeta in the form of the setting."""
        return tightening(zeta, self.setting.episodes, self.setting.form)

    @cached_property
    def covered(self) -> float:
        """The zeta that the tightening in use covers: Delta_zeta is not above it. 0 for no tightening."""
        if not self.setting.tightening:
            return 0.0
        return closeness_limit(self.setting.tightening, self.setting.episodes, self.setting.form)

    @property
    def tightening_suffices(self) -> bool:
        """Whether the tightening and the M in use go together: the samples that it covers are sure to be among M."""
        if self.setting.bound is None or not self.covered:
            return False
        return math.isinf(self.covered) or self.enough(self.covered)

    # confidence and exploration --------------------------------------------------------------------------------------

    @cached_property
    def gain(self) -> Gain:
        """gamma_N, the largest of all outputs."""
        setting = self.setting
        gains = [information_gain(kernel, setting.limits, setting.noise) for kernel in setting.kernels]
        return cache(lambda points: max(gain(points) for gain in gains))

    def trivial_gain(self, points: float) -> float:
        """N / 2 ln(1 + sigma_max / sigma_w^2): the gain of N points that have nothing to do with each other."""
        return points / 2 * math.log1p(self.setting.supremum / self.setting.noise**2)

    def width(self, episode: float) -> float:
        """beta_n, with beta_0 = B."""
        setting = self.setting
        if episode == 0:
            return self.bound
        gamma, noise = jnp.asarray(self.gain(episode * setting.horizon)), jnp.asarray(setting.noise)
        return float(confidence_width(gamma, self.bound, noise, setting.outputs, setting.delta, setting.convention))

    @property
    def calibrated(self) -> bool:
        """Whether beta_n is proven: the paper's is for sigma_w >= 1 only."""
        return self.setting.convention == "corrected" or self.setting.noise >= 1

    @property
    def vacuous_accuracy(self) -> bool:
        """Whether no policy is left to compare with: one that costs epsilon + Delta_zeta less than the budget."""
        in_effect = self.setting.tightening if self.tightening_suffices else self.tightening(self.setting.closeness)
        return self.setting.accuracy + (in_effect or 0.0) >= self.setting.room

    def return_factor(self, episode: int) -> float:
        """lambda_n^G."""
        return return_factor(self.width(episode), self.setting.returns, self.setting.form)

    def threshold(self, episode: int) -> float:
        """d_sigma^n; infinite where beta_n = 0 and nothing is left to explore."""
        if self.width(episode) == 0:
            return math.inf
        return exploration_threshold(
            self.setting.accuracy, self.width(episode), self.setting.returns, self.setting.form
        )

    def episode_bound(self, factor: float) -> float:
        """n_bar."""
        setting = self.setting
        if not all(kernel.rank is not None or expandable(kernel) for kernel in setting.kernels):
            raise UserError("the bound on gamma_N that is known for this kernel grows too fast")
        return episode_bound(
            setting.accuracy,
            setting.delta,
            self.width,
            self.gain,
            setting.supremum,
            setting.returns,
            setting.form,
            factor,
        )
