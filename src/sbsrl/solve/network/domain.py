"""What solvers know of a task whose policies are networks."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from ..._jax import PLAN
from ...costs import Aggregation
from ...recorded_costs import beyond_budget
from ...spread import LEAST, middle, spread
from ...task import Task
from ...transitions import Transitions
from ...types import PRNGKey, State
from .network_policy import Units

__all__ = ["Domain", "domain_of"]


@dataclass(frozen=True, eq=False)
class Domain:
    """Where episodes begin, how long they are, in which units things are measured, and what is demanded."""

    start: Callable[[PRNGKey], State]
    """Draws an initial state."""
    data: Transitions | None
    """Of the behaviour that is cloned."""
    units: Units
    budgets: tuple[float, ...]
    aggregations: tuple[Aggregation, ...]
    horizon: int
    return_scale: float
    """The unit of J_r."""
    reliable: bool
    """Whether the data keep within the budget on average, so that their clone can be fallen back to."""
    safe_action: tuple[float, ...] | None
    """Of the task, if it has one."""


def domain_of(task: Task, units: str) -> Domain:
    """Of a task. States are seen in units of the offline data, where there are any: their spread of this kind."""
    data, size = task.prior.data, task.state_size
    mean, scale = np.zeros(size), np.ones(size) + LEAST
    if data is not None:
        mean, scale = middle(data.states, units), spread(data.states, units)
    limits = (mean, scale, np.array(task.action_low), np.array(task.action_high))
    return Domain(
        start=task.start,
        data=data,
        units=Units(*(jnp.asarray(each, PLAN) for each in limits)),
        budgets=tuple(cost.budget for cost in task.costs),
        aggregations=tuple(cost.aggregation for cost in task.costs),
        horizon=task.horizon,
        return_scale=task.horizon * (1.0 if data is None else float(data.rewards.std()) + 1e-6),
        reliable=data is not None and not beyond_budget(task.costs, data),
        safe_action=task.safe_action,
    )
