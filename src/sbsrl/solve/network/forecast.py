"""What a policy earns and costs on every sample, over whole episodes from rho_0; and the constraints on that."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...networks import Network
from ...problem import Problem
from ...types import PRNGKey, Scalar
from .episodes import Totals, episodes, rows_of
from .network_policy import Units

__all__ = ["SMALLEST_UNIT", "Forecast", "constraints", "cost_units", "forecast", "missing", "spread_starts", "summary"]


class Forecast(NamedTuple):
    """What a policy does on the models, means over the initial states."""

    reward: Scalar
    """J_r(mu)."""
    information: Scalar
    """J_s(mu)."""
    costs: Float[Array, "S k"]
    """J_c(f^s)."""
    sampled_rewards: Float[Array, " S"]
    """J_r(f^s)."""

    def times(self, factor: float) -> "Forecast":
        """The same of an episode that has so many pieces as were looked at."""
        return Forecast(*(part * np.float32(factor) for part in self))


def summary(totals: Totals, each: int, nominal: int) -> Forecast:
    """Means over so many episodes on every sample, and over so many on the nominal model, which come last."""
    count = totals.rewards.shape[0] - nominal
    mine = slice(count, None) if nominal else slice(0, count)
    sampled = Totals(*(part[:count].reshape(-1, max(each, 1), *part.shape[1:]) for part in totals))
    return Forecast(
        jnp.mean(totals.rewards[mine]),
        jnp.mean(totals.information[mine]),
        jnp.mean(sampled.costs, axis=1),
        jnp.mean(sampled.rewards, axis=1),
    )


def constraints(problem: Problem, costs: Float[Array, "S k"], bounds: Float[Array, " k"]) -> Float[Array, "C k"]:
    """g of every safety constraint, in units of the bounds: one per sample and cost, or one per cost on the mean."""
    if problem.samples is None:
        return jnp.zeros((0, costs.shape[1]), PLAN)
    judged = costs if problem.constraint == "each" else jnp.mean(costs, axis=0, keepdims=True)
    return (judged - bounds[None]) / cost_units(problem)[None]


SMALLEST_UNIT = 1e-3


def cost_units(problem: Problem) -> Float[Array, " k"]:
    """The bound of each cost, which its violation is measured in; something small where that is 0."""
    return jnp.maximum(jnp.abs(problem.bounds), SMALLEST_UNIT)


def spread_starts(starts: Float[Array, "K dx"], samples: int, each: int, nominal: int) -> Float[Array, "n dx"]:
    """The same initial states for every sample, and others for the nominal model."""
    own = jnp.tile(starts[:each], (samples, 1))
    return jnp.concatenate([own, starts[each : each + nominal]]).astype(PLAN)


@eqx.filter_jit
def forecast(
    network: Network,
    units: Units,
    problem: Problem,
    starts: Float[Array, "K dx"],
    steps: int,
    nominal: int,
    key: PRNGKey,
) -> Forecast:
    """Of so many steps of the policy as it will be played.

    They begin at all but the last of these states on every sample, and at those on mu.
    """
    each = starts.shape[0] - nominal
    rows = rows_of(problem, each, nominal, played=True)
    count = 0 if problem.samples is None else len(problem.samples)
    totals = episodes(
        network, units, rows, spread_starts(starts, count, each, nominal), problem, steps, 0.0, False, key
    )
    return summary(totals, each if count else 0, nominal)


def missing(problem: Problem, information: Scalar) -> Scalar:
    """g of the exploration constraint, in units of the threshold."""
    return 1 - information / jnp.where(problem.threshold > 0, problem.threshold, 1)
