"""How well a Gaussian process foretells data that it was not shown.

At level p a share p of the outcomes should lie within the central interval of probability p. Two ways to hold data out:
whole episodes at random, which asks whether the belief is right where it knows something; and the points farthest from
the middle, which asks whether it knows where it knows nothing.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import cho_solve, cholesky
from scipy.stats import norm

from .._jax import EXACT
from ..kernels import Kernel
from .knowledge import FAMILIES, GPNumbers

__all__ = ["LEVELS", "Coverage", "held_out", "measure", "standardised"]

LEVELS = (0.5, 0.8, 0.95, 0.99)
HELD_OUT, MOST_HELD_OUT = 0.2, 0.35
MOST_KNOWN, MOST_ASKED = 600, 300


class Coverage(NamedTuple):
    """Shares of held-out outcomes within the intervals of `LEVELS`, and what each output would need."""

    shares: tuple[float, ...]
    """Of all outputs together."""
    at_95: tuple[float, ...]
    """The share within the interval of 95 %, of each output."""
    stretch: tuple[float, ...]
    """By which the deviations of each output would have to be multiplied for that interval to hold 95 %."""
    points: int

    @property
    def least(self) -> float:
        """The share of the output that is covered worst."""
        return min(self.at_95)


def held_out(
    inputs: Float[np.ndarray, "n d"], episodes: list[int], spread: Float[np.ndarray, " d"], seed: int = 0
) -> dict[str, Bool[np.ndarray, " n"]]:
    """Which rows are held out, in each of the two ways.

    `episodes` are the numbers of rows of each episode, `spread` the units in which distances are measured.
    """
    n = len(inputs)
    distance = np.sum(((inputs - np.median(inputs, axis=0)) / spread) ** 2, axis=1)
    outermost = np.zeros(n, bool)
    outermost[np.argsort(-distance, kind="stable")[: round(HELD_OUT * n)]] = True
    return {"random": _whole_episodes(episodes, seed), "outermost": outermost}


def _whole_episodes(episodes: list[int], seed: int) -> Bool[np.ndarray, " n"]:
    """Episodes in a random order until a fifth of the rows is held out; stretches of rows where that takes too many."""
    rng, n = np.random.default_rng(seed), sum(episodes)
    taken, begins = np.zeros(n, bool), np.cumsum([0, *episodes])
    for e in rng.permutation(len(episodes)):
        if taken.mean() < HELD_OUT:
            taken[begins[e] : begins[e + 1]] = True
    if taken.mean() <= MOST_HELD_OUT:
        return taken
    return (np.arange(n) // max(n // 20, 1)) % 5 == min(2, n - 1)


def measure(
    numbers: GPNumbers,
    inputs: Float[np.ndarray, "n d"],
    residuals: Float[np.ndarray, "n k"],
    out: Bool[np.ndarray, " n"],
    seed: int = 0,
) -> Coverage:
    """The coverage on the rows that are held out, given the others."""
    rng = np.random.default_rng(seed)
    known, asked = np.flatnonzero(~out), np.flatnonzero(out)
    known, asked = rng.permutation(known)[:MOST_KNOWN], rng.permutation(asked)[:MOST_ASKED]
    z = np.abs(standardised(numbers, inputs[known], residuals[known], inputs[asked], residuals[asked]))
    edge = norm.ppf(0.975)
    return Coverage(
        shares=tuple(float(np.mean(z <= norm.ppf((1 + level) / 2))) for level in LEVELS),
        at_95=tuple(np.mean(z <= edge, axis=0).tolist()),
        stretch=tuple((np.quantile(z, 0.95, axis=0) / edge).tolist()),
        points=len(asked),
    )


def standardised(
    numbers: GPNumbers,
    known: Float[np.ndarray, "n d"],
    outcomes: Float[np.ndarray, "n k"],
    asked: Float[np.ndarray, "m d"],
    truth: Float[np.ndarray, "m k"],
) -> Float[np.ndarray, "m k"]:
    """(truth - mu(z)) / sqrt(sigma^2(z) + sigma_w^2) of each output, in exact arithmetic of double precision."""
    found = np.zeros_like(truth)
    rows = [FAMILIES[numbers.kernel](row) for row in numbers.length_scales]
    for j in range(truth.shape[1]):
        kernel, noise = rows[j % len(rows)], numbers.noise[j % len(numbers.noise)]
        scale = numbers.scale[j]
        factor = cholesky(_gram(kernel, known, known) + noise**2 * np.eye(len(known)), lower=True)
        across = _gram(kernel, known, asked)
        mean = across.T @ cho_solve((factor, True), outcomes[:, j] / scale)
        explained = np.sum(across * cho_solve((factor, True), across), axis=0)
        variance = np.maximum(1 - explained, 0) + noise**2
        found[:, j] = (truth[:, j] / scale - mean) / np.sqrt(variance)
    return found


def _gram(kernel: Kernel, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    pairs = jax.vmap(lambda a: jax.vmap(lambda b: kernel(a, b))(jnp.asarray(v, EXACT)))
    return np.asarray(pairs(jnp.asarray(u, EXACT)))
