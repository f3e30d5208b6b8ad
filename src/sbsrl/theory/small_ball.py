"""The small-ball exponent phi(zeta) = -ln P(sup |f| < zeta), f ~ GP(0, k) (definition smallball of the paper).

Every function here that returns a bound returns an *upper* bound: too large a phi asks for too many samples, which is
safe. `estimate` in `subset.py` is the only one that may be too small.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Inexact
from scipy.optimize import minimize_scalar
from scipy.special import erf, erfc, erfcx, gammaincc, wofz

from ..errors import UserError
from ..kernels import Kernel, Linear, On, Scaled, Sum
from ..kernels.stationary import Stationary
from .checks import positive, whole
from .features import Levels, Limits, expandable, feature_levels, finite, mapped
from .modulus import holder, increment, power_increment

__all__ = [
    "Exponent",
    "ball_exponent",
    "box_exponent",
    "chaining_exponent",
    "levels_exponent",
    "small_ball",
    "small_ball_curve",
    "two_sided",
]


class Exponent(NamedTuple):
    """phi(zeta), and how it was found."""

    value: float
    method: str
    """`exact`, or the name of the bound."""


Curve = Callable[[float], Exponent]
"""phi as a function of zeta."""


def two_sided(c: Float[np.ndarray, "..."] | float) -> Float[np.ndarray, "..."]:
    """-ln P(|xi| < c) for a standard normal xi, with all digits for small and for large c."""
    c = np.asarray(c, float) / math.sqrt(2)
    with np.errstate(divide="ignore"):
        return np.where(c < 1, -np.log(erf(c)), -np.log1p(-erfc(c)))


def ball_exponent(rank: int, radius: float) -> float:
    """phi = -ln P(chi^2_p < radius^2): exact for a linear kernel on a ball |z| <= R, where radius = zeta / (sigma R).

    For any kernel of rank p it is an upper bound with radius = zeta / sqrt(sup k(z, z)), since |f(z)| <= |phi(z)| |w|.
    """
    whole("the rank", rank)
    positive("zeta", radius)
    a, x = rank / 2, radius**2 / 2
    if x > a + 1:
        return -math.log1p(-float(gammaincc(a, x)))
    # gammainc underflows where its logarithm does not: x^a e^-x / Gamma(a+1) (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...)
    term = total = 1.0
    k = 1
    while term > 1e-17 * total:
        term *= x / (a + k)
        total += term
        k += 1
    return -(2 * a * math.log(radius / math.sqrt(2)) - x - math.lgamma(a + 1) + math.log(total))


def box_exponent(suprema: Sequence[float], zeta: float) -> float:
    """phi = -ln P(sum_i a_i |w_i| < zeta): exact for a linear kernel on a box, where sup |f| = sum_i a_i |w_i|.

    For any kernel with finitely many features it is an upper bound, with a_i = sup |phi_i|. The Laplace transform of
    the sum is prod_i erfcx(s a_i / sqrt 2). It is inverted along a hyperbola through the saddle point, where the
    integrand is a bump that loses no digits however small the probability is.
    """
    positive("zeta", zeta)
    a = np.asarray([v for v in suprema if v > 0], float) / zeta
    if not len(a):
        return 0.0
    if len(a) == 1:
        return float(two_sided(1 / a[0]))
    saddle = _saddle(a)
    u = np.linspace(0, 9, 901)  # at -u the integrand is the conjugate
    width = saddle / math.sqrt(len(a))
    angle = math.pi / 7  # beyond pi / 4 from the imaginary axis erfcx grows
    s = saddle + width * (math.sin(angle) * (1 - np.cosh(u)) + 1j * math.cos(angle) * np.sinh(u))
    slope = width * (-math.sin(angle) * np.sinh(u) + 1j * math.cos(angle) * np.cosh(u))
    peak = _log_transform(np.array([saddle]), a).real[0] + saddle
    values = np.exp(s + _log_transform(s, a) - peak) / s * slope
    integral = float((2 * np.sum(values).imag - values[0].imag) * (u[1] - u[0])) / (2 * math.pi)
    return float(max(-(peak + math.log(integral)), 0.0))


def _log_transform(s: Inexact[np.ndarray, " n"], a: Float[np.ndarray, " p"]) -> Complex[np.ndarray, " n"]:
    """ln prod_i E exp(-s a_i |w_i|), equal a_i at once."""
    different, times = np.unique(a, return_counts=True)
    z = np.asarray(s, complex)[:, None] * different[None, :] / math.sqrt(2)
    return np.log(wofz(1j * z)) @ times.astype(complex)


def _saddle(a: Float[np.ndarray, " p"]) -> float:
    """Where s + ln prod erfcx(s a_i / sqrt 2) - ln s is smallest on the positive axis."""

    def slope(s: float) -> float:
        z = s * a / math.sqrt(2)
        near, far = np.minimum(z, 1e3), np.maximum(z, 1e3)
        # z d/dz ln erfcx(z), which tends to -1; the difference loses its digits for large z
        each = np.where(z < 1e3, 2 * near * (near - 1 / math.sqrt(math.pi) / erfcx(near)), far**-2.0 - 1)
        return 1 + float(np.sum(each) - 1) / s

    low, high = 1e-12, 1.0
    while slope(high) < 0:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return high


_LOG_C = np.linspace(-230, math.log(60), 20_000)
_MINUS_LOG_H = math.log(2 * math.pi) / 2 - math.log(2) + np.exp(2 * _LOG_C) / 2 - two_sided(np.exp(_LOG_C))
"""-ln h(c), h(c) = 2 pdf(c) / P(|xi| < c) = -d/dc of -ln P(|xi| < c), which decreases."""


SHARE = 1e-3
"""The part of zeta that is kept for the features that are not counted."""
MOST_MISSED = 1e-3
"""The largest probability, by Markov's inequality, with which they may exceed that part."""
NEGLIGIBLE = 1e-10
"""By how much that probability may grow if the smallest features are not counted either."""


def levels_exponent(levels: Levels, zeta: float) -> float:
    """phi(zeta) <= min { sum_n -ln P(|xi_n| < c_n) : sum_n a_n c_n = zeta }, by one bisection.

    f = sum_n xi_n phi_n with independent standard normal xi_n, so |xi_n| < c_n for all n gives sup |f| < zeta. The
    features that are not counted get a thousandth of zeta, by Markov's inequality:
    P(sum_rest a_n |xi_n| > t) <= sqrt(2 / pi) rest / t.
    """
    positive("zeta", zeta)
    used = levels.counts > 0
    count, price, rest = levels.counts[used], (levels.counts * levels.suprema)[used], levels.rest
    if rest == 0:
        return _cheapest(count, price, zeta)
    room = SHARE * zeta * math.sqrt(math.pi / 2)
    if rest > MOST_MISSED * room:
        raise UserError(f"zeta={zeta:g} is smaller than the expansion in features resolves; use a larger one.")
    onwards = price[::-1].cumsum()[::-1]
    counted = onwards > max(NEGLIGIBLE * room, 1e-6 * rest)
    missed = (rest + float(np.max(onwards[~counted], initial=0.0))) / room
    return _cheapest(count[counted], price[counted], (1 - SHARE) * zeta) - math.log1p(-missed)


def _cheapest(count: Float[np.ndarray, " L"], price: Float[np.ndarray, " L"], room: float) -> float:
    """min { sum_k N_k (-ln P(|xi| < c_k)) : sum_k price_k c_k = room }.

    At the minimum N_k h(c_k) = lambda price_k, and lambda is found by bisection. The c_k are then scaled to use up
    the room, so the result is a bound whatever the accuracy of the bisection.
    """
    if not len(count):
        return 0.0
    if not np.all(np.isfinite(price)):
        return math.inf
    log_share = np.log(price) - np.log(count)

    def widths(log_lambda: float) -> Float[np.ndarray, " L"]:
        return np.exp(np.interp(-(log_lambda + log_share), _MINUS_LOG_H, _LOG_C))

    low, high = -3000.0, 3000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(price @ widths(middle)) > room else (low, middle)
    c = widths(high)
    c *= room / float(price @ c)
    with np.errstate(over="ignore"):
        return float(count @ two_sided(c))


def chaining_exponent(kernel: Stationary, limits: Limits, zeta: float) -> float:
    """f(z) = f(centre of a cell) + sum_k (increments to the centre of the cell within it), cells that halve forever.

    By the Gaussian correlation inequality (Royen 2014) symmetric convex events only help each other, so with N_k cells
    of level k, d_k the largest deviation of an increment and sum_k c_k <= zeta,

        phi(zeta) <= sum_k N_k (-ln P(|xi| < c_k / d_k)).

    The rate is zeta^(-d / min(nu, 1)): right for rough kernels, too large for smooth ones. The best of several first
    nets is taken.
    """
    return chaining_curve(kernel, limits)(positive("zeta", zeta))


def chaining_curve(kernel: Stationary, limits: Limits) -> Callable[[float], float]:
    """`chaining_exponent` as a function of zeta; the deviations d_k are computed once."""
    half = np.asarray(finite(limits, kernel)) / np.asarray(kernel.lengthscales)
    half = half[half > 0]
    if not len(half):
        return lambda zeta: float(two_sided(zeta))
    radius = float(np.linalg.norm(half))
    # the centres of the parts of a cell lie half of its half-width away
    deviation = cache(lambda k: increment(kernel, radius * 2.0**-k))
    return lambda zeta: min(_chain(kernel, len(half), radius, deviation, first, zeta) for first in range(8))


TAIL = 1e-3
"""Share of zeta for all levels beyond the last one that is counted."""

MOST_CELLS = 1000
"""Binary logarithm of the most cells of a level: with more there is no bound."""


def _chain(
    kernel: Stationary, d: int, radius: float, deviation: Callable[[int], float], first: int, zeta: float
) -> float:
    """The bound that starts with 2^(first d) cells."""
    alpha = holder(kernel)
    q, step = 2 ** (-alpha / 2), power_increment(kernel, radius * 2.0**-first)
    a, count = [1.0], [2.0 ** (first * d)]
    for k in range(first + 1, MOST_CELLS // d):
        # Beyond: c_k = TAIL zeta (1 - q) q^j, d_k <= C step^alpha, so x_k = c_k / d_k grows by 2^(alpha / 2) a level.
        step *= 2**-alpha
        x = TAIL * zeta * (1 - q) / step if step else math.inf
        log_missed = k * d * math.log(2) + math.log(4) - x * x / 2
        if x * x / 2 * (2**alpha - 1) > (d + 1) * math.log(2) and log_missed < -40:
            # Each further level adds less than half of the one before, and -ln(1 - p) <= 2 p.
            return _cheapest(np.array(count), np.array(a), (1 - TAIL) * zeta) + 2 * math.exp(log_missed)
        a.append(deviation(k))
        count.append(2.0 ** (k * d))
    return math.inf


def small_ball(kernel: Kernel, limits: Limits, zeta: float) -> Exponent:
    """The smallest of all upper bounds that are known for this kernel on the box |z_i| <= limits_i."""
    positive("zeta", zeta)
    return small_ball_curve(kernel, limits)(zeta)


def small_ball_curve(kernel: Kernel, limits: Limits) -> Curve:
    """`small_ball` as a function of zeta: what does not depend on zeta is computed once."""
    match kernel:
        case Scaled():
            inner, deviation = small_ball_curve(kernel.kernel, limits), math.sqrt(float(kernel.variance))
            return lambda zeta: inner(zeta / deviation)
        case On():
            return small_ball_curve(kernel.kernel, mapped(kernel, limits))
        case Linear():
            suprema = (np.asarray(finite(limits, kernel)) / np.asarray(kernel.lengthscales)).tolist()
            return lambda zeta: Exponent(box_exponent(suprema, zeta), "exact")
    bounds = list(_bounds(kernel, limits))
    if not bounds:
        raise UserError(
            f"no bound on the small ball of {kernel.describe()} is known; use sums and multiples of known kernels, and "
            "products of those with an expansion in features."
        )
    return lambda zeta: _smallest(bounds, zeta)


def _smallest(bounds: Sequence[Curve], zeta: float) -> Exponent:
    """The best bound of those that there are for this zeta; without any, why there is none."""
    found, obstacle = [], UserError(f"zeta={zeta:g} has no bound.")
    for bound in bounds:
        try:
            found.append(bound(zeta))
        except UserError as error:
            obstacle = error
    if not found:
        raise obstacle
    return min(found, key=lambda exponent: exponent.value)


def _bounds(kernel: Kernel, limits: Limits) -> Iterator[Curve]:
    others = list(_other_bounds(kernel, limits))
    if expandable(kernel):
        try:
            levels = feature_levels(kernel, limits)
            yield lambda zeta: Exponent(levels_exponent(levels, zeta), "features")
        except UserError:  # there are too many features
            if not others:
                raise
    yield from others


def _other_bounds(kernel: Kernel, limits: Limits) -> Iterator[Curve]:
    """Those that do without features."""
    if isinstance(kernel, Sum) and not expandable(kernel):
        yield _split_curve(kernel, limits)
    if isinstance(kernel, Stationary):
        chaining = chaining_curve(kernel, limits)
        yield lambda zeta: Exponent(chaining(zeta), "chaining")
    rank, supremum = kernel.rank, kernel.supremum(limits)
    if rank is not None and math.isfinite(supremum):
        yield lambda zeta: Exponent(ball_exponent(rank, zeta / math.sqrt(supremum)), "rank")


def _split_curve(kernel: Sum, limits: Limits) -> Curve:
    """P(sup |f + g| < zeta) >= P(sup |f| < a zeta) P(sup |g| < (1 - a) zeta): a bound for every share a."""
    left, right = (small_ball_curve(side, limits) for side in (kernel.left, kernel.right))

    def split(zeta: float) -> Exponent:
        def both(share: float) -> float:
            return left(share * zeta).value + right((1 - share) * zeta).value

        best = minimize_scalar(both, bounds=(0.01, 0.99), method="bounded", options={"xatol": 0.01})
        return Exponent(float(best.fun), "split")

    return split
