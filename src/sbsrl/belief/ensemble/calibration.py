"""How much wider than the members' spread the truth lies: kappa, from episodes that the members have not seen."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..._jax import PLAN
from ...types import Scalar
from .model import Ensemble

__all__ = ["Calibration", "adapted", "calibrate", "ratio"]

STEPS = 50
"""Control steps over which members predict on their own before they are compared."""


class Calibration(NamedTuple):
    """Squared errors of the mean prediction, and the variances that the members' spread promises for them."""

    state_error: Scalar
    state_variance: Scalar
    cost_error: Scalar
    cost_variance: Scalar

    def __add__(self, other: "Calibration") -> "Calibration":  # type: ignore[override]
        return Calibration(*(a + b for a, b in zip(self, other, strict=True)))


def ratio(error: Float[Array, ""] | float, variance: Float[Array, ""] | float) -> float:
    """Root of error over variance: 1 for members that are as far apart as they are wrong; 0 where nothing was seen."""
    return float(np.sqrt(float(error) / float(variance))) if float(variance) > 0 else 0.0


@eqx.filter_jit
def calibrate(
    ensemble: Ensemble,
    states: Float[Array, "T dx"],
    actions: Float[Array, "T da"],
    costs: Float[Array, "T k"],
    valid: Bool[Array, " T"],
) -> Calibration:
    """Compares predictions over segments of an episode, with the actions that were taken, with what happened.

    Every member goes its own way from the beginning of a segment. An error e of their mean has the variance
    (1 + 1/M) v if the truth is as far from the mean as a member that was left out, v being the members' variance.
    Segments with rows that are not valid do not count.
    """
    M, T = ensemble.nets.count, states.shape[0]
    steps = min(STEPS, T)
    count = T // steps

    def cut(part: Array) -> Array:
        return jnp.swapaxes(part[: count * steps].reshape(count, steps, *part.shape[1:]), 0, 1)

    x, a, c, ok = (cut(part) for part in (states, actions, costs, valid))

    def step(own: Float[Array, "M n dx"], taken: Float[Array, "n da"]) -> tuple[Array, tuple[Array, Array]]:
        rows = jnp.broadcast_to(taken[None], (M, *taken.shape))
        said = ensemble.outputs(own, rows)
        moved = jax.vmap(lambda x, a, each: ensemble.decode(x, a, each, None))(own, rows, said)
        return moved.states, (moved.states, moved.costs)

    own = jnp.broadcast_to(x[0][None], (M, *x[0].shape))
    _, (paths, charged) = jax.lax.scan(step, own, a)  # [steps, M, n, ...]
    whole = jnp.all(ok, axis=0)
    inflation = 1 + 1 / M
    ours, true = (_in_units(ensemble, part) for part in (paths[:-1], x[1:]))
    total, really = jnp.sum(charged, axis=0), jnp.sum(c, axis=0)

    def counted(each: Array) -> Scalar:
        return jnp.sum(jnp.where(whole[:, None], each, 0)).astype(PLAN)

    return Calibration(
        counted(jnp.sum((jnp.mean(ours, axis=1) - true) ** 2, axis=0)),
        counted(jnp.sum(inflation * jnp.var(ours, axis=1, ddof=1), axis=0)),
        counted((jnp.mean(total, axis=0) - really) ** 2),
        counted(inflation * jnp.var(total, axis=0, ddof=1)),
    )


def _in_units(ensemble: Ensemble, x: Float[Array, "*n dx"]) -> Float[Array, "*n p"]:
    """The predicted part of states, in units of its changes."""
    part = ensemble.part(x)
    return part / jnp.broadcast_to(ensemble.scales.change_std, part.shape)


def adapted(log_kappa: Scalar, missed: bool, rate: float, misses: float, limits: tuple[float, float]) -> Scalar:
    """log kappa + eta (1[missed] - alpha), within limits: in the long run a share alpha of the tests is missed.

    Adaptive conformal inference with the width of the samples as what is adapted. A test is missed if the real cost of
    an episode lies above all that the samples predicted.
    """
    after = log_kappa + np.float32(rate * (float(missed) - misses))
    return jnp.clip(after, np.float32(np.log(limits[0])), np.float32(np.log(limits[1])))
