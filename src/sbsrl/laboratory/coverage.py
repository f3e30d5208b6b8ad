"""How often the confidence sets contain the truth, with the corrected width and with the paper's.

A fixed design of 10 episodes of 10 points on [-1, 1], a truth of norm exactly B in the RKHS, noise of standard
deviation sigma_w; the width uses gamma = greedy / (1 - 1/e) on the design. A run counts as covered if
|mu_n - f*| <= beta_n sigma_n after every episode, on the design and on a grid.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular

from ..kernels import Kernel, Linear, SquaredExponential
from ..kernels.base import gram
from ..theory import confidence_width, greedy_gain
from ..theory.information import GREEDY_SHARE
from .intervals import Frequency

__all__ = ["Coverage", "coverage", "coverage_table"]

EPISODES, POINTS = 10, 10


class Coverage(NamedTuple):
    """One line of the table."""

    kernel: str
    noise: float
    bound: float
    convention: str
    width: float
    """beta after the last episode."""
    covered: Frequency
    delta: float


def coverage(
    kernel: Kernel, noise: float, bound: float, runs: int, seed: int, delta: float = 0.1
) -> tuple[Coverage, Coverage]:
    """The corrected width and the paper's, on the same runs."""
    rng = np.random.default_rng(seed)
    design = rng.uniform(-1, 1, (EPISODES * POINTS, 1))
    inputs = np.concatenate([design, np.linspace(-1, 1, 101)[:, None]])
    prior = np.asarray(jax.jit(gram)(kernel, jnp.asarray(inputs), jnp.asarray(inputs)))
    counts = POINTS * np.arange(1, EPISODES + 1)
    gains = greedy_gain(kernel, jnp.asarray(design), noise, EPISODES * POINTS)[counts - 1] / GREEDY_SHARE
    worst = np.array([_largest_errors(prior, counts, noise, bound, rng) for _ in range(runs)])  # [runs, episodes]
    lines = []
    for convention in ("corrected", "paper"):
        beta = np.asarray(confidence_width(jnp.asarray(gains), bound, jnp.asarray(noise), 1, delta, convention))
        held = Frequency(int(np.sum(np.all(worst <= beta * (1 + 1e-9), axis=1))), runs)
        lines.append(Coverage(type(kernel).__name__, noise, bound, convention, float(beta[-1]), held, delta))
    return lines[0], lines[1]


def _largest_errors(
    prior: Float[np.ndarray, "n n"], counts: Int[np.ndarray, " E"], noise: float, bound: float, rng: np.random.Generator
) -> Float[np.ndarray, " E"]:
    """max over z of |mu_n(z) - f*(z)| / sigma_n(z) after every episode, f* = sum_i a_i k(z, z_i) of norm B."""
    known = counts[-1]
    truth = _function_of_norm(prior, bound, rng)
    y = truth[:known] + noise * rng.standard_normal(known)
    factor = np.linalg.cholesky(prior[:known, :known] + noise**2 * np.eye(known))
    v = solve_triangular(factor, prior[:known], lower=True)
    u = solve_triangular(factor, y, lower=True)
    errors = []
    for n in counts:
        mean = v[:n].T @ u[:n]
        deviation = np.sqrt(np.maximum(np.diagonal(prior) - np.sum(v[:n] ** 2, axis=0), 1e-12))
        errors.append(np.max(np.abs(mean - truth) / deviation))
    return np.array(errors)


def _function_of_norm(
    prior: Float[np.ndarray, "n n"], bound: float, rng: np.random.Generator
) -> Float[np.ndarray, " n"]:
    """f = K a with a^T K a = B^2."""
    a = rng.standard_normal(len(prior))
    f = prior @ a
    return bound * f / np.sqrt(a @ f)


def coverage_table(runs: int, seed: int) -> list[Coverage]:
    """Linear and squared exponential, three noises, a truth of norm 0 and 1."""
    kernels: tuple[Kernel, ...] = (Linear((1.0,)), SquaredExponential((0.5,)))
    lines: list[Coverage] = []
    for kernel in kernels:
        for noise in (1.0, 0.1, 0.01):
            for bound in (0.0, 1.0):
                lines.extend(coverage(kernel, noise, bound, runs, seed))
    return lines
