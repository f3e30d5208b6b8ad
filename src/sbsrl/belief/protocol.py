"""What a belief about the dynamics must offer (sections 4 and 5 of the paper)."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from jaxtyping import Array, Float

from ..task import Transitions
from ..types import Action, Dynamics, Index, PRNGKey, Scalar, State

__all__ = ["Belief", "Samples", "Uncertainty"]

Uncertainty = Callable[[State, Action], Scalar]
"""s_n: how much is still unknown at (x, a)."""


@runtime_checkable
class Samples(Protocol):
    """M dynamics f_n^1 .. f_n^M. Each one is a function: the same input always has the same output."""

    def __len__(self) -> int: ...

    def member(self, m: Index) -> Dynamics:
        """f_n^m."""
        ...


@runtime_checkable
class Belief(Protocol):
    """What is believed about the dynamics after n episodes. Beliefs are values: `update` gives a new one."""

    def nominal(self) -> Dynamics:
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

    def width(self) -> Float[Array, " dx"]:
        """beta_n of each output, with which |mu_n - f*| <= beta_n sigma_n; infinite where nothing is known."""
        ...

    def update(self, data: Transitions) -> "Belief":
        """The belief after seeing these transitions of the true system."""
        ...

    def objection(self) -> str | None:
        """What the data seen so far say against the belief's own assumptions, if anything."""
        ...
