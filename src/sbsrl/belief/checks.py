"""What every Gaussian-process belief demands of its prior and its data, and what it says when they contradict it."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._jax import EXACT
from ..errors import UserError
from ..prior import GPPrior
from ..transitions import Transitions
from .functions import join
from .gp_model import GPModel, smallest_noise

__all__ = [
    "MOST_POINTS",
    "MOST_TRANSITIONS",
    "check_bound",
    "check_noise",
    "check_points",
    "check_sizes",
    "check_transitions",
    "check_untouched",
    "no_common_point",
]

MOST_POINTS = 10_000
"""An exact posterior of so many points takes about 4 GB."""

MOST_TRANSITIONS = 5_000
"""Offline transitions that an exact posterior can hold, with as much room left for episodes."""


def check_sizes(model: GPModel, dz: int) -> None:
    """Refuses a prior whose mean or kernels do not take inputs (x, a) of dz numbers."""
    x, a = jnp.zeros(model.outputs, EXACT), jnp.zeros(max(dz - model.outputs, 0), EXACT)
    try:
        mean = jax.eval_shape(model.frame.mean, x, a).shape
    except TypeError as error:
        raise UserError(f"the prior's mean does not take {len(x)} states and {len(a)} actions: {error}") from None
    if mean != x.shape:
        raise UserError(f"the prior's mean has the shape {mean}; {x.shape} was expected, as its scale has.")
    for kernel in model.kernels:
        try:
            jax.eval_shape(kernel, join(x, a), join(x, a))
        except (TypeError, UserError) as error:
            raise UserError(f"{kernel.describe()} does not take inputs (x, a) of {dz} numbers: {error}") from None


FINEST = 1e-6
"""The least noise, as a share of the scale or of the kernel's deviation.

Near the data sigma_n is less than sigma_w, and what it is computed from, k(z, z) less what is explained or weights that
are known up to sigma_w^2, has 16 digits.
"""


def check_noise(prior: GPPrior) -> None:
    """Refuses noise so small that the deviation of the posterior near the data is lost in rounding.

    Of a kernel without a bound nothing is known before there are data; it is taken to be of the size of the scale.
    """
    share = smallest_noise(prior)
    if share < FINEST:
        raise UserError(
            f"the prior's noise is {share:g} of its scale (or of its kernel's deviation), and below {FINEST:g} "
            "double precision cannot tell what is known near the data from what is not; use more noise: it also stands "
            "for what the model does not describe."
        )


def check_bound(prior: GPPrior, sampler: str) -> None:
    """Refuses truncated samples without a bound: they are cut to confidence sets, which need one."""
    if sampler == "truncated" and prior.bound is None:
        raise UserError(
            "the prior has no bound B on the mismatch, so there is nothing to truncate samples to; "
            "use a prior with a bound, or another sampler."
        )


def check_points(horizon: int, episodes: int, offline: int) -> None:
    """Refuses more points than an exact posterior can hold, of which so many are offline data."""
    if offline > MOST_TRANSITIONS:
        raise UserError(
            f"{offline} offline transitions are too many for an exact Gaussian process; use {MOST_TRANSITIONS} or less."
        )
    points = horizon * episodes + offline
    if points > MOST_POINTS:
        raise UserError(
            f"episodes={episodes} would give an exact Gaussian process {points} points, which do not fit into "
            f"memory; use at most {(MOST_POINTS - offline) // horizon} episodes."
        )


def check_transitions(data: Transitions, dx: int, da: int) -> None:
    """Refuses data that are not finite or not of the task's shapes. Rewards, costs and endings are not looked at."""
    rows = len(data.actions)
    for name, size in (("states", dx), ("actions", da), ("next_states", dx)):
        part = getattr(data, name)
        if np.shape(part) != (rows, size):
            raise UserError(f"the {name} of the data have the shape {np.shape(part)}; ({rows}, {size}) was expected.")
        if not np.all(np.isfinite(part)):
            raise UserError(f"the {name} of the data are not all finite; remove or repair those transitions.")


def check_untouched(episodes: int) -> None:
    """Refuses offline data after the first episode."""
    if episodes:
        raise UserError(
            f"offline data come before the first episode, and this belief has seen {episodes}; "
            "condition the belief on them first, or add them with update."
        )


def no_common_point(update: int, offline: int, z: Float[np.ndarray, " dz"], output: int) -> str:
    """The warning of data that contradict the confidence sets.

    It was found after so many updates, of which the first `offline` were with offline data.
    """
    when = "in the offline data" if update <= offline else f"at episode {update - offline}"
    where = ", ".join(f"{v:.4g}" for v in z)
    return (
        f"the calibration assumption is violated {when}: at (x, a) = ({where}) the confidence sets of "
        f"output {output} have no common point"
    )
