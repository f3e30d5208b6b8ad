"""The shape of a task's episodes, as the bounds on returns need it."""

import numpy as np

from .errors import UserError
from .prior import GPPrior
from .task import Limits, Task
from .theory.tightening import EpisodeShape

__all__ = ["described", "episode_shape"]


def episode_shape(task: Task, cost_index: int = 0) -> EpisodeShape:
    """What the bounds on returns need of a task and one of its costs, in units of the prior's scale.

    The largest cost or reward of a step is the larger of the two ranges. Where outputs have different noise the
    smallest counts. Costs are charged to the state a step leads to.
    """
    prior, limits = described(task)
    cost = task.costs[cost_index]
    most = max(high - low for low, high in (cost.limits, limits.reward))
    return EpisodeShape(task.horizon, task.state_size, float(np.min(prior.noise)), most, cost.aggregation)


def described(task: Task) -> tuple[GPPrior, Limits]:
    """The prior and the limits, where a task has both."""
    if task.prior.gp is None or task.limits is None:
        raise UserError(f"the theory needs limits and a Gaussian-process prior, which {task.name} does not have.")
    return task.prior.gp, task.limits
