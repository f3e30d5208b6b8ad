"""Functions that XLA makes slow on a CPU: elementary ones, and sums over the few numbers of an input."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = ["cos", "exp", "products", "sin", "squared_distances"]

_DEGREE = 7


def _coefficients(function: Callable[[np.ndarray], np.ndarray]) -> tuple[float, ...]:
    """Of an even function on [-pi, pi] in powers of r^2: least squares at Chebyshev nodes, which is nearly minimax."""
    nodes = np.pi**2 * 0.5 * (1 + np.cos(np.pi * (np.arange(400) + 0.5) / 400))
    fit = np.polynomial.Chebyshev.fit(nodes, function(np.sqrt(nodes)), _DEGREE, domain=[0, np.pi**2])
    return tuple(float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


_COS = _coefficients(np.cos)
_SINC = _coefficients(lambda r: np.sin(r) / r)
# 2 pi in two parts (Cody and Waite): the first has so few digits that whole multiples of it, up to 2^16, are exact.
_TWO_PI_HIGH = 6.28125
_TWO_PI_LOW = 2 * np.pi - _TWO_PI_HIGH


def _reduce(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """x modulo 2 pi, in [-pi, pi]."""
    turns = jnp.round(x * (1 / (2 * np.pi)))
    # Beyond about 1e5 no digits are left; the result is then meaningless, but bounded.
    return jnp.clip((x - turns * _TWO_PI_HIGH) - turns * _TWO_PI_LOW, -np.pi, np.pi)


def _polynomial(coefficients: tuple[float, ...], r2: Float[Array, "..."]) -> Float[Array, "..."]:
    value = jnp.full_like(r2, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * r2 + coefficient
    return value


def cos(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """cos(x): a polynomial after range reduction in float32, exact in float64.

    XLA's own cosine costs about fifty multiplications an element on a CPU and would be most of the time of
    a plan. The error is below 1e-6 for |x| <= 1e3.
    """
    return jnp.cos(x) if x.dtype != jnp.float32 else _polynomial(_COS, _reduce(x) ** 2)


def sin(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """sin(x) by the same route, as r times an even polynomial: exactly odd, and right to first order at 0."""
    if x.dtype != jnp.float32:
        return jnp.sin(x)
    r = _reduce(x)
    return r * _polynomial(_SINC, r**2)


_EXP_DEGREE = 5
_LN2 = float(np.log(2))
# ln 2 in two parts, as above: whole multiples of the first, up to 2^15, are exact.
_LN2_HIGH = 0.693359375
_LN2_LOW = _LN2 - _LN2_HIGH
_NOTHING = -88.1
"""exp of it, and of what is below, is 0 in float32: less than the smallest normal number."""


def _exp_coefficients() -> tuple[float, ...]:
    """Of (e^r - 1) / r on [-ln 2 / 2, ln 2 / 2] in powers of r, in the same way."""
    nodes = 0.5 * _LN2 * np.cos(np.pi * (np.arange(400) + 0.5) / 400)
    fit = np.polynomial.Chebyshev.fit(nodes, np.expm1(nodes) / nodes, _EXP_DEGREE, domain=[-0.5 * _LN2, 0.5 * _LN2])
    return tuple(float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


_EXP = _exp_coefficients()


@jax.custom_jvp
def exp(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """exp(x) for x <= 0, as kernels ask it: 2^n times a polynomial in float32, exact in float64.

    The relative error is below 1e-7 down to exp(-87); below that the result is 0. XLA's own takes half as long again.
    """
    if x.dtype != jnp.float32:
        return jnp.exp(x)
    x = jnp.maximum(x, _NOTHING)
    n = jnp.round(x * (1 / _LN2))
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    # The exponent of a float32 stands above its 23 digits: adding 2^23 moves n + 127 to the end of them.
    digits = jax.lax.bitcast_convert_type(n + (2.0**23 + 127), jnp.int32)
    return (1 + r * _polynomial(_EXP, r)) * jax.lax.bitcast_convert_type(digits << 23, jnp.float32)


@exp.defjvp
def _exp_slope(
    primals: tuple[Float[Array, "..."]], tangents: tuple[Float[Array, "..."]]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    value = exp(*primals)
    return value, value * tangents[0]


Rows = Float[Array, "n d"]
Query = Float[Array, "d *C"]
"""One input, or C of them as columns."""


def _pairs(rows: Rows, query: Query) -> list[tuple[Float[Array, "n *#C"], Float[Array, "1 *C"]]]:
    """The numbers of all rows and of all queries, one coordinate after the other."""
    shape = (-1, *(1,) * (query.ndim - 1))
    return [(rows[:, i].reshape(shape), query[i][None]) for i in range(rows.shape[1])]


@jax.custom_jvp
def products(rows: Rows, query: Query) -> Float[Array, "n *C"]:
    """rows @ query, for few coordinates, written out: XLA computes it together with what follows.

    As a product of matrices it would be written to memory and read again, which takes longer than the sum.
    """
    return sum((row * one for row, one in _pairs(rows, query)), jnp.zeros((), query.dtype))


@products.defjvp
def _products_slope(
    primals: tuple[Rows, Query], tangents: tuple[Rows, Query]
) -> tuple[Float[Array, "n *C"], Float[Array, "n *C"]]:
    """As products of matrices, which are faster backwards."""
    (rows, query), (rows_moved, query_moved) = primals, tangents
    return products(rows, query), rows @ query_moved + rows_moved @ query


@jax.custom_jvp
def squared_distances(rows: Rows, query: Query) -> Float[Array, "n *C"]:
    """|row - query|^2 for few coordinates, from differences: no digits are lost where both are close.

    Written out, for the same reason.
    """
    return sum(((row - one) ** 2 for row, one in _pairs(rows, query)), jnp.zeros((), query.dtype))


@squared_distances.defjvp
def _squared_distances_slope(
    primals: tuple[Rows, Query], tangents: tuple[Rows, Query]
) -> tuple[Float[Array, "n *C"], Float[Array, "n *C"]]:
    (rows, query), (rows_moved, query_moved) = primals, tangents
    of_rows = jnp.sum(rows * rows_moved, axis=1).reshape(-1, *(1,) * (query.ndim - 1))
    of_query = jnp.sum(query * query_moved, axis=0)[None]
    both = rows @ query_moved + rows_moved @ query
    return squared_distances(rows, query), 2 * ((of_rows - both) + of_query)
