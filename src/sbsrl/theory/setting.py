"""What the theory is asked about: a kernel on a box, a task, and the numbers in use."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import UserError, unknown
from ..kernels import Kernel
from ..settings import Settings
from ..task import Aggregation, Task
from .checks import at_least, positive, probability, whole
from .confidence import CONVENTIONS
from .features import Limits
from .modulus import kernel_lipschitz
from .tightening import Episodes, closeness_limit, tightening

__all__ = ["Setting", "unbounded_returns"]

SHARE = 0.9
"""Unless it is given, zeta is this share of its maximum: the larger it is, the fewer samples are needed."""


@dataclass(frozen=True, eq=False)
class Setting:
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

    @classmethod
    def of(cls, task: Task, settings: Settings, **changes: Any) -> "Setting":
        """Of a task and the settings of a run, in units of the prior's scale.

        Where outputs differ in noise, output j is measured in units in which its noise is the smallest one: dividing
        f_j and sigma_j by c divides the kernel by c^2 and leaves the norm B as it is.
        """
        if (unbounded := unbounded_returns(task)) and not {"cost", "reward"} <= changes.keys():
            raise UserError(f"nothing can be certified: {unbounded}")
        prior = task.prior
        kernels = prior.kernel if isinstance(prior.kernel, tuple) else (prior.kernel,)
        noise = np.broadcast_to(prior.noise, task.state_size)
        least = float(noise.min())
        if np.ptp(noise) > 0:
            spread = [kernels[j % len(kernels)] for j in range(task.state_size)]
            kernels = tuple((least / float(s)) ** 2 * k for s, k in zip(noise, spread, strict=True))
        known = {
            "kernel": kernels if len(kernels) > 1 else kernels[0],
            "limits": task.input_limits,
            "outputs": task.state_size,
            "horizon": task.horizon,
            "noise": least,
            "bound": prior.bound,
            "budget": task.budget,
            "cost": task.cost_limits[1] - task.cost_limits[0],
            "reward": task.reward_limits[1] - task.reward_limits[0],
            "least": task.least_cost,
            "margin": _margin(task),
            "delta": settings.delta,
            "epsilon": settings.accuracy or None,
            "samples": settings.samples,
            "aggregation": task.aggregation,
            "convention": settings.convention,
            "form": settings.form,
            "tightening": settings.tightening,
        }
        return cls(**{**known, **changes})

    def __post_init__(self) -> None:
        self.episodes.check()
        self._check_kernels()
        if self.convention not in CONVENTIONS:
            raise unknown("convention", self.convention, CONVENTIONS)
        tightening(0.0, self.episodes, self.form)  # refuses a form that does not exist, or not for this aggregation
        probability("delta", self.delta)
        at_least("the largest reward of a step, R_max,", self.reward)
        if self.bound is not None:
            at_least("the RKHS bound B", self.bound)
        if self.samples is not None:
            whole("the number of samples M", self.samples)
        if self.tightening is not None:
            at_least("the tightening in use", self.tightening)
        if self.epsilon is not None:
            positive("epsilon", self.epsilon)
        self._check_budget()

    def _check_kernels(self) -> None:
        if len(self.kernels) not in {1, self.outputs}:
            raise UserError(
                f"{len(self.kernels)} kernels were given for {self.outputs} outputs; give 1 or all of them."
            )
        for kernel in self.kernels:
            if not 0 < kernel.supremum(self.limits) < math.inf:
                raise UserError(
                    f"{kernel.describe()} has no known bound on k(z, z) for |z_i| <= {list(self.limits)}; give finite "
                    "limits above 0, or compose it with a bounded map (Tanh, Clip, Angles)."
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
    def episodes(self) -> Episodes:
        """What the bounds on costs need."""
        return Episodes(self.horizon, self.outputs, self.noise, self.cost, self.aggregation, self.delay)

    @property
    def returns(self) -> Episodes:
        """What the bounds on costs and rewards together need: G_max = max(C_max, R_max), summed."""
        return self.episodes._replace(most=max(self.cost, self.reward), aggregation="sum")

    @cached_property
    def closeness_limit(self) -> float:
        """zeta_max."""
        return closeness_limit(self.largest_margin, self.episodes, self.form)

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
        return (self.room - tightening(self.closeness, self.episodes, self.form)) / 2 or self.room / 2


def unbounded_returns(task: Task) -> str | None:
    """Why the theory has nothing to say about this task, if costs or rewards have no bound."""
    limits = {"cost": task.cost_limits, "reward": task.reward_limits}
    for name, (low, high) in limits.items():
        if not math.isfinite(high - low):
            return f"the {name} of a step of {task.name} has no bound (it lies between {low:g} and {high:g})."
    return None


def _margin(task: Task) -> float | None:
    """Delta, if it can be computed and there is one."""
    margin = None if task.margin is None else task.margin(task)
    return margin if margin is not None and margin > 0 else None
