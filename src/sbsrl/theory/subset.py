"""An estimate of the small-ball exponent by subset simulation, with an error bar. Not a bound.

The supremum is taken over a finite set of inputs, where it is a little smaller than over the box, so phi comes out a
little too small.
"""

import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.stats import qmc

from ..errors import UserError
from ..kernels import Kernel
from ..kernels.base import gram
from .checks import positive, whole
from .features import Limits, finite

__all__ = ["Estimate", "estimate_small_ball", "grid_features", "subset_simulation"]

SHARE = 0.1
"""p_0: each level keeps this share of the chains."""
MOVES = 12
"""Markov moves between levels."""
MOST_LEVELS = 2000
"""Levels after which the simulation gives up: phi would be about 4600 if they were the usual ones."""


class Estimate(NamedTuple):
    """A number and its standard error."""

    value: float
    error: float


def grid_features(kernel: Kernel, limits: Limits, points: int = 400) -> Float[np.ndarray, "n p"]:
    """A matrix whose product with a standard normal vector is a draw of f at about so many inputs of the box.

    A grid in one and two dimensions, a Sobol set beyond; the corners, where f is freest, are included, if there are
    not more of them than points.
    """
    half = np.asarray(finite(limits, kernel))
    if len(half) <= 2:
        side = max(2, round(points ** (1 / len(half))))
        axes = np.meshgrid(*(np.linspace(-r, r, side) for r in half))
        inputs = np.stack([axis.ravel() for axis in axes], axis=-1)
    else:
        inside = qmc.Sobol(len(half), rng=0).random_base2(math.ceil(math.log2(points))) * 2 - 1
        few = 2 ** len(half) <= points
        corners = list(itertools.product(*([-1.0, 1.0],) * len(half))) if few else inside[:0]
        inputs = np.concatenate([inside, corners]) * half
    matrix = np.asarray(jax.jit(gram)(kernel, jnp.asarray(inputs), jnp.asarray(inputs)))
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-12 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def estimate_small_ball(
    kernel: Kernel,
    limits: Limits,
    zeta: float,
    points: int = 400,
    chains: int = 1000,
    runs: int = 4,
    seed: int = 0,
    deepest: float = math.inf,
) -> Estimate:
    """phi(zeta) = -ln P(max |f| < zeta) on a finite set of inputs: the mean of some runs and its standard error.

    Infinite if it exceeds `deepest`, where the simulation, whose time grows with phi, is given up.
    """
    features = grid_features(kernel, limits, points)
    rng = np.random.default_rng(seed)
    found: list[float] = []
    for _ in range(whole("the number of runs", runs, 2)):
        found.append(subset_simulation(features, zeta, chains, rng, deepest))
        if math.isinf(found[-1]):
            return Estimate(math.inf, math.inf)
    return Estimate(float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(runs)))


def subset_simulation(
    features: Float[np.ndarray, "n p"], zeta: float, chains: int, rng: np.random.Generator, deepest: float = math.inf
) -> float:
    """-ln P(max |Phi xi| < zeta): a product of probabilities of about 0.1, each estimated given the level before.

    Between levels the chains move by preconditioned Crank-Nicolson, xi' = sqrt(1 - b^2) xi + b eta, accepted if still
    within the level; b adapts to an acceptance of about 0.3. Infinity stands for more than `deepest`.
    """
    positive("zeta", zeta)
    whole("the number of chains", chains, 20)
    xi = rng.standard_normal((chains, features.shape[1]))
    size = np.abs(xi @ features.T).max(axis=1)
    exponent, b = 0.0, 0.5
    for _ in range(MOST_LEVELS):
        level = float(np.sort(size)[math.ceil(SHARE * chains) - 1])
        if level < zeta:
            return exponent - math.log(float(np.mean(size < zeta)))
        inside = np.flatnonzero(size <= level)
        if len(inside) == chains:
            break
        exponent -= math.log(len(inside) / chains)
        if exponent > deepest:
            return math.inf
        chosen = inside[rng.integers(len(inside), size=chains)]
        xi, size = xi[chosen], size[chosen]
        for _ in range(MOVES):
            proposal = math.sqrt(1 - b * b) * xi + b * rng.standard_normal(xi.shape)
            new = np.abs(proposal @ features.T).max(axis=1)
            accepted = new <= level
            xi[accepted], size[accepted] = proposal[accepted], new[accepted]
            b = min(1.0, max(1e-4, b * math.exp(float(np.mean(accepted)) - 0.3)))
    raise UserError(f"the chains got stuck at the level {level:g}; use more chains, or a larger zeta.")
