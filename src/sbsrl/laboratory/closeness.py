"""How often one of M samples is zeta-close to the truth (lemma sampling), and how often a single one is."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..kernels import Kernel
from .intervals import Frequency
from .world import World

__all__ = ["Closeness", "closeness", "distances"]

GRID = 61


class Closeness(NamedTuple):
    """What the lemma promises, and what was seen."""

    single: Frequency
    """How many single samples were zeta-close, promised with probability exp(-x)."""
    some: Frequency
    """How many sets of M samples had a zeta-close one, promised with probability 1 - delta."""


def closeness(world: World, sets: int, rng: np.random.Generator) -> Closeness:
    """Draws a truth and M samples, many times."""
    near = [distances(world, np.asarray(world.draw_sled(rng).weights), rng) <= world.zeta for _ in range(sets)]
    return Closeness(
        single=Frequency(int(np.sum(near)), sets * world.samples),
        some=Frequency(int(np.sum(np.any(near, axis=1))), sets),
    )


def distances(world: World, truth: Float[np.ndarray, " p"], rng: np.random.Generator) -> Float[np.ndarray, " M"]:
    """sup |f^m - f*| over the box, for M fresh samples."""
    weights = rng.standard_normal((world.samples, len(truth)))
    return np.abs((weights - truth) @ feature_table(world.kernel, world.task.input_limits).T).max(axis=1)


def feature_table(kernel: Kernel, limits: tuple[float, ...]) -> Float[np.ndarray, "n p"]:
    """phi on a grid of the box, corners included."""
    axes = np.meshgrid(*(np.linspace(-r, r, GRID) for r in limits))
    inputs = jnp.asarray(np.stack([axis.ravel() for axis in axes], axis=-1))
    return np.asarray(jax.vmap(kernel.features(jax.random.key(0), 0))(inputs))
