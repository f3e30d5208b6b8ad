"""One step of an optimiser of Optax on a tree of parameters."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax

from ._jax import PLAN
from .types import Scalar

__all__ = ["descend", "usable"]

Tree = TypeVar("Tree")


def usable(slopes: Tree) -> Tree:
    """Slopes that are numbers; zeros in the place of all of them where one is not, so that nothing is lost by them."""
    finite = jnp.isfinite(optax.tree.norm(slopes))
    return jax.tree.map(lambda slope: jnp.where(finite, slope, 0), slopes)


def descend(
    optimiser: optax.GradientTransformation, slopes: Tree, moments: Any, parameters: Tree, rate: float | Scalar
) -> tuple[Tree, Any]:
    """The parameters after a step down the slopes with this learning rate, and the optimiser's state.

    The rate is not part of the optimiser, so that it may change without compiling anew.
    """
    with jax.numpy_dtype_promotion("standard"):  # Optax mixes types
        changes, moments = optimiser.update(slopes, moments, parameters)
    rate = jnp.asarray(rate, PLAN)
    return jax.tree.map(lambda p, u: p - rate * u, parameters, changes), moments
