"""Updates of a policy network, and forecasts of what it will earn and cost on every sample."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float

from ..._jax import PLAN
from ...networks import Network
from ...optimisation import descend
from ...problem import Problem
from ...types import PRNGKey, Scalar
from .episodes import Totals, code_of, episodes, rows_of
from .lagrangian import penalty, pressure, updated
from .network_policy import Units
from .segments import Critic, Segment, coded, follow, learn_values, segment_returns

__all__ = [
    "Forecast",
    "Pressures",
    "Sizes",
    "Trained",
    "Weights",
    "constraints",
    "cost_units",
    "forecast",
    "missing",
    "pressures",
    "recalled_starts",
    "spread_starts",
    "train",
    "train_segments",
]

OPTIMISER = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.99))


class Sizes(NamedTuple):
    """What is compiled into the programs."""

    horizon: int
    each: int
    """Episodes on every sample per update."""
    nominal: int
    """Episodes on the nominal model per update."""
    unsteadiness: float
    updates: int
    """Per call."""
    segment: int
    """Steps between two critics; 0 is none."""
    robust: bool
    """Whether the return is the mean over all models; else it is that of the nominal one, as in the paper."""
    recalled: float
    """Share of the segments that begin where the data have been, not where the policy goes."""
    steepest: float
    """The longest slope by a state of a row; 0 sets no limit."""


class Weights(NamedTuple):
    """What the parts of the objective are worth."""

    kind: str
    return_scale: float
    """The unit of J_r."""
    total: float
    """Of all safety constraints together, whether they are many or a single one on the mean."""
    curvature: float
    """c."""
    multiplier_rate: float
    multiplier_limit: float
    trust: float
    """An upper bound on J_s; 0 sets none."""
    trust_weight: float
    discount: float
    """Of the critics."""


class Trained(NamedTuple):
    """What changes with every update."""

    network: Network
    moments: Any
    multipliers: Float[Array, "C k"]
    """Of the safety constraints."""
    curiosity: Scalar
    """The multiplier of the exploration constraint."""


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


def _summary(totals: Totals, each: int, nominal: int) -> Forecast:
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
    horizon: int,
    nominal: int,
    key: PRNGKey,
) -> Forecast:
    """Of the policy as it will be played, from all but the last of these states on every sample, from those on mu."""
    each = starts.shape[0] - nominal
    rows = rows_of(problem, each, nominal)
    count = 0 if problem.samples is None else len(problem.samples)
    totals = episodes(
        network, units, rows, spread_starts(starts, count, each, nominal), problem, horizon, 0.0, False, key
    )
    return _summary(totals, each if count else 0, nominal)


@eqx.filter_jit
def train(
    trained: Trained,
    units: Units,
    problem: Problem,
    starts: Float[Array, "U K dx"],
    bounds: Float[Array, " k"],
    sizes: Sizes,
    weights: Weights,
    rate: Scalar,
    key: PRNGKey,
) -> tuple[Trained, Forecast]:
    """So many updates, each from initial states of its own, and the means of what was predicted meanwhile.

    `bounds` are those that the constraints are held to now; they may be wider than the problem's own for a while.
    """
    rows = rows_of(problem, sizes.each, sizes.nominal)
    count = 0 if problem.samples is None else len(problem.samples)

    def loss(
        network: Network, multipliers: Array, curiosity: Scalar, starts: Array, key: PRNGKey
    ) -> tuple[Scalar, Any]:
        own = spread_starts(starts, count, sizes.each, sizes.nominal)
        totals = episodes(
            network, units, rows, own, problem, sizes.horizon, sizes.unsteadiness, True, key, sizes.steepest
        )
        seen = _summary(totals, sizes.each if count else 0, sizes.nominal)
        g, lacking = constraints(problem, seen.costs, bounds), missing(problem, seen.information)
        safety = jnp.sum(penalty(weights.kind, multipliers, g, weights.curvature)) * weights.total / max(len(g), 1)
        explore = jnp.where(problem.threshold > 0, penalty(weights.kind, curiosity, lacking, weights.curvature), 0)
        beyond = jnp.maximum(seen.information / weights.trust - 1, 0) if weights.trust else jnp.zeros((), PLAN)
        earned = jnp.mean(totals.rewards) if sizes.robust else seen.reward
        value = -earned / weights.return_scale + safety + explore + weights.trust_weight * beyond
        return value.astype(PLAN), (seen, g, lacking)

    def update(state: Trained, now: tuple[Array, PRNGKey]) -> tuple[Trained, Forecast]:
        starts, key = now
        slopes, (seen, g, lacking) = jax.grad(loss, has_aux=True)(
            state.network, state.multipliers, state.curiosity, starts, key
        )
        usable = jnp.isfinite(optax.tree.norm(slopes))
        slopes = jax.tree.map(lambda slope: jnp.where(usable, slope, 0), slopes)
        network, moments = descend(OPTIMISER, slopes, state.moments, state.network, rate)
        kind, eta, limit = weights.kind, weights.multiplier_rate, weights.multiplier_limit
        multipliers = updated(kind, state.multipliers, g, eta, limit)
        curiosity = jnp.where(problem.threshold > 0, updated(kind, state.curiosity, lacking, eta, limit), 0)
        return Trained(network, moments, multipliers, curiosity), seen

    trained, seen = jax.lax.scan(update, trained, (starts, jax.random.split(key, sizes.updates)))
    return trained, jax.tree.map(lambda each: jnp.mean(each, axis=0), seen)


RECALLED = 2
"""Segments from a state of the data until another one is taken."""


def recalled_starts(sizes: Sizes) -> Bool[np.ndarray, " K"]:
    """Which of the starts of an update are states of the data: the first of those on every sample, and on mu."""
    each, nominal = np.arange(sizes.each), np.arange(sizes.nominal)
    return np.concatenate([each < round(sizes.recalled * sizes.each), nominal < round(sizes.recalled * sizes.nominal)])


def recalled_rows(sizes: Sizes, samples: int) -> Bool[np.ndarray, " n"]:
    """The same, of all rows."""
    chosen = recalled_starts(sizes)
    return np.concatenate([np.tile(chosen[: sizes.each], samples), chosen[sizes.each :]])


class Pressures(NamedTuple):
    """What a little more of each thing is worth in the objective, besides the reward."""

    costs: Float[Array, "S k"]
    information: Scalar
    """Of a unit of J_s. Positive where more is wanted, negative where the policy is to stay near the data."""


def pressures(
    problem: Problem, seen: Forecast, trained: Trained, weights: Weights, bounds: Float[Array, " k"], unit: float
) -> Pressures:
    """From whole episodes, at the multipliers as they are. `unit` is that of J_s.

    The exploration constraint is measured in its threshold and the trust region in its bound, as in `train`.
    """
    g, lacking = constraints(problem, seen.costs, bounds), missing(problem, seen.information)
    each = pressure(weights.kind, trained.multipliers, g, weights.curvature) * weights.total / max(len(g), 1)
    if problem.constraint != "each":
        each = jnp.broadcast_to(each / max(len(seen.costs), 1), seen.costs.shape)
    wanted = jnp.where(problem.threshold > 0, pressure(weights.kind, trained.curiosity, lacking, weights.curvature), 0)
    wanted = unit * wanted / jnp.where(problem.threshold > 0, problem.threshold, 1)
    slope = unit * weights.trust_weight / weights.trust if weights.trust else 0.0
    near = jnp.where(seen.information > weights.trust, slope, 0.0)
    return Pressures(each, (wanted - near).astype(PLAN))


@eqx.filter_jit
def train_segments(
    trained: Trained,
    critic: Critic,
    units: Units,
    problem: Problem,
    first: Float[Array, "n dx"],
    starts: Float[Array, "U K dx"],
    pushed: Pressures,
    scale: Float[Array, " v"],
    sizes: Sizes,
    weights: Weights,
    rate: Scalar,
    key: PRNGKey,
) -> tuple[Network, Any, Critic]:
    """So many updates of policy and critic over segments that follow one another, from these states on.

    A row whose episode is over begins anew at one of `starts`: initial states, or for rows that are recalled states of
    the data, which are followed for RECALLED segments. `scale` is the unit of each signal per step.
    """
    rows = rows_of(problem, sizes.each, sizes.nominal)
    count = 0 if problem.samples is None else len(problem.samples)
    n = count * sizes.each + sizes.nominal
    code = coded(code_of(rows, n))
    parts = max(sizes.horizon // sizes.segment, 1)

    def loss(network: Network, target: Network, x: Array, key: PRNGKey) -> tuple[Scalar, Segment]:
        segment = follow(
            network, units, rows, x, problem, scale, sizes.segment, sizes.unsteadiness, True, key, sizes.steepest
        )
        ahead = segment_returns(segment, target, units, code, weights.discount)
        mine = ahead[n - sizes.nominal :]
        value = -jnp.mean((ahead if sizes.robust else mine)[:, 0]) - pushed.information * jnp.mean(mine[:, -1])
        if count:
            costs = ahead[: n - sizes.nominal, 1:-1].reshape(count, sizes.each, -1)
            value = value + jnp.sum(pushed.costs * jnp.mean(costs, axis=1))
        return value, segment

    def update(carry: Any, now: tuple[Array, PRNGKey]) -> tuple[Any, None]:
        network, moments, critic, x, part = carry
        starts, key = now
        loss_key, critic_key = jax.random.split(key)
        over = part >= last
        x = jnp.where(over[:, None], spread_starts(starts, count, sizes.each, sizes.nominal), x)
        slopes, segment = jax.grad(loss, has_aux=True)(network, critic.target, x, loss_key)
        usable = jnp.isfinite(optax.tree.norm(slopes))
        slopes = jax.tree.map(lambda slope: jnp.where(usable, slope, 0), slopes)
        network, moments = descend(OPTIMISER, slopes, moments, network, rate)
        segment = jax.lax.stop_gradient(segment)
        critic = learn_values(critic, units, segment, code, weights.discount, critic_key)
        return (network, moments, critic, segment.last, jnp.where(over, 0, part) + 1), None

    begun = jnp.arange(n) % parts
    last = jnp.where(recalled_rows(sizes, count), min(RECALLED, parts), parts)
    carry = (trained.network, trained.moments, critic, first, begun)
    (network, moments, critic, _, _), _ = jax.lax.scan(update, carry, (starts, jax.random.split(key, sizes.updates)))
    return network, moments, critic


def missing(problem: Problem, information: Scalar) -> Scalar:
    """g of the exploration constraint, in units of the threshold."""
    return 1 - information / jnp.where(problem.threshold > 0, problem.threshold, 1)
