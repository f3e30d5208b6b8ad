"""The settings of the gradient solver, which make it for a task."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ..._jax import PLAN
from ...errors import UserError
from ...recorded_costs import beyond_budget
from ...task import Task
from .choices import GradientChoices
from .network_policy import Units
from .solver import PolicyGradient

__all__ = ["GradientSettings"]

LEAST_STD = 0.05
"""What does not vary in the data is not divided by nothing."""


@dataclass(frozen=True)
class GradientSettings(GradientChoices):
    """Trains a policy network by gradients through whole episodes on every sample."""

    name: ClassVar[str] = "gradient"

    def create(self, task: Task) -> PolicyGradient:
        """The solver for a task. States are seen in units of the offline data, where there are any."""
        data = task.prior.data
        size = task.state_size
        if self.segment and any(cost.aggregation != "sum" for cost in task.costs):
            raise UserError(
                f"{task.name} has a cost that is not summed over the episode, which critics of segments cannot know; "
                "use segment=0, whole episodes."
            )
        mean, std = (np.zeros(size), np.ones(size)) if data is None else (data.states.mean(0), data.states.std(0))
        scale = task.horizon * (1.0 if data is None else float(data.rewards.std()) + 1e-6)
        units = Units(
            *(
                jnp.asarray(v, PLAN)
                for v in (mean, std + LEAST_STD, np.array(task.action_low), np.array(task.action_high))
            )
        )
        return PolicyGradient(
            start=task.start,
            data=data,
            units=units,
            budgets=tuple(cost.budget for cost in task.costs),
            aggregations=tuple(cost.aggregation for cost in task.costs),
            horizon=task.horizon,
            return_scale=scale,
            reliable=data is not None and not beyond_budget(task.costs, data),
            safe_action=task.safe_action,
            choices=self,
        )

    def cost_error(self, task: Task) -> float:
        """By how much a computed J_c may be off: nothing is claimed of means over a few episodes."""
        return 0.0

    def against_safety(self, task: Task) -> Iterator[str]:
        yield "J_c is a mean over a few initial states, not an expectation with a bound on its error."

    def against_optimality(self, task: Task) -> Iterator[str]:
        yield "Problem (1) is solved by local search, so that infeasibility is evidence and not proof."
