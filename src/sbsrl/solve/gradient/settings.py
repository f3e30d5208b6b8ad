"""The settings of the gradient solver, which make it for a task."""

from dataclasses import dataclass
from typing import ClassVar

from ...errors import UserError
from ...task import Task
from ..network.domain import Domain, domain_of
from ..network.improver import Improver
from ..network.settings import Uncertified, check_pieces
from ..network.solver import NetworkSolver
from .choices import GradientChoices
from .segment_training import Segments
from .whole import WholeEpisodes

__all__ = ["GradientSettings", "improver_of"]


@dataclass(frozen=True)
class GradientSettings(Uncertified, GradientChoices):
    """Trains a policy network by gradients through whole episodes on every sample."""

    name: ClassVar[str] = "gradient"

    @property
    def critics(self) -> bool:
        """Whether gradients end in critics."""
        return bool(self.segment)

    def create(self, task: Task) -> NetworkSolver:
        """The solver for a task."""
        if self.pieces and not self.segment:
            raise UserError(
                f"pieces={self.pieces} follows models for a part of an episode only, and what comes after it is known "
                f"to critics, which solver=gradient has with segments: set segment, say to {min(self.pieces, 25)}, or "
                "pieces=0."
            )
        if self.segment and any(cost.aggregation != "sum" for cost in task.costs):
            raise UserError(
                f"{task.name} has a cost that is not summed over the episode, which critics of segments cannot know; "
                "use segment=0, whole episodes."
            )
        check_pieces(task, self)
        domain = domain_of(task, self.units)
        return NetworkSolver(domain, self, improver_of(domain, self))


def improver_of(domain: Domain, choices: GradientChoices) -> Improver:
    """Gradients go through whole episodes, or through segments of so many steps."""
    return Segments(domain, choices) if choices.segment else WholeEpisodes(domain, choices)
