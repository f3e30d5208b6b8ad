"""Gradients through whole episodes on every sample: no critics, nothing discounted."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...networks import Network, of_last_inputs
from ...optimisation import descend, usable
from ...problem import Problem
from ...starts import draw_starts
from ...types import PRNGKey, Scalar
from ..network.domain import Domain
from ..network.episodes import episodes, rows_of
from ..network.forecast import Forecast, constraints, missing, spread_starts, summary
from ..network.improver import OPTIMISER, Trained, Weights, weights_of
from ..network.lagrangian import penalty, updated
from ..network.network_policy import Units
from .choices import GradientChoices

__all__ = ["Sizes", "WholeEpisodes", "sizes_of", "starts_of", "train"]


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
    robust: bool
    """Whether the return is the mean over all models; else it is that of the nominal one, as in the paper."""
    steepest: float
    """The longest slope by a state of a row; 0 sets no limit."""
    steered: int
    """How many inputs of the policy its training is about; 0: all."""

    def trained(self, slopes: Network) -> Network:
        """What of the slopes is followed."""
        found: Network = usable(of_last_inputs(slopes, self.steered) if self.steered else slopes)
        return found


def sizes_of(choices: GradientChoices, horizon: int) -> Sizes:
    """As they were chosen."""
    return Sizes(
        horizon=horizon,
        each=choices.each,
        nominal=choices.nominal,
        unsteadiness=choices.unsteadiness,
        updates=choices.updates,
        robust=choices.robust,
        steepest=choices.steepest,
        steered=choices.steered,
    )


def starts_of(domain: Domain, sizes: Sizes, key: PRNGKey) -> Float[Array, "U K dx"]:
    """Initial states of their own for every update."""
    starts = draw_starts(domain.start, sizes.updates * (sizes.each + sizes.nominal), key)
    return starts.reshape(sizes.updates, -1, starts.shape[-1]).astype(PLAN)


@dataclass(frozen=True, eq=False)
class WholeEpisodes:
    """The improver that differentiates through all steps of an episode."""

    domain: Domain
    choices: GradientChoices

    def init(self, key: PRNGKey) -> tuple[()]:
        return ()

    def improve(
        self,
        problem: Problem,
        trained: Trained,
        memory: tuple[()],
        bounds: Float[Array, " k"],
        rate: Scalar,
        key: PRNGKey,
    ) -> tuple[Trained, tuple[()], Forecast]:
        start_key, train_key = jax.random.split(key)
        sizes = sizes_of(self.choices, self.domain.horizon)
        weights = weights_of(self.choices, self.domain.return_scale)
        starts = starts_of(self.domain, sizes, start_key)
        after, seen = train(trained, self.domain.units, problem, starts, bounds, sizes, weights, rate, train_key)
        return after, (), seen


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
        seen = summary(totals, sizes.each if count else 0, sizes.nominal)
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
        network, moments = descend(OPTIMISER, sizes.trained(slopes), state.moments, state.network, rate)
        kind, eta, limit = weights.kind, weights.multiplier_rate, weights.multiplier_limit
        multipliers = updated(kind, state.multipliers, g, eta, limit)
        curiosity = jnp.where(problem.threshold > 0, updated(kind, state.curiosity, lacking, eta, limit), 0)
        return Trained(network, moments, multipliers, curiosity), seen

    trained, seen = jax.lax.scan(update, trained, (starts, jax.random.split(key, sizes.updates)))
    return trained, jax.tree.map(lambda each: jnp.mean(each, axis=0), seen)
