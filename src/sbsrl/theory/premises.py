"""What the theory is asked about: a kernel on a box, a task, and the numbers in use."""

import math
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np

from ..costs import Aggregation
from ..errors import UserError, unknown
from ..kernels import Kernel
from .checks import at_least, moderate, positive, probability, whole
from .confidence import CONVENTIONS
from .features import Limits
from .modulus import kernel_lipschitz
from .tightening import EpisodeShape, closeness_limit, tightening

__all__ = ["Premises"]

MOST_INPUTS, MOST_OUTPUTS, MOST_SAMPLES = 100, 10**6, 1e300
"""The largest problems that the formulas answer for within seconds, and without overflow."""
LEAST_DELTA = 1e-300
LARGEST_SUPREMUM = 1e150

SHARE = 0.9
"""Unless it is given, zeta is this share of its maximum: the larger it is, the fewer samples are needed."""


@dataclass(frozen=True, eq=False)
class Premises:
    """All that the formulas need, in the paper's units: every output has the noise sigma_w.

    What is None is not known, or is to be chosen.
    """

    kernel: Kernel | tuple[Kernel, ...]
    """k, one for all outputs or one for each."""
    limits: Limits
    """The box |z_i| <= r_i in which the inputs (x, a) live."""
    outputs: int
    """d_x."""
    horizon: int
    """T."""
    noise: float
    """sigma_w."""
    bound: float | None
    """B; None: no bound is known."""
    budget: float
    """d."""
    cost: float = 1.0
    """C_max: the difference between the largest and the smallest cost of a step."""
    reward: float = 1.0
    """R_max, likewise."""
    least: float = 0.0
    """The smallest aggregated cost that any policy can have."""
    margin: float | None = None
    """Delta of assumption prior_knowledge; None: not known, and d - least, which no margin exceeds, stands for it."""
    delta: float = 0.1
    epsilon: float | None = None
    """Accuracy of the optimality theorem; None: half of what Delta_zeta leaves of d - least."""
    samples: int | None = None
    """M in use."""
    zeta: float | None = None
    """None: 0.9 of the largest that is admissible."""
    aggregation: Aggregation = "sum"
    delay: int = 1
    """1 if a step is charged for the state it leads to, 0 as in the paper."""
    convention: str = "corrected"
    form: str = "sharp"
    tightening: float | None = None
    """By how much plans stay below the budget in use."""

    def __post_init__(self) -> None:
        self.shape.check()
        self._check_kernels()
        if self.convention not in CONVENTIONS:
            raise unknown("convention", self.convention, CONVENTIONS)
        tightening(0.0, self.shape, self.form)  # refuses a form that does not exist, or not for this aggregation
        probability("delta", self.delta)
        at_least("the largest reward of a step, R_max,", self.reward)
        if self.bound is not None:
            at_least("the RKHS bound B", self.bound)
        if self.samples is not None:
            whole("the number of samples M", self.samples, most=MOST_SAMPLES)
        if self.tightening is not None:
            at_least("the tightening in use", self.tightening)
        if self.epsilon is not None:
            positive("epsilon", self.epsilon)
        self._check_sizes()
        self._check_budget()

    def _check_sizes(self) -> None:
        """Refuses what the formulas could not be evaluated for: more than some inputs, numbers that overflow."""
        whole("the number of inputs", len(self.limits), most=MOST_INPUTS)
        whole("the number of outputs d_x", self.outputs, most=MOST_OUTPUTS)
        at_least("delta", self.delta, LEAST_DELTA)
        numbers = {
            "sigma_w": self.noise,
            "the RKHS bound B": self.bound,
            "the budget d": self.budget,
            "the least cost of a policy": self.least,
            "the largest cost of a step, C_max,": self.cost,
            "the largest reward of a step, R_max,": self.reward,
            "the margin Delta": self.margin,
            "epsilon": self.epsilon,
            "zeta": self.zeta,
            "the tightening in use": self.tightening,
        }
        for name, value in numbers.items():
            if value is not None and not math.isnan(value):
                moderate(name, value)

    def _check_kernels(self) -> None:
        if len(self.kernels) not in {1, self.outputs}:
            raise UserError(
                f"{len(self.kernels)} kernels were given for {self.outputs} outputs; give 1 or all of them."
            )
        for kernel in self.kernels:
            for parameter in jax.tree.leaves(kernel):
                for value in np.ravel(parameter):
                    moderate(f"a parameter of {type(kernel).__name__}", float(value))
        for limit in self.limits:
            if limit != math.inf:
                moderate("a limit of the inputs", limit)
        for kernel in self.kernels:
            if not 0 < kernel.supremum(self.limits) < math.inf:
                raise UserError(
                    f"{kernel.describe()} has no known bound on k(z, z) for |z_i| <= {list(self.limits)}; give finite "
                    "limits above 0, or compose it with a bounded map (Tanh, Clip, Angles)."
                )
            if not 1 / LARGEST_SUPREMUM <= kernel.supremum(self.limits) <= LARGEST_SUPREMUM:
                raise UserError(
                    f"k(z, z) = {kernel.supremum(self.limits):g} of {kernel.describe()} cannot be computed with; use "
                    "other units."
                )

    def _check_budget(self) -> None:
        if not (self.budget > self.least and math.isfinite(self.budget)):
            raise UserError(f"no policy can meet the budget d={self.budget:g}: costs are never below {self.least:g}.")
        if self.margin is not None and positive("the margin Delta", self.margin) > self.room:
            raise UserError(
                f"the margin Delta={self.margin:g} is more than the budget leaves above the least cost, {self.room:g}."
            )
        if self.zeta is not None and positive("zeta", self.zeta) >= self.closeness_limit:
            raise UserError(
                f"zeta={self.zeta:g} is too large: Delta_zeta would use up the margin Delta={self.largest_margin:g}; "
                f"zeta must be below {self.closeness_limit:.4g}."
            )

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The different kernels: one that all outputs share, or one for each."""
        return self.kernel if isinstance(self.kernel, tuple) else (self.kernel,)

    @property
    def share(self) -> int:
        """How many outputs each of `kernels` stands for."""
        return self.outputs // len(self.kernels)

    @cached_property
    def supremum(self) -> float:
        """sigma_max: k(z, z) <= sigma_max in every output."""
        return max(kernel.supremum(self.limits) for kernel in self.kernels)

    @cached_property
    def steepest(self) -> float:
        """L_k: |k(z, u) - k(z, v)| <= L_k |u - v| in every output."""
        return max(kernel_lipschitz(kernel, self.limits) for kernel in self.kernels)

    @property
    def room(self) -> float:
        """d - least: what a policy may cost above the least that any policy costs."""
        return self.budget - self.least

    @property
    def largest_margin(self) -> float:
        """Delta, or the most optimistic value where it is not known."""
        return self.room if self.margin is None else self.margin

    @property
    def shape(self) -> EpisodeShape:
        """What the bounds on costs need."""
        return EpisodeShape(self.horizon, self.outputs, self.noise, self.cost, self.aggregation, self.delay)

    @property
    def return_shape(self) -> EpisodeShape:
        """What the bounds on costs and rewards together need: G_max = max(C_max, R_max), summed."""
        return self.shape._replace(most=max(self.cost, self.reward), aggregation="sum")

    @cached_property
    def closeness_limit(self) -> float:
        """zeta_max."""
        return closeness_limit(self.largest_margin, self.shape, self.form)

    @cached_property
    def closeness(self) -> float:
        """zeta. Where every zeta is admissible, the largest distance there can be: between two members of F_0^B."""
        if self.zeta is not None:
            return self.zeta
        if math.isfinite(self.closeness_limit):
            return SHARE * self.closeness_limit
        return 2 * (self.bound or 1.0) * math.sqrt(self.supremum)

    @cached_property
    def accuracy(self) -> float:
        """epsilon."""
        if self.epsilon is not None:
            return self.epsilon
        return (self.room - tightening(self.closeness, self.shape, self.form)) / 2 or self.room / 2
