"""The CMDP (section 3 of the paper) as the learner may know it: what to learn, at what cost, from what prior."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import gymnasium
import jax
import numpy as np
from jaxtyping import Float

from ._jax import EXACT
from .costs import Cost
from .errors import UserError
from .model import KnownModel, KnownSignals, Signals
from .policies import PolicyClass
from .policy import Policy
from .prior import Prior
from .structure import CostStructure, Structure
from .types import Dynamics, PRNGKey, State, StepFunction
from .validation import Function, Instance, Number, Numbers, Switch, Whole, Word, Words, declared, validate

__all__ = ["Equations", "Limits", "Task", "TaskSettings"]


class Equations(NamedTuple):
    """The true system, written down. For the oracle, the theory and the laboratory; no way to the true system."""

    start: Callable[[PRNGKey], State]
    """Draws x_0 from rho_0."""
    step: StepFunction
    """One step, noise included."""
    dynamics: Dynamics
    """f*: the same without noise."""
    signals: Signals
    noise: tuple[float, ...]
    """Standard deviation of the Gaussian process noise, one number per state."""
    gradual: Signals | None = None
    """The signals with gradual edges, for who needs gradients; None: they have no edges."""

    @property
    def model(self) -> KnownModel:
        """The truth as a model to plan with."""
        return KnownModel(self.dynamics, self.gradual or self.signals)


@dataclass(frozen=True)
class Limits:
    """Bounds that the theory needs."""

    inputs: tuple[float, ...] = declared(Numbers(Number(0.0, finite=False)))
    """The box |z_i| <= r_i in which (x, a) lives; infinite where nothing bounds it."""
    reward: tuple[float, float] = declared(Numbers(Number(finite=False)))
    """Between which the reward of one step lies; the difference is R_max."""

    def __post_init__(self) -> None:
        validate(self, "the limits of ")
        if len(self.reward) != 2 or not self.reward[0] <= self.reward[1]:
            raise UserError(f"the limits of the reward are {self.reward}; give the lower one, then the upper.")


@dataclass(frozen=True)
class TaskSettings:
    """What may be chosen about the task itself: this task leaves nothing to choose."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """A system, what it should do, what it must not do, and what is known of it beforehand."""

    name: str = declared(Word(empty=False))
    state_names: tuple[str, ...] = declared(Words())
    action_low: tuple[float, ...] = declared(Numbers())
    action_high: tuple[float, ...] = declared(Numbers())
    horizon: int = declared(Whole(1, 1_000_000))
    """T: the most control steps of an episode."""
    costs: tuple[Cost, ...] = declared(Instance(Cost, several=True))
    """Safety is demanded for each."""
    start: Callable[[PRNGKey], State] = declared(Function())
    """Draws an initial state, from rho_0 as far as it is known: the system itself is reset only to play.

    A function that JAX can trace.
    """
    open: Callable[..., gymnasium.Env] = declared(Function())
    """Connects to the true system. The costs of a step are in `info["cost"]`: a number, or one per cost.

    Where the system can be drawn, it takes a `render_mode` as Gymnasium does.
    """
    prior: Prior = declared(Instance(Prior))
    signals: Signals | None = declared(Instance(Signals, optional=True), None)
    """Reward and costs where they are known functions; None: they must be learned."""
    known: KnownSignals = declared(Instance(KnownSignals), KnownSignals())
    """The one of both that is known, where the other must be learned."""
    structure: Structure | None = declared(Instance(Structure, optional=True), None)
    """What of the next state is known beforehand; None: nothing."""
    cost_structure: CostStructure | None = declared(Instance(CostStructure, optional=True), None)
    """What is known of costs that must be learned; None: nothing."""
    behaviours: Mapping[str, Callable[[PRNGKey], Policy]] = field(default_factory=dict)
    """Policies that make offline data, by name: each call with a key gives the policy of one episode."""
    equations: Equations | None = declared(Instance(Equations, optional=True), None)
    limits: Limits | None = declared(Instance(Limits, optional=True), None)
    policies: PolicyClass | None = declared(Instance(PolicyClass, optional=True), None)
    """The policies among which one may be searched for whole episodes."""
    sample_state: Callable[[PRNGKey], State] | None = declared(Function(optional=True), None)
    """Draws a state at which a simulator could be asked for a step; None where there is nothing to ask."""
    simulated: bool = declared(Switch(), False)
    """Whether `open` gives a simulation, which may be played for data and for comparison without harm."""
    safe_action: tuple[float, ...] | None = None
    """What is sent when an episode is cut short; None sends the action of the prior's policy, if there is one."""
    fixed_start: tuple[float, ...] | None = None
    """The state that every episode begins at, if it is always the same; None: where episodes begin varies."""
    unobserved: int = declared(Whole(0), 0)
    """How many numbers at the end of a state are no observation: signals of the last step, on which nothing depends."""
    region: tuple[tuple[float, float], ...] | None = None
    """Between which each number of an observation must stay: an episode that leaves is stopped at once."""

    def __post_init__(self) -> None:
        validate(self, "the task's ")
        self._check_actions()
        if len({cost.name for cost in self.costs}) < len(self.costs):
            raise UserError(f"two costs of {self.name} have the same name; give each its own.")
        for cost in self.costs:
            if cost.budget < cost.least(self.horizon):
                raise UserError(
                    f"no policy can meet budget={cost.budget:g}: the cost of {self.name}, {cost.name}, is never below "
                    f"{cost.least(self.horizon):g}; raise the budget."
                )
        if self.fixed_start is not None:
            object.__setattr__(self, "fixed_start", Numbers().read("the task's fixed_start", self.fixed_start))
        self._check_lengths()
        self._check_cost_structure()
        for signals in filter(None, (self.signals, self.equations and self.equations.signals)):
            self._check_signals(signals)

    def _check_signals(self, signals: Signals) -> None:
        """Refuses a reward that is no number, and costs of another number than the task has."""
        x, a = (jax.ShapeDtypeStruct((size,), EXACT) for size in (self.state_size, self.action_size))
        try:
            reward, costs = (jax.eval_shape(function, x, a, x).shape for function in signals)
        except Exception as error:
            raise UserError(
                f"reward and costs of {self.name} must be functions of (x, a, y) that JAX can trace: {error}"
            ) from None
        if reward != () or costs != (len(self.costs),):
            raise UserError(
                f"the reward of {self.name} has shape {reward} and its costs {costs}; give a number, and an array with "
                f"one number for each of the {len(self.costs)} costs."
            )

    def _check_actions(self) -> None:
        if len(self.action_low) != len(self.action_high):
            raise UserError(
                f"{self.name} has {len(self.action_low)} lower and {len(self.action_high)} upper limits of actions; "
                "give one of each per action."
            )
        for low, high in zip(self.action_low, self.action_high, strict=True):
            if not low < high:
                raise UserError(f"the actions of {self.name} lie between {low:g} and {high:g}: swap the limits.")
        if self.safe_action is not None:
            safe = Numbers().read("the task's safe_action", self.safe_action)
            fits = len(safe) == self.action_size and all(
                low <= a <= high for low, a, high in zip(self.action_low, safe, self.action_high, strict=False)
            )
            if not fits:
                raise UserError(f"the safe action {list(safe)} of {self.name} is not within the limits of its actions.")
            object.__setattr__(self, "safe_action", safe)

    def _check_lengths(self) -> None:
        wanted = {
            "the limits of (x, a)": (self.limits and len(self.limits.inputs), self.state_size + self.action_size),
            "the scale of the prior": (self.prior.gp and len(self.prior.gp.scale), self.state_size),
            "the process noise": (self.equations and len(self.equations.noise), self.state_size),
            "the fixed start": (self.fixed_start and len(self.fixed_start), self.state_size),
            "the allowed region": (self.region and len(self.region), self.state_size),
        }
        for what, (given, size) in wanted.items():
            if given is not None and given != size:
                raise UserError(f"{what} of {self.name}: {given} numbers were given, and {size} are needed.")

    def _check_cost_structure(self) -> None:
        """Refuses costs that depend on what does not exist, and limits of another number than there are costs."""
        known = self.cost_structure
        if known is None:
            return
        if max(known.inputs) >= self.state_size + self.action_size:
            raise UserError(
                f"the costs of {self.name} are said to depend on input {max(known.inputs)}; of (x, a) there are "
                f"{self.state_size + self.action_size}, counted from 0."
            )
        if known.features is not None and len(known.shape) != 1:
            raise UserError(
                f"the features that decide the costs of {self.name} have shape {known.shape}; give an array of numbers."
            )
        if known.most is None:
            return
        shape = jax.eval_shape(known.most, jax.ShapeDtypeStruct((self.state_size,), EXACT)).shape
        if shape != (len(self.costs),):
            raise UserError(
                f"what a step of {self.name} costs at most has shape {shape}; give an array with one number for each "
                f"of the {len(self.costs)} costs."
            )

    def connect(self, render_mode: str | None = None) -> gymnasium.Env:
        """The true system; with a mode one that `render()` draws, if it can be drawn."""
        if render_mode is None:
            return self.open()
        if "render_mode" not in inspect.signature(self.open).parameters:
            raise UserError(f"{self.name} cannot be drawn: what opens it takes no render_mode.")
        return self.open(render_mode=render_mode)

    @property
    def known_signals(self) -> KnownSignals:
        """Which of reward and costs are known functions."""
        return self.known if self.signals is None else KnownSignals(*self.signals)

    @property
    def learned_structure(self) -> Structure:
        """Which part of the state is to be predicted."""
        return self.structure or Structure.whole(self.state_size)

    @property
    def state_size(self) -> int:
        return len(self.state_names)

    @property
    def action_size(self) -> int:
        return len(self.action_low)

    @property
    def input_size(self) -> int:
        """d_z = d_x + d_a."""
        return self.state_size + self.action_size

    @property
    def middle_action(self) -> Float[np.ndarray, " da"]:
        """The action in the middle of its range."""
        return (np.asarray(self.action_low) + np.asarray(self.action_high)) / 2
