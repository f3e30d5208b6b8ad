"""What the settings of all solvers of networks say about theorems."""

from collections.abc import Iterator

from ...task import Task

__all__ = ["Uncertified"]


class Uncertified:
    """Nothing is claimed of policies that are networks."""

    def has_prior_policy(self, task: Task) -> bool:
        """Whether there are data whose behaviour can be cloned."""
        return task.prior.data is not None

    def cost_error(self, task: Task) -> float:
        """By how much a computed J_c may be off: nothing is claimed of means over a few episodes."""
        return 0.0

    def against_safety(self, task: Task) -> Iterator[str]:
        yield "J_c is a mean over a few initial states, not an expectation with a bound on its error."

    def against_optimality(self, task: Task) -> Iterator[str]:
        yield "Problem (1) is solved by local search, so that infeasibility is evidence and not proof."
