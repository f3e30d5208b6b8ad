"""What a belief about the system must offer (sections 4 and 5 of the paper)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Float

from ..model import Model
from ..policy import Metrics, Policy
from ..theory.evidence import Misfit
from ..transitions import Episode, Transitions
from ..types import Action, Index, PRNGKey, Scalar, State

__all__ = [
    "Belief",
    "Calibrated",
    "Comparing",
    "Drawing",
    "Forgetful",
    "Prepared",
    "Renewable",
    "Rows",
    "Samples",
    "SideBySide",
    "Steps",
    "Switchable",
    "Tested",
    "Uncertainty",
]

Uncertainty = Callable[[State, Action], Scalar]
"""s_n: how much is still unknown at (x, a)."""


@runtime_checkable
class Samples(Protocol):
    """M models f_n^1 .. f_n^M. Each is a function, or draws its next state (`Model.stochastic`)."""

    def __len__(self) -> int: ...

    def member(self, m: Index) -> Model:
        """f_n^m."""
        ...


@runtime_checkable
class Renewable(Samples, Protocol):
    """Samples that can be drawn anew: what was found with some can be checked with others."""

    def renewed(self, key: PRNGKey) -> "Renewable":
        """As many new samples of the same belief."""
        ...


class Steps(NamedTuple):
    """One step of n models side by side."""

    states: Float[Array, "n dx"]
    rewards: Float[Array, " n"]
    costs: Float[Array, "n k"]


@runtime_checkable
class Rows(Protocol):
    """n models side by side, which are faster asked together than one by one."""

    def noises(self, key: PRNGKey, steps: int, training: bool) -> Float[Array, "T n z"]:
        """What so many steps of all rows draw; z is 0 where models are functions.

        A policy may be trained with more noise than its forecasts are made with.
        """
        ...

    def begun(self, n: int) -> Any:
        """What n rows remember at the beginning of an episode; an empty tuple where the state is all there is."""
        ...

    def advanced(
        self, x: Float[Array, "n dx"], a: Float[Array, "n da"], noise: Float[Array, "n z"], memory: Any
    ) -> tuple[Steps, Float[Array, " n"], Any]:
        """A step of every row, the uncertainty s_n at every row, and what the rows remember after it."""
        ...


class Forgetful(ABC):
    """Rows that remember nothing: a step of them is `steps`, of states, actions and noise."""

    def begun(self, n: int) -> tuple[()]:
        return ()

    def advanced(
        self, x: Float[Array, "n dx"], a: Float[Array, "n da"], noise: Float[Array, "n z"], memory: tuple[()]
    ) -> tuple[Steps, Float[Array, " n"], tuple[()]]:
        return *self.steps(x, a, noise), ()

    @abstractmethod
    def steps(
        self, x: Float[Array, "n dx"], a: Float[Array, "n da"], noise: Float[Array, "n z"]
    ) -> tuple[Steps, Float[Array, " n"]]:
        """A step of every row, and the uncertainty s_n at every row."""


@runtime_checkable
class SideBySide(Samples, Protocol):
    """Samples that can be put side by side with the nominal model."""

    def beside(self, each: int, nominal: int) -> Rows:
        """So many rows of every sample, one sample after the other, then so many of the nominal model."""
        ...


@runtime_checkable
class Belief(Protocol):
    """What is believed about the system after n episodes. Beliefs are values: `update` gives a new one."""

    def nominal(self) -> Model:
        """mu_n."""
        ...

    def uncertainty(self) -> Uncertainty:
        """s_n."""
        ...

    def samples(self, key: PRNGKey, count: int) -> Samples:
        """f_n^1 .. f_n^M, drawn independently.

        The key is that of the whole run: a belief may keep its samples over the episodes, or draw new ones with keys
        that it derives.
        """
        ...

    def update(self, data: Transitions, key: PRNGKey) -> "Belief":
        """The belief after seeing these transitions of the true system. The key is of the episode they come from."""
        ...


@runtime_checkable
class Calibrated(Belief, Protocol):
    """A belief with confidence sets: |mu_n - f*| <= beta_n sigma_n with high probability. Only a GP can say that."""

    def width(self) -> Float[Array, " dx"]:
        """beta_n of each output; infinite where nothing is known."""
        ...

    def calibration_warning(self) -> str | None:
        """That the confidence sets so far have no common point, in words; None if they have."""
        ...

    def misfit(self) -> Misfit | None:
        """How well the best function explains all data so far; None where nothing is claimed of it."""
        ...


@runtime_checkable
class Comparing(Calibrated, Protocol):
    """A belief that can say whether offline data and episodes are of one system."""

    def disagreement(self) -> float | None:
        """Above 1 only if they are not, but for what a test may spend of delta; None: there is nothing to compare."""
        ...


@runtime_checkable
class Drawing(Belief, Protocol):
    """A belief that is a probability, so that how likely something is under it can be counted."""

    def draws(self, key: PRNGKey, count: int) -> Samples:
        """Functions drawn independently from the posterior, whatever the samples are that are planned with."""
        ...

    def noise(self) -> Float[Array, " dx"]:
        """The standard deviation of the process noise that it believes in, in units of the state."""
        ...


@runtime_checkable
class Switchable(Belief, Protocol):
    """A belief that has members, of which a trajectory can follow another one at every step."""

    def switching(self, count: int) -> Samples:
        """So many samples that follow, at each step, a member drawn at random (TS1): without a model of its own."""
        ...


@runtime_checkable
class Prepared(Belief, Protocol):
    """A belief that learns from its offline data in a phase of its own, since that takes its time."""

    def prepared(self, key: PRNGKey) -> tuple["Belief", Metrics]:
        """The belief after the offline phase, and numbers about it."""
        ...


@runtime_checkable
class Tested(Belief, Protocol):
    """A belief that compares what it predicted for a policy with what then happened, and adapts its samples to it."""

    def tested(self, policy: Policy, episode: Episode, key: PRNGKey) -> tuple["Belief", Metrics]:
        """The belief after this test, before it learns from the episode; and numbers for the ledger."""
        ...
