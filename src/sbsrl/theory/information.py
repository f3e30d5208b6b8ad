"""The information gain gamma_N = max over N points of 1/2 ln det(I + K / sigma_w^2), and bounds on it.

`information_gain` is what the other formulas use: a bound that holds for every choice of N inputs in a box, however
large N is. The greedy value is a bound on a finite set of candidates only.
"""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import UserError
from ..kernels import Kernel, On, Scaled, Sum
from ..kernels.stationary import Stationary
from .checks import at_least, positive, whole
from .features import Levels, Limits, expandable, feature_levels, finite, mapped
from .modulus import increment

__all__ = [
    "GREEDY_SHARE",
    "Gain",
    "data_gain",
    "greedy_gain",
    "information_gain",
    "net_gain",
    "rank_gain",
    "tail_gain",
]

Gain = Callable[[float], float]
"""gamma_N as a function of N."""

GREEDY_SHARE = 1 - math.exp(-1)
"""The greedy choice gathers at least this share of the maximum (submodularity)."""


def data_gain(gram: Float[np.ndarray, "N N"], noise: float) -> float:
    """1/2 ln det(I + K / sigma_w^2) of given points. It may stand for gamma_N in the confidence width."""
    positive("sigma_w", noise)
    sign, value = np.linalg.slogdet(np.eye(len(gram)) + np.asarray(gram) / noise**2)
    if sign <= 0:
        raise UserError("the Gram matrix is not positive semi-definite; it is no kernel matrix.")
    return float(value) / 2


def greedy_gain(kernel: Kernel, candidates: Float[Array, "C dz"], noise: float, points: int) -> Float[np.ndarray, " N"]:
    """The gain of 1, 2, .., N points chosen greedily: the most uncertain adds 1/2 ln(1 + sigma_i^2 / sigma_w^2).

    On these candidates gamma_N lies between it and it / (1 - 1/e). A pivoted Cholesky factor, O(C N) a point.
    """
    positive("sigma_w", noise)
    whole("the number of points", points)
    return np.asarray(_greedy(kernel, jnp.asarray(candidates), jnp.asarray(noise**2), points))


@partial(jax.jit, static_argnames="points")
def _greedy(kernel: Kernel, candidates: Array, noise2: Array, points: int) -> Array:
    variance = jax.vmap(lambda z: kernel(z, z))(candidates)

    def choose(i: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        variance, factor, gain = state
        best = jnp.argmax(variance)
        row = jax.vmap(lambda z: kernel(candidates[best], z))(candidates) - factor[:, best] @ factor
        row = row / jnp.sqrt(variance[best] + noise2)
        gained = jnp.log1p(variance[best] / noise2) / 2
        return jnp.maximum(variance - row**2, 0), factor.at[i].set(row), gain.at[i].set(gained)

    start = (variance, jnp.zeros((points, len(candidates)), variance.dtype), jnp.zeros(points, variance.dtype))
    return jnp.cumsum(jax.lax.fori_loop(0, points, choose, start)[2])


def rank_gain(rank: float, supremum: float, noise: float, points: float) -> float:
    """gamma_N <= p/2 ln(1 + N sigma_max / (p sigma_w^2)) for a kernel of rank p with k(z, z) <= sigma_max.

    ln det is concave, so it is largest when the trace, at most N sigma_max, is spread evenly over p eigenvalues.
    """
    positive("the rank", rank)
    positive("sigma_w", noise)
    at_least("sigma_max", supremum)
    at_least("the number of points", points)
    return rank / 2 * math.log1p(points * supremum / (rank * noise**2))


def tail_gain(levels: Levels, supremum: float, noise: float, points: float) -> float:
    """gamma_N <= p/2 ln(1 + N sigma_max / (p sigma_w^2)) + N tail_p / (2 sigma_w^2), with the best p (Vakili 2021).

    The p largest features are a kernel of rank p; the others have sum phi_n(z)^2 <= tail_p = sum a_n^2.
    """
    at_least("sigma_max", supremum)
    return _finite_rank_gain(_tails(levels), supremum, noise, points)


Ranks = tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]]
"""Kernels of finite rank that approximate another: their ranks, and at most how much they leave of k(z, z)."""


def _tails(levels: Levels) -> Ranks:
    """The largest features, in all numbers: ranks and tails."""
    squares, rest = (levels.counts * levels.suprema**2)[::-1].cumsum()[::-1], levels.rest * levels.rest
    used = levels.counts > 0
    tails = (np.append(squares[1:], 0.0) + rest)[used]
    if not len(tails):  # no feature is counted; the formula, which divides by the rank, increases with it
        return np.full(1, 1e-12), np.full(1, rest)
    return levels.counts.cumsum()[used], tails


def _finite_rank_gain(ranks_and_left: Ranks, supremum: float, noise: float, points: float) -> float:
    """min over p of p/2 ln(1 + N sigma_max / (p sigma_w^2)) + N left_p / (2 sigma_w^2); at most that of new points."""
    positive("sigma_w", noise)
    at_least("the number of points", points)
    ranks, left = ranks_and_left
    with np.errstate(over="ignore"):
        values = ranks / 2 * np.log1p(points * supremum / ranks / noise**2) + points * left / (2 * noise**2)
    return min(float(np.min(values, initial=math.inf)), points / 2 * math.log1p(supremum / noise**2))


def net_gain(kernel: Stationary, limits: Limits, noise: float, points: float) -> float:
    """The same with the values on a net as features: what is left of k(z, z) is at most 1 - k(r)^2, r the net's radius.

    For any stationary kernel; the net has p = prod ceil(width_i / cell) points, and the best cell is taken.
    """
    return _finite_rank_gain(_nets(kernel, limits), 1.0, noise, points)


def _nets(kernel: Stationary, limits: Limits) -> Ranks:
    """Of finer and finer nets how many points they have, and what they leave of k(z, z)."""
    half = np.asarray(finite(limits, kernel)) / np.asarray(kernel.lengthscales)
    ranks, left = [], []
    for cell in 2.0 ** np.arange(4, -40, -0.25):
        counts = np.maximum(np.ceil(2 * half / cell), 1)
        rank, radius = math.prod(counts.tolist()), float(np.linalg.norm(half / counts))
        if not math.isfinite(rank):
            break
        ranks.append(rank)
        left.append(min(1.0, increment(kernel, radius) ** 2))  # 1 - k^2 = (1 - k)(1 + k) <= 2 (1 - k)
    return np.array(ranks), np.array(left)


def information_gain(kernel: Kernel, limits: Limits, noise: float) -> Gain:
    """The smallest bound that is known for this kernel on the box |z_i| <= limits_i, as a function of N."""
    positive("sigma_w", noise)
    match kernel:
        case Scaled():
            return information_gain(kernel.kernel, limits, noise / math.sqrt(float(kernel.variance)))
        case On():
            return information_gain(kernel.kernel, mapped(kernel, limits), noise)
    supremum = kernel.supremum(limits)
    if not math.isfinite(supremum):
        raise UserError(
            f"{kernel.describe()} has no known bound on k(z, z) here; give finite limits, a bound of the features, or "
            "a bounded map (Tanh, Clip, Angles)."
        )
    if kernel.rank is not None:
        rank = kernel.rank
        return lambda points: rank_gain(rank, supremum, noise, points)
    if expandable(kernel):
        ranks = _approximations(kernel, limits)
        return lambda points: _finite_rank_gain(ranks, supremum, noise, points)
    if isinstance(kernel, Stationary):
        nets = _nets(kernel, limits)
        return lambda points: _finite_rank_gain(nets, 1.0, noise, points)
    if isinstance(kernel, Sum):
        # ln det(I + A + B) <= ln det(I + A) + ln det(I + B)
        left, right = (information_gain(side, limits, noise) for side in (kernel.left, kernel.right))
        return lambda points: left(points) + right(points)
    raise UserError(f"no bound on the information gain of {kernel.describe()} is known; use sums of known kernels.")


def _approximations(kernel: Kernel, limits: Limits) -> Ranks:
    """By the kernel's features, or by nets where those are too many to be counted."""
    try:
        return _tails(feature_levels(kernel, limits))
    except UserError:
        if not isinstance(kernel, Stationary):
            raise
        return _nets(kernel, limits)
