"""Costs: what a step is charged, how an episode's cost is formed from its steps, and how much it may be."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._jax import PLAN
from .errors import UserError
from .validation import Number, Numbers, Word, declared, validate

__all__ = ["AGGREGATIONS", "Aggregation", "Cost", "aggregate", "charged", "nothing_charged", "total", "violation"]

Aggregation = Literal["sum", "statewise"]
AGGREGATIONS: tuple[str, ...] = get_args(Aggregation)


def aggregate(costs: Float[Array, " T"], how: Aggregation) -> Float[Array, ""]:
    """The cost of a trajectory: J_c = sum_t c_t (`sum`), or max_t c_t, a bound on every step (`statewise`)."""
    return jnp.sum(costs) if how == "sum" else jnp.max(costs)


def nothing_charged(n: int, aggregations: Sequence[Aggregation]) -> Float[Array, "n k"]:
    """The costs of n episodes before their first step."""
    least = jnp.array([0.0 if how == "sum" else -jnp.inf for how in aggregations], PLAN)
    return jnp.broadcast_to(least[None], (n, len(aggregations)))


def charged(
    before: Float[Array, "n k"], costs: Float[Array, "n k"], aggregations: Sequence[Aggregation]
) -> Float[Array, "n k"]:
    """The costs of n episodes after one step more, so that in the end they are those of `aggregate`."""
    sums = jnp.array([how == "sum" for how in aggregations])
    return jnp.where(sums[None], before + costs, jnp.maximum(before, costs))


def total(costs: Float[np.ndarray, " T"], how: Aggregation) -> float:
    """The same of costs that were recorded; what was not played costs nothing."""
    if not len(costs):
        return 0.0
    return float(np.sum(costs) if how == "sum" else np.max(costs))


def violation(cost: float, budget: float) -> float:
    """max(J_c - d, 0): by how much the budget is exceeded; 0 means safe."""
    return max(cost - budget, 0.0)


@dataclass(frozen=True)
class Cost:
    """One of the costs of a task. Safety is demanded for each of them on each sampled dynamics."""

    name: str = declared(Word(empty=False))
    budget: float = declared(Number())
    """d."""
    aggregation: Aggregation = declared(Word(AGGREGATIONS), "sum")
    limits: tuple[float, float] = declared(Numbers(Number(finite=False)), (0.0, math.inf))
    """Between which the cost of one step lies; the theory needs the difference, C_max."""

    def __post_init__(self) -> None:
        validate(self, f"cost {self.name!r}: ")
        if len(self.limits) != 2 or not self.limits[0] < self.limits[1]:
            raise UserError(f"the limits of cost '{self.name}' are {self.limits}; give the lower one, then the upper.")

    def least(self, horizon: int) -> float:
        """The smallest aggregated cost that an episode of so many steps can have."""
        return self.limits[0] * horizon if self.aggregation == "sum" else self.limits[0]

    def spread(self, horizon: int) -> float:
        """By how much the aggregated costs of two episodes of so many steps can differ: T C_max, or C_max."""
        low, high = self.limits
        return (high - low) * horizon if self.aggregation == "sum" else high - low
