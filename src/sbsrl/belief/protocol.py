"""What a belief about the system must offer (sections 4 and 5 of the paper)."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from jaxtyping import Array, Float

from ..model import Model
from ..transitions import Transitions
from ..types import Action, Index, PRNGKey, Scalar, State

__all__ = ["Belief", "Calibrated", "Samples", "Uncertainty"]

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
