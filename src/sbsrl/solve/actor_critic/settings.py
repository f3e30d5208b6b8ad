"""The settings of the actor-critic, which make it for a task."""

from dataclasses import dataclass
from typing import ClassVar

from ...errors import UserError
from ...task import Task
from ..network.domain import domain_of
from ..network.settings import Uncertified, check_pieces
from ..network.solver import NetworkSolver
from .choices import ActorCriticChoices
from .improver import ActorCritic

__all__ = ["ActorCriticSettings"]


@dataclass(frozen=True)
class ActorCriticSettings(Uncertified, ActorCriticChoices):
    """Trains a policy network with critics for every sample."""

    name: ClassVar[str] = "actor-critic"
    critics: ClassVar[bool] = True

    def create(self, task: Task) -> NetworkSolver:
        """The solver for a task."""
        if any(cost.aggregation != "sum" for cost in task.costs):
            raise UserError(
                f"{task.name} has a cost that is not summed over the episode, which critics cannot know; use "
                "solver=gradient."
            )
        check_pieces(task, self)
        domain = domain_of(task, self.units)
        return NetworkSolver(domain, self, ActorCritic(domain, self))
