"""What every belief demands of its prior and its data, and what it says when the data contradict it."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._jax import EXACT
from ..errors import UserError
from ..task import Prior, Transitions
from .functions import join
from .model import Model

__all__ = ["check_bound", "check_sizes", "check_transitions", "no_common_point"]


def check_sizes(model: Model, dz: int) -> None:
    """The prior's functions must fit the task."""
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


def check_bound(prior: Prior, sampler: str) -> None:
    """Samples can be truncated only to confidence sets, which need a bound."""
    if sampler == "truncated" and prior.bound is None:
        raise UserError(
            f"prior '{prior.name}' has no bound B on the mismatch, so there is nothing to truncate samples to; "
            "use a prior with a bound, or another sampler."
        )


def check_transitions(data: Transitions, dx: int, da: int) -> None:
    """Data must have the task's shapes and be finite."""
    rows = len(data.actions)
    for (name, part), size in zip(data._asdict().items(), (dx, da, dx), strict=True):
        if np.shape(part) != (rows, size):
            raise UserError(f"the {name} of the data have the shape {np.shape(part)}; ({rows}, {size}) was expected.")
        if not np.all(np.isfinite(part)):
            raise UserError(f"the {name} of the data are not all finite; remove or repair those transitions.")


def no_common_point(episode: int, z: Float[np.ndarray, " dz"], output: int) -> str:
    """The objection of data that contradict the confidence sets."""
    where = ", ".join(f"{v:.4g}" for v in z)
    return (
        f"the calibration assumption is violated at episode {episode}: at (x, a) = ({where}) the confidence sets of "
        f"output {output} have no common point"
    )
