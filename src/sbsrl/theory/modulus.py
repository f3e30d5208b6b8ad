"""How far a function drawn from a stationary kernel moves over a distance."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..errors import UserError
from ..kernels import Kernel, Linear, Matern, On, Product, Scaled, SquaredExponential, Sum
from ..kernels.stationary import Stationary
from .features import Limits, finite, mapped

__all__ = ["holder", "increment", "kernel_lipschitz", "power_increment"]


def holder(kernel: Stationary) -> float:
    """alpha, with which the deviation of f(u) - f(v) is at most C |u - v|^alpha: 1, or 1/2 for Matern 1/2."""
    return 0.5 if isinstance(kernel, Matern) and kernel.nu < 1 else 1.0


def power_increment(kernel: Stationary, distance: float) -> float:
    """C r^alpha, never below the deviation of f(u) - f(v) at the scaled distance r.

    1 - k(r) = E[1 - cos(omega r)] <= r^2 E[omega^2] / 2 over the spectral density, whose second moment is 1 for the
    squared exponential and nu / (nu - 1) for Matern, nu > 1; without one, 1 - exp(-r) <= r.
    """
    if holder(kernel) < 1:
        return math.sqrt(2 * distance)
    curvature = kernel.nu / (kernel.nu - 1) if isinstance(kernel, Matern) else 1.0
    return math.sqrt(curvature) * distance


def increment(kernel: Stationary, distance: float) -> float:
    """The deviation of f(u) - f(v) at the scaled distance r, sqrt(2 (1 - k(r))), or a little more."""
    if holder(kernel) < 1:
        return math.sqrt(-2 * math.expm1(-distance))
    near = power_increment(kernel, distance)
    if distance < 1e-3:  # 1 - k(r) would lose its digits
        return near
    return min(near, math.sqrt(2 * (1 - float(kernel.profile(jnp.asarray(distance**2))) + 1e-15)))


def kernel_lipschitz(kernel: Kernel, limits: Limits) -> float:
    """L_k of assumption continuity_sigma: |k(z, u) - k(z, v)| <= L_k |u - v| for all inputs in the box."""
    match kernel:
        case Stationary():
            return _steepest(kernel) / float(np.min(np.asarray(kernel.lengthscales)))
        case Linear():
            return float(np.linalg.norm(np.asarray(finite(limits, kernel)) / np.asarray(kernel.lengthscales) ** 2))
        case Scaled():
            return float(kernel.variance) * kernel_lipschitz(kernel.kernel, limits)
        case On():  # the maps have the Lipschitz constant 1
            return kernel_lipschitz(kernel.kernel, mapped(kernel, limits))
        case Sum():
            return kernel_lipschitz(kernel.left, limits) + kernel_lipschitz(kernel.right, limits)
        case Product():
            left, right = (kernel_lipschitz(side, limits) for side in (kernel.left, kernel.right))
            return left * kernel.right.supremum(limits) + right * kernel.left.supremum(limits)
    raise UserError(f"the Lipschitz constant of {kernel.describe()} is not known; use kernels of which it is.")


def _steepest(kernel: Stationary) -> float:
    """max_r |dk/dr|, r the scaled distance.

    Squared exponential: r exp(-r^2/2), at r = 1. Matern 1/2: exp(-r), at 0. Matern nu = p + 1/2 > 1: |dk/dr| =
    nu / (nu - 1) r k'(r) with k' the Matern kernel of nu - 1 at the same t = sqrt(2 nu) r; found on a grid, to which
    the largest change between its points is added.
    """
    if isinstance(kernel, SquaredExponential):
        return math.exp(-0.5)
    assert isinstance(kernel, Matern)
    if kernel.nu < 1:
        return 1.0
    smoother = Matern((1.0,), kernel.nu - 1)
    r = np.linspace(0, 6, 60_001)
    stretched = r * math.sqrt(kernel.nu / (kernel.nu - 1))
    slope: Float[np.ndarray, " n"] = (
        kernel.nu / (kernel.nu - 1) * r * np.asarray(smoother.profile(jnp.asarray(stretched**2)))
    )
    return float(slope.max() + np.abs(np.diff(slope)).max())
