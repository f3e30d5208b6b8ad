"""The settings of an ensemble, which make the belief of a task and say that nothing is proved by it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import UserError
from ...task import Task
from ...types import PRNGKey
from .belief import EnsembleBelief
from .choices import EnsembleChoices

__all__ = ["EnsembleSettings"]


@dataclass(frozen=True)
class EnsembleSettings(EnsembleChoices):
    """Several probabilistic networks, whose combinations are the samples."""

    name: ClassVar[str] = "ensemble"
    calibrated: ClassVar[bool] = False

    def create(self, task: Task, episodes: int, key: PRNGKey) -> EnsembleBelief:
        """The belief before anything was learned, with the offline data of the task's prior to learn from."""
        data = task.prior.data
        if data is None or not len(data.actions):
            raise UserError(
                f"belief=ensemble starts from offline data, and the prior '{task.prior.name}' of {task.name} has none; "
                "collect some with 'sbsrl collect' and give them with --set data=FILE."
            )
        if task.known_signals.costs is None and (data.costs < 0).any():
            raise UserError(
                f"the offline data of {task.name} have costs down to {data.costs.min():g}, and networks learn costs of "
                "0 and more: add a constant to cost and budget, or make the cost a known function of the task."
            )
        if task.known_signals.costs is None and not (data.costs > 0).any():
            raise UserError(
                f"no transition of the offline data of {task.name} costs anything, so no network can learn what does: "
                "collect data with some cost, or make the cost a known function of the task."
            )
        return EnsembleBelief.create(task, data, episodes, self, key)

    def largest_uncertainty(self, task: Task) -> float:
        """Nothing bounds how far networks may disagree."""
        return math.inf

    def describe(self, task: Task) -> dict[str, Any]:
        """Model and samples, for the certificate."""
        kind = "the networks themselves" if self.samples == "members" else "random combinations of the networks"
        return {"model": f"{self.networks} networks", "samples": f"{kind}, spread by kappa from {self.kappa:g}"}

    def against_safety(self, task: Task) -> Iterator[str]:
        yield "an ensemble of networks has no confidence sets; the theorem is about Gaussian processes."
