"""How often one of M samples is zeta-close to the truth (lemma sampling), and how often a single one is."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.spatial import ConvexHull

from ..kernels import Kernel
from .intervals import Frequency
from .world import World

__all__ = ["Closeness", "closeness", "feature_table"]

GRID = (601, 61)
"""Points along the state and along the action: what lies between them changes a distance by less than 1e-4 of it."""


class Closeness(NamedTuple):
    """What the lemma promises, and what was seen."""

    single: Frequency
    """How many single samples were zeta-close, promised with probability exp(-x)."""
    some: Frequency
    """How many sets of M samples had a zeta-close one, promised with probability 1 - delta."""


def closeness(world: World, sets: int, rng: np.random.Generator) -> Closeness:
    """Draws a truth and M samples, many times, and measures sup |f^m - f*| over the box."""
    table = feature_table(world.kernel, world.limits)
    count = world.samples
    near = []
    for _ in range(sets):
        truth = np.asarray(world.draw_sled(rng).weights)
        weights = rng.standard_normal((count, len(truth)))
        near.append(np.abs((weights - truth) @ table.T).max(axis=1) <= world.zeta)
    return Closeness(
        single=Frequency(int(np.sum(near)), sets * count),
        some=Frequency(int(np.sum(np.any(near, axis=1))), sets),
    )


def feature_table(kernel: Kernel, limits: tuple[float, ...]) -> Float[np.ndarray, "n p"]:
    """phi on a grid of the box, corners included, where some w . phi is largest: the corners of its convex hull."""
    axes = np.meshgrid(*(np.linspace(-r, r, n) for r, n in zip(limits, GRID, strict=True)))
    inputs = jnp.asarray(np.stack([axis.ravel() for axis in axes], axis=-1))
    table = np.asarray(jax.vmap(kernel.features(jax.random.key(0), 0))(inputs))
    if table.shape[1] == 1:
        return table[[int(table.argmin()), int(table.argmax())]]
    return table[ConvexHull(table).vertices]
