"""What the settings of all solvers of networks say about theorems."""

from collections.abc import Iterator

from ...errors import UserError
from ...task import Task
from .choices import NetworkChoices

__all__ = ["Uncertified", "check_pieces"]


def check_pieces(task: Task, choices: NetworkChoices) -> None:
    """Refuses pieces of episodes where nothing says where they begin, or what an episode of them costs."""
    if choices.radius and not choices.pieces:
        raise UserError(
            f"radius={choices.radius:g} is measured over visited states, which are kept for pieces of episodes only: "
            "set pieces, or radius=0."
        )
    if not choices.pieces:
        return
    if task.prior.data is None or not len(task.prior.data.states):
        raise UserError(
            f"pieces={choices.pieces} begins at recorded states, and the prior of {task.name} has no offline data: "
            "give some with data=FILE, or use pieces=0."
        )
    if any(cost.aggregation != "sum" for cost in task.costs):
        raise UserError(
            f"{task.name} has a cost that is not summed over the episode, of which pieces of it do not tell; use "
            "pieces=0."
        )


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
