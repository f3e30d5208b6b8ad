"""Whether two sets of data can be of one system: whether what each of them says of the weights has a common point."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT
from ..types import Scalar

__all__ = ["Ellipsoid", "disagreement"]

SHARES = np.linspace(0, 1, 65)[1:-1]


class Ellipsoid(NamedTuple):
    """All w with (w - m)^T V (w - m) <= r^2."""

    centre: Float[Array, " p"]
    precision: Float[Array, "p p"]
    radius: Scalar


def disagreement(one: Ellipsoid, other: Ellipsoid) -> Scalar:
    """Above 1 only if the two have no common point.

    With q_i(w) = (w - m_i)^T V_i (w - m_i) / r_i^2, a common point has q_1, q_2 <= 1, hence (1 - s) q_1 + s q_2 <= 1
    for every s in (0, 1). Over all w the smallest value of that sum is

        d^T (P_1 / (1 - s) + P_2 / s)^-1 d,  d = m_1 - m_2,  P_i = r_i^2 V_i^-1,

    and the largest of these over 63 values of s is returned. (For s at its best it is above 1 if and only if there is
    no common point.)
    """
    apart = one.centre - other.centre
    first, second = (each.radius**2 * jnp.linalg.inv(each.precision) for each in (one, other))

    def smallest(s: Scalar) -> Scalar:
        return apart @ jnp.linalg.solve(first / (1 - s) + second / s, apart)

    return jnp.max(jax.vmap(smallest)(jnp.asarray(SHARES, EXACT)))
