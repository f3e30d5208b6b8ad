"""How constraints enter the objective: an augmented Lagrangian, or one of two simpler ways.

A constraint is g <= 0, with g in units of its own bound. With a multiplier lambda >= 0 and a weight c > 0 the augmented
Lagrangian has the penalty

    psi(lambda, g) = (max(0, lambda + c g)^2 - lambda^2) / (2 c),

whose slope in g is max(0, lambda + c g), and after each update lambda <- lambda + eta g, kept between 0 and a limit.
Beyond g = STEEPEST the penalty goes on with the slope it has there: a single sample on which the cost is twenty times
the budget would otherwise outweigh the return and all other samples.
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["PENALTIES", "Penalty", "penalty", "pressure", "updated"]

Penalty = Literal["augmented", "primal-dual", "fixed"]
PENALTIES = ("augmented", "primal-dual", "fixed")

STEEPEST = 2.0
"""Neither penalties nor multipliers rise faster than for this violation, in units of the bound: if they outrun the
policy, it learns to stand still."""


def penalty(kind: str, multiplier: Float[Array, "..."], g: Float[Array, "..."], weight: float) -> Float[Array, "..."]:
    """What is added to the loss for each constraint: psi; or lambda g; or, with fixed weights, c max(g, 0)."""
    if kind == "augmented":
        bent = jnp.minimum(g, STEEPEST)
        inside = (jnp.maximum(0, multiplier + weight * bent) ** 2 - multiplier**2) / (2 * weight)
        return inside + (multiplier + weight * STEEPEST) * (g - bent)
    if kind == "primal-dual":
        return multiplier * g
    return weight * jnp.maximum(g, 0)


def pressure(kind: str, multiplier: Float[Array, "..."], g: Float[Array, "..."], weight: float) -> Float[Array, "..."]:
    """The slope of the penalty in g: what a little more of each constraint costs."""
    if kind == "augmented":
        return jnp.maximum(0, multiplier + weight * jnp.minimum(g, STEEPEST))
    if kind == "primal-dual":
        return multiplier
    return jnp.where(g > 0, weight, 0.0).astype(g.dtype)


def updated(
    kind: str, multiplier: Float[Array, "..."], g: Float[Array, "..."], rate: float, limit: float
) -> Float[Array, "..."]:
    """The multipliers after an update of the policy: they rise under violation and fall under slack."""
    if kind == "fixed":
        return multiplier
    step = jnp.where(jnp.isfinite(g), jnp.clip(g, -STEEPEST, STEEPEST), 0)
    return jnp.clip(multiplier + rate * step, 0, limit)
