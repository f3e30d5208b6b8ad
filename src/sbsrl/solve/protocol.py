"""What a solver must offer: a policy for a problem, and a word on whether the constraints are met."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Float

from ..policy import Metrics, Policy
from ..problem import Evaluation, Problem
from ..transitions import Episode
from ..types import PRNGKey

__all__ = ["Attentive", "Concluding", "Preparing", "Retreating", "Solution", "Solver", "Trying"]


class Solution(NamedTuple):
    """A policy, and what its solver can say about the constraints before the episode."""

    policy: Policy
    evaluation: Evaluation
    """Of the policy from the initial state: value, violation on the worst sample, information."""
    demand: float
    """The information that was demanded."""
    metrics: Metrics = {}  # noqa: RUF012  (never changed)
    """What else is worth a place in the ledger: numbers by name."""

    def explores(self, tolerance: float) -> bool:
        """Whether the exploration constraint is met, up to a relative tolerance.

        That a heuristic solver finds no such policy is evidence, not proof, that there is none.
        """
        return float(self.evaluation.information) >= (1 - tolerance) * self.demand


@runtime_checkable
class Solver(Protocol):
    """Turns Problem (1) into a policy. What it remembers between episodes is passed in and out.

    The state is a tree of arrays, whose shapes do not change: it is saved with the learner.
    """

    def init(self, key: PRNGKey) -> Any:
        """The state before the first episode; an empty tuple for solvers that remember nothing."""
        ...

    def solve(self, problem: Problem, state: Any, key: PRNGKey) -> tuple[Solution, Any]:
        """The best policy it finds, and the state for the next episode. It never touches the true system."""
        ...


@runtime_checkable
class Preparing(Solver, Protocol):
    """A solver that learns offline before the first episode."""

    def prepare(self, problem: Problem, state: Any, key: PRNGKey) -> tuple[Any, Metrics]:
        """The state after the offline phase, and numbers about it."""
        ...

    def learned(self, state: Any) -> Mapping[str, Policy]:
        """The policies that the offline phase made, by name, so that they can be judged.

        The clone of the behaviour is `clone`; `prior` is what became of it.
        """
        ...


@runtime_checkable
class Retreating(Solver, Protocol):
    """A solver that a monitor can watch: it knows policies to hand over to."""

    def ways_out(self, state: Any) -> tuple[Policy, ...]:
        """These policies, which to prefer first: the prior policy, and a last resort."""
        ...


@runtime_checkable
class Attentive(Solver, Protocol):
    """A solver that wants to know what its policy really earned and cost."""

    def observed(self, state: Any, episode: Episode) -> Any:
        """The state for the next episode, after this episode of the policy of the last solution."""
        ...


@runtime_checkable
class Trying(Solver, Protocol):
    """A solver that decides on a policy before the episode, so that whole episodes of it can be tried on samples."""

    def costs(self, problem: Problem, policy: Policy, noise: Float[Array, " dx"], key: PRNGKey) -> Float[Array, "M k"]:
        """What an episode of a policy of its own costs on every sample of the problem.

        That is the expected cost where the solver computes that; else the cost of one episode from initial state m on
        sample m, with process noise of this standard deviation in every step.
        """
        ...


@runtime_checkable
class Concluding(Solver, Protocol):
    """A solver that may return something else in the end than what it would play next."""

    def conclude(self, problem: Problem, state: Any, key: PRNGKey) -> tuple[Solution, Any]:
        """The policy that is returned in the end, as `solve` returns one. Nothing is to be explored any more."""
        ...
