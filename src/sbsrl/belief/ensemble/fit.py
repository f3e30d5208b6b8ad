"""Training of an ensemble: decoupled losses of mean and variance, and early stopping on episodes held out."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float

from ..._jax import PLAN
from ...optimisation import descend
from ...types import PRNGKey, Scalar
from .model import Ensemble, _standard
from .nets import KNEE, Members, log_variance
from .replay import Batch, Replay

__all__ = ["CHUNK", "Trainer", "fit", "fit_until_worse", "held_out_loss", "losses"]

CHUNK = 50
"""Updates per call of a compiled program."""
REWARD_WEIGHT, VARIANCE_WEIGHT = 0.3, 0.02
GRADIENT_LIMIT, DECAY = 5.0, 1e-4
LEAST_UNIT = 0.01
"""Errors of a cost are shares of the most that a step can cost; where that is less than this share of what it is
elsewhere, they count less."""


class Trainer(NamedTuple):
    """What does not change between updates."""

    batch: int
    costly: int
    """Rows of a batch that cost something."""
    new_share: float
    """Which share of a batch comes from the episodes of this run."""
    cost_weight: float
    """What errors of costs are worth, compared with those of the change of the state."""


OPTIMISER = optax.chain(
    optax.clip_by_global_norm(GRADIENT_LIMIT), optax.scale_by_adam(), optax.add_decayed_weights(DECAY)
)


class Losses(NamedTuple):
    """Of each member, the mean over its batch."""

    change: Float[Array, " M"]
    reward: Float[Array, " M"]
    cost: Float[Array, " M"]
    variance: Float[Array, " M"]

    def total(self, cost_weight: float) -> Float[Array, " M"]:
        return self.change + REWARD_WEIGHT * self.reward + cost_weight * self.cost + VARIANCE_WEIGHT * self.variance


class Errors(NamedTuple):
    """Squared errors of every transition, in units of the data; and the raw log variances of the change."""

    change: Float[Array, "M b p"]
    reward: Float[Array, "M b"]
    cost: Float[Array, "M b k"]
    spread: Float[Array, "M b p"]


def errors(ensemble: Ensemble, batch: Batch) -> Errors:
    """How wrong every member is on its batch."""
    said, scales = ensemble.outputs(batch.states, batch.actions), ensemble.scales
    least = jnp.broadcast_to(LEAST_UNIT * ensemble.caps, batch.costs.shape)
    unit = KNEE * jnp.maximum(ensemble.most(batch.states), least)
    return Errors(
        (said.change - _standard(batch.changes, scales.change_mean, scales.change_std)) ** 2,
        (said.reward - (batch.rewards - scales.reward_mean) / scales.reward_std) ** 2,
        ((said.costs - batch.costs) / unit) ** 2,
        said.spread,
    )


def losses(ensemble: Ensemble, batch: Batch) -> Losses:
    """Mean squared errors; and the likelihood of the change under the variance alone.

    The error enters the likelihood as a constant: a likelihood that also drives the mean fits it badly, because where
    the variance is large the mean is not corrected any more.
    """
    wrong = errors(ensemble, batch)
    spread = log_variance(wrong.spread)
    likelihood = 0.5 * (jax.lax.stop_gradient(wrong.change) * jnp.exp(-spread) + spread)
    return Losses(*(_mean(each) for each in (wrong.change, wrong.reward, wrong.cost, likelihood)))


def _mean(each: Float[Array, "M b *c"]) -> Float[Array, " M"]:
    return jnp.mean(each, axis=tuple(range(1, each.ndim)))


@eqx.filter_jit
def _updates(
    ensemble: Ensemble,
    moments: optax.OptState,
    replay: Replay,
    shares: Float[Array, "M E"],
    rate: Scalar,
    trainer: Trainer,
    key: PRNGKey,
) -> tuple[Members, optax.OptState, Float[Array, " M"]]:
    """So many updates of all members, and their mean loss."""

    def loss(members: Members, batch: Batch) -> tuple[Scalar, Float[Array, " M"]]:
        each = losses(_with_members(ensemble, members), batch).total(trainer.cost_weight)
        return jnp.sum(each), each

    def update(
        state: tuple[Members, optax.OptState], key: PRNGKey
    ) -> tuple[tuple[Members, optax.OptState], Float[Array, " M"]]:
        members, moments = state
        batch = replay.batch(shares, trainer.batch, trainer.costly, key)
        slopes, each = jax.grad(loss, has_aux=True)(members, batch)
        return descend(OPTIMISER, slopes, moments, members, rate), each

    (members, moments), each = jax.lax.scan(update, (ensemble.nets.members, moments), jax.random.split(key, CHUNK))
    return members, moments, jnp.mean(each, axis=0)


def fit(
    ensemble: Ensemble,
    moments: optax.OptState,
    replay: Replay,
    trainer: Trainer,
    updates: int,
    rate: float,
    key: PRNGKey,
    without: Bool[Array, " E"] | None = None,
) -> tuple[Ensemble, optax.OptState, Float[np.ndarray, " M"]]:
    """The ensemble after so many updates (rounded up to whole chunks) with this learning rate, and the last losses."""
    left_out = jnp.zeros(replay.length.shape, bool) if without is None else without
    shares = replay.shares(trainer.new_share, left_out)
    loss = np.zeros(ensemble.nets.count, np.float32)
    for i in range(-(-updates // CHUNK)):
        members, moments, each = _updates(
            ensemble, moments, replay, shares, jnp.asarray(rate, PLAN), trainer, jax.random.fold_in(key, i)
        )
        ensemble, loss = _with_members(ensemble, members), np.asarray(each)
    return ensemble, moments, loss


def _with_members(ensemble: Ensemble, members: Members) -> Ensemble:
    return eqx.tree_at(lambda tree: tree.nets.members, ensemble, members)


@eqx.filter_jit
def held_out_loss(
    ensemble: Ensemble, replay: Replay, held: Bool[Array, " E"], cost_weight: float
) -> Float[Array, " M"]:
    """log(1 + e) of the errors e of mean predictions, on a fixed choice of transitions of the episodes held out.

    There are few such episodes. With plain squares a single contact among them, which no data prepare for, would decide
    when training ends.
    """
    M = ensemble.nets.count
    everybody = jnp.where(held, replay.length, 0).astype(PLAN)
    shares = jnp.broadcast_to(everybody / jnp.maximum(jnp.sum(everybody), 1), (M, len(held)))
    wrong = errors(ensemble, replay.batch(shares, HELD_OUT_ROWS, 0, jax.random.key(0)))
    change, reward, cost = (_mean(jnp.log1p(each)) for each in wrong[:3])
    return change + REWARD_WEIGHT * reward + cost_weight * cost


HELD_OUT_ROWS, PATIENCE = 1024, 20
"""Transitions on which it is judged, and chunks without improvement after which training ends."""


def fit_until_worse(
    ensemble: Ensemble,
    moments: optax.OptState,
    replay: Replay,
    trainer: Trainer,
    most: int,
    rates: tuple[float, float],
    held: Bool[Array, " E"],
    key: PRNGKey,
) -> tuple[Ensemble, optax.OptState, int, float]:
    """The best ensemble on the episodes held out, after at most so many updates; how many; and its loss there.

    The learning rate falls from the first to the second along half a cosine.
    """
    best, least, done, worse = (ensemble, moments), np.inf, 0, 0
    chunks = -(-most // CHUNK)
    updates = 0
    for i in range(chunks):
        rate = rates[1] + (rates[0] - rates[1]) * 0.5 * (1 + np.cos(np.pi * i / chunks))
        ensemble, moments, _ = fit(
            ensemble, moments, replay, trainer, CHUNK, rate, jax.random.fold_in(key, i), without=held
        )
        updates += CHUNK
        loss = float(np.mean(held_out_loss(ensemble, replay, held, trainer.cost_weight)))
        worse = 0 if loss < least else worse + 1
        if loss < least:
            best, least, done = (ensemble, moments), loss, updates
        if worse >= PATIENCE:
            break
    return *best, done, least
