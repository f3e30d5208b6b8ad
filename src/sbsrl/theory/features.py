"""How large the features of a kernel are: k(u, v) = sum_n phi_n(u) phi_n(v) on a box |z_i| <= r_i.

All that the bounds on the small ball and on the information gain need is how many features have which supremum
a_n = sup |phi_n|. A histogram of ln a_n says so in any dimension: for a product of kernels, of which the squared
exponential in d dimensions is one, the suprema multiply and histograms are convolved. Every a_n is rounded up to its
bin, so what is computed from a histogram is a bound, and remains one.
"""

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from ..errors import UserError
from ..kernels import FiniteRank, Kernel, Linear, On, Product, Scaled, SquaredExponential, Sum

__all__ = ["Levels", "Limits", "expandable", "feature_levels"]

Limits = tuple[float, ...]
"""r: the box |z_i| <= r_i on which the inputs live. For a stationary kernel its centre does not matter."""

STEP = 0.005
"""Width of a bin of ln a_n: suprema are rounded up by at most half a per cent a factor."""

DEPTH = 90.0
"""Features of one dimension with a_n < exp(-DEPTH) are not counted but summed up."""

MOST_FEATURES = 10**6

MOST_BINS, MOST_PAIRS = 2**17, 10**7
"""The most bins of a product, and the most pairs of bins it is made of: beyond them the bins are made wider."""


class Levels(NamedTuple):
    """counts[b] features with a_n <= exp(-step (first + b)), and infinitely many more with sum a_n <= rest."""

    first: int
    counts: Float[np.ndarray, " L"]
    rest: float
    step: float = STEP

    @property
    def suprema(self) -> Float[np.ndarray, " L"]:
        """a of each bin."""
        return np.exp(-self.step * (self.first + np.arange(len(self.counts))))

    @property
    def total(self) -> float:
        """sum_n a_n, or a little more."""
        return float(self.counts @ self.suprema) + self.rest

    def widened(self) -> "Levels":
        """The same in bins twice as wide. Suprema are rounded up, so this is a bound wherever the finer ones are."""
        counts = np.concatenate([np.zeros(self.first % 2), self.counts])
        counts = np.append(counts, np.zeros(len(counts) % 2)).reshape(-1, 2).sum(axis=1)
        return Levels(self.first // 2, counts, self.rest, 2 * self.step)


def feature_levels(kernel: Kernel, limits: Limits) -> Levels:
    """The features of a kernel of the algebra, on a box."""
    match kernel:
        case Scaled():
            return _scale(feature_levels(kernel.kernel, limits), math.sqrt(float(kernel.variance)))
        case On():
            return feature_levels(kernel.kernel, mapped(kernel, limits))
        case Sum() | Product():
            join = _union if isinstance(kernel, Sum) else _product
            return join(feature_levels(kernel.left, limits), feature_levels(kernel.right, limits))
    return _simple_levels(kernel, limits)


def _simple_levels(kernel: Kernel, limits: Limits) -> Levels:
    """Of a kernel that is not made of others."""
    match kernel:
        case SquaredExponential():
            return _squared_exponential(kernel, limits)
        case Linear():
            return _of_suprema(np.asarray(finite(limits, kernel)) / np.asarray(kernel.lengthscales), 0.0)
        case FiniteRank():
            if not math.isfinite(kernel.bound):
                raise UserError(f"{kernel.describe()} has no bound on |phi(z)|^2; give one: FiniteRank(..., bound=b).")
            return _of_suprema(np.full(kernel.size, math.sqrt(kernel.bound)), 0.0)
    raise UserError(f"no expansion of {kernel.describe()} in features is known.")


def expandable(kernel: Kernel) -> bool:
    """Whether `feature_levels` knows the features of this kernel."""
    match kernel:
        case Scaled() | On():
            return expandable(kernel.kernel)
        case Sum() | Product():
            return expandable(kernel.left) and expandable(kernel.right)
    return isinstance(kernel, SquaredExponential | Linear | FiniteRank)


def mapped(kernel: On, limits: Limits) -> Limits:
    """The box that a kernel's map sends the inputs to."""
    return kernel.feature_map.limits(limits) or ()


def finite(limits: Limits, kernel: Kernel) -> Limits:
    """The box, if it is one, with a side for each input of the kernel."""
    scales = getattr(kernel, "lengthscales", limits)
    if len(limits) != len(scales):
        raise UserError(f"{kernel.describe()} has {len(scales)} inputs, and {len(limits)} limits were given.")
    if not all(math.isfinite(r) and r >= 0 for r in limits):
        raise UserError(
            f"{kernel.describe()} on the unbounded inputs |z_i| <= {list(limits)} has no finite bound; give finite "
            "limits, or compose it with a bounded map (Tanh, Clip, Angles)."
        )
    return limits


def _squared_exponential(kernel: SquaredExponential, limits: Limits) -> Levels:
    """Taylor: exp(-(u-v)^2/2) = sum_n phi_n(u) phi_n(v), phi_n(u) = exp(-u^2/2) u^n / sqrt(n!), u = z / l.

    phi_n(u)^2 is the probability of n under a Poisson law of mean u^2; on |u| <= r it is largest at u^2 = min(r^2, n).
    """
    scaled = np.asarray(finite(limits, kernel)) / np.asarray(kernel.lengthscales)
    return _taylor_product(tuple((scaled**2).tolist()), DEPTH)


@lru_cache(maxsize=16)
def _taylor_product(means: tuple[float, ...], depth: float) -> Levels:
    """The features of all dimensions. The bounds on small balls and on information ask for the same ones."""
    return reduce(_product, [_taylor(mean, depth) for mean in means])


@lru_cache(maxsize=16)
def _taylor(mean: float, depth: float) -> Levels:
    """The features of one dimension, for (r / l)^2 = mean."""
    if mean == 0:
        return Levels(0, np.ones(1), 0.0)
    if mean > MOST_FEATURES / 4:
        raise UserError(f"length scales of {1 / math.sqrt(mean):.2g} of the half-width of the inputs are too short.")
    n = np.arange(int(4 * mean + 20 * math.sqrt(mean)) + 400)
    peak = np.minimum(n, mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_a = np.where(n == 0, 0.0, (n * np.log(peak) - peak - gammaln(n + 1)) / 2)
    kept = (log_a >= -depth) | (n <= mean)
    last = int(np.flatnonzero(kept)[-1])
    # Beyond the peak each supremum is sqrt(mean / n) < 1 times the one before: a geometric series bounds the rest.
    ratio = math.sqrt(mean / (last + 2))
    rest = math.exp(log_a[last + 1]) / (1 - ratio)
    return _of_suprema(np.exp(log_a[: last + 1]), rest)


def _of_suprema(suprema: Sequence[float] | Float[np.ndarray, " n"], rest: float) -> Levels:
    a = np.asarray(suprema, float)
    a = a[a > 0]
    if not len(a):
        return Levels(0, np.zeros(1), rest)
    bins = np.floor(-np.log(a) / STEP).astype(int)
    counts = np.zeros(bins.max() - bins.min() + 1)
    np.add.at(counts, bins - bins.min(), 1.0)
    return Levels(int(bins.min()), counts, rest)


def _scale(levels: Levels, factor: float) -> Levels:
    shift = math.floor(-math.log(factor) / levels.step)
    return levels._replace(first=levels.first + shift, rest=levels.rest * factor)


def _union(left: Levels, right: Levels) -> Levels:
    left, right = _alike(left, right)
    first = min(left.first, right.first)
    last = max(side.first + len(side.counts) for side in (left, right))
    counts = np.zeros(last - first)
    for side in (left, right):
        start = side.first - first
        counts[start : start + len(side.counts)] += side.counts
    return Levels(first, counts, left.rest + right.rest, left.step)


def _product(left: Levels, right: Levels) -> Levels:
    """All products: every bin of one with every bin of the other, in wider bins where those are too many."""
    left, right = _alike(left, right)
    while _work(left, right) > MOST_PAIRS or len(left.counts) + len(right.counts) > MOST_BINS:
        left, right = left.widened(), right.widened()
    few, many = sorted((left, right), key=lambda side: np.count_nonzero(side.counts))
    counts = np.zeros(len(left.counts) + len(right.counts) - 1)
    with np.errstate(over="ignore"):
        for b in np.flatnonzero(few.counts):
            counts[b : b + len(many.counts)] += few.counts[b] * many.counts
        rest = left.total * right.rest + left.rest * (right.total - right.rest)
        product = Levels(left.first + right.first, counts, rest, left.step)
        if not math.isfinite(product.total):
            raise UserError("the kernel has more features than can be counted; use longer length scales.")
    return product


def _alike(left: Levels, right: Levels) -> tuple[Levels, Levels]:
    """Both in bins of the same width."""
    while left.step < right.step:
        left = left.widened()
    while right.step < left.step:
        right = right.widened()
    return left, right


def _work(left: Levels, right: Levels) -> int:
    """How many pairs of bins a product takes."""
    few, many = sorted((left, right), key=lambda side: np.count_nonzero(side.counts))
    return int(np.count_nonzero(few.counts)) * len(many.counts)
