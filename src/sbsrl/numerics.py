"""Elementary functions that XLA makes slow on a CPU."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = ["cos", "sin"]

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
