"""How much each constraint presses on a policy whose gradient comes from critics."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...problem import Problem
from ...types import Scalar
from .forecast import Forecast, constraints, missing
from .improver import Trained, Weights
from .lagrangian import pressure, updated

__all__ = ["Pressures", "followed", "pressures"]


def followed(
    problem: Problem, trained: Trained, seen: Forecast, weights: Weights, bounds: Float[Array, " k"]
) -> Trained:
    """With multipliers that have followed the constraints by one step."""
    g, lacking = constraints(problem, seen.costs, bounds), missing(problem, seen.information)
    eta, limit = weights.multiplier_rate, weights.multiplier_limit
    multipliers = updated(weights.kind, trained.multipliers, g, eta, limit)
    curiosity = jnp.where(problem.threshold > 0, updated(weights.kind, trained.curiosity, lacking, eta, limit), 0)
    return trained._replace(multipliers=multipliers, curiosity=curiosity)


class Pressures(NamedTuple):
    """What a little more of each thing is worth in the objective, besides the reward."""

    costs: Float[Array, "S k"]
    information: Scalar
    """Of a unit of J_s. Positive where more is wanted, negative where the policy is to stay near the data."""


def pressures(
    problem: Problem,
    seen: Forecast,
    trained: Trained,
    weights: Weights,
    bounds: Float[Array, " k"],
    unit: float,
    ramp: float = 0.0,
) -> Pressures:
    """From whole episodes, at the multipliers as they are. `unit` is that of J_s.

    The exploration constraint is measured in its threshold and the trust region in its bound, as in `train`. What lies
    beyond the latter presses at once; or, with noisy estimates, the more the farther, up to the share `ramp` of it.
    """
    g, lacking = constraints(problem, seen.costs, bounds), missing(problem, seen.information)
    each = pressure(weights.kind, trained.multipliers, g, weights.curvature) * weights.total / max(len(g), 1)
    if problem.constraint != "each":
        each = jnp.broadcast_to(each / max(len(seen.costs), 1), seen.costs.shape)
    wanted = jnp.where(problem.threshold > 0, pressure(weights.kind, trained.curiosity, lacking, weights.curvature), 0)
    wanted = unit * wanted / jnp.where(problem.threshold > 0, problem.threshold, 1)
    slope = unit * weights.trust_weight / weights.trust if weights.trust else 0.0
    beyond = seen.information - weights.trust
    share = jnp.clip(beyond / (ramp * weights.trust), 0, 1) if ramp and weights.trust else (beyond > 0).astype(PLAN)
    near = slope * share
    return Pressures(each, (wanted - near).astype(PLAN))
