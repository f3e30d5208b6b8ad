"""What a solver must offer: a policy for a problem, and a word on whether the constraints are met."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..problem import Evaluation, Problem
from ..types import Action, PRNGKey, Scalar, State

__all__ = ["Decision", "Policy", "Solution", "Solver"]


class Decision(NamedTuple):
    """An action, and what the policy thinks about the future it leads to."""

    action: Action
    evaluation: Evaluation
    """Of what the policy means to do from here on: value, violation on the worst sample, information."""
    information: Scalar
    """What this one step teaches."""
    evaluated: Scalar
    """Share of the alternatives for which the samples had to be evaluated."""


@runtime_checkable
class Policy(Protocol):
    """pi_n, with its state passed in and out."""

    problem: Problem

    def act(self, x: State, state: Any, key: PRNGKey) -> tuple[Decision, Any]:
        """The action at x, and the state for the next step."""
        ...


class Solution(NamedTuple):
    """A policy, how it starts, and what its solver can say about the constraints at the initial state."""

    policy: Policy
    initial_state: State
    start: Any
    """The policy's state at the beginning of an episode."""
    evaluation: Evaluation
    demand: float
    """The information that was demanded."""

    def explores(self, tolerance: float) -> bool:
        """Whether the exploration constraint is met, up to a relative tolerance.

        That a heuristic solver finds no such policy is evidence, not proof, that there is none.
        """
        return float(self.evaluation.information) >= (1 - tolerance) * self.demand


@runtime_checkable
class Solver(Protocol):
    """Turns Problem (1) into a policy."""

    def solve(self, problem: Problem, x: State, key: PRNGKey) -> Solution:
        """The best policy it finds for episodes that begin at x."""
        ...
