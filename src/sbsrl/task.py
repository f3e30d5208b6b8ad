"""The CMDP (section 3 of the paper): what is to be learned, at what cost, and what is known beforehand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .kernels import Kernel
from .policies import PolicyClass
from .types import Dynamics, PRNGKey, Scalar, State, StepFunction, TransitionFunction

__all__ = ["Aggregation", "Episode", "Prior", "Task", "Transitions", "aggregate", "violation"]

Aggregation = Literal["sum", "statewise"]


def aggregate(costs: Float[Array, " T"], how: Aggregation) -> Scalar:
    """The cost of a trajectory: J_c = sum_t c_t (`sum`), or max_t c_t, a bound on every step (`statewise`)."""
    return jnp.sum(costs) if how == "sum" else jnp.max(costs)


def violation(cost: float, budget: float) -> float:
    """max(J_c - d, 0): by how much the budget is exceeded; 0 means safe."""
    return max(cost - budget, 0.0)


class Transitions(NamedTuple):
    """Data (x_t, a_t, x_{t+1}) from the true transition map."""

    states: Float[np.ndarray, "N dx"]
    actions: Float[np.ndarray, "N da"]
    next_states: Float[np.ndarray, "N dx"]


class Episode(NamedTuple):
    """What really happened in one episode on the true system."""

    states: Float[np.ndarray, "T1 dx"]
    actions: Float[np.ndarray, "T da"]
    rewards: Float[np.ndarray, " T"]
    costs: Float[np.ndarray, " T"]

    @property
    def transitions(self) -> Transitions:
        return Transitions(self.states[:-1], self.actions, self.states[1:])


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known before the first episode (assumptions 2 and 3 of the paper).

    The true dynamics is f(z) = mean(z) + scale * g(z), where each g_j has norm at most `bound` in the RKHS of the
    kernel, and is observed with noise of standard deviation `noise`. In units of `scale` this is the paper's model,
    with one kernel and one sigma_w for all outputs, or one of each for every output.
    """

    name: str
    mean: Dynamics
    """mu: the best guess of the next state, often an imperfect simulator."""
    scale: tuple[float, ...]
    """Size of the mismatch of one control step, one number a state."""
    kernel: Kernel | tuple[Kernel, ...]
    """k, a function of (x, a): one for all outputs, which is fast, or one for each."""
    noise: float | tuple[float, ...]
    """sigma_w, in units of `scale`."""
    bound: float | None
    """B, or None where no bound is known."""
    bound_source: str
    """Where the bound comes from, in words for the certificate."""
    informative: bool
    """Whether it says enough for plans of the first episode to be feasible on its samples."""
    data: Transitions | None = None
    """Transitions of a safe behaviour, if there are any."""

    def describe_kernel(self) -> str:
        """The kernel, or the kernels of all outputs, in a line."""
        kernels = (self.kernel,) if isinstance(self.kernel, Kernel) else self.kernel
        return ", ".join(kernel.describe() for kernel in kernels)


@dataclass(frozen=True, eq=False)
class Task:
    """A system, what it should do, and what it must not do."""

    name: str
    state_names: tuple[str, ...]
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    horizon: int
    """T: control steps an episode."""
    reset: Callable[[PRNGKey], State]
    """Draws x_0 from rho_0."""
    step: StepFunction
    """The true system, noise included. The learner sees only its outputs."""
    dynamics: Dynamics
    """f*, for the `oracle` that learned policies are compared with. No other method reads it."""
    reward: TransitionFunction
    cost: TransitionFunction
    cost_name: str
    cost_limits: tuple[float, float]
    """Between which the cost of one step lies; the theory needs the difference, C_max."""
    reward_limits: tuple[float, float]
    """Between which the reward of one step lies; the difference is R_max."""
    input_limits: tuple[float, ...]
    """The box |z_i| <= r_i in which (x, a) lives; infinite where nothing bounds it."""
    process_noise: tuple[float, ...]
    """Standard deviation of the Gaussian noise of the true system, one number a state."""
    budget: float
    """d."""
    aggregation: Aggregation
    prior: Prior
    policies: PolicyClass | None = None
    """The policies among which one may be searched for whole episodes; None plans actions instead."""
    anywhere: Callable[[PRNGKey], State] | None = None
    """Draws a state at which a simulator could be asked for a step; None where there is nothing to ask."""
    margin: Callable[["Task"], float] | None = None
    """Computes Delta: by how much the best policy stays below the budget on all dynamics that the prior allows."""

    @property
    def least_cost(self) -> float:
        """The smallest aggregated cost any trajectory can have: a budget below it can never be met."""
        low = self.cost_limits[0]
        return low * self.horizon if self.aggregation == "sum" else low

    @property
    def state_size(self) -> int:
        return len(self.state_names)

    @property
    def action_size(self) -> int:
        return len(self.action_low)
