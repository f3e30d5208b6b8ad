"""Feature maps phi with E[phi(u) . phi(v)] = k(u, v): exact ones for kernels of finite rank, random Fourier ones else.

A function drawn from GP(0, k) is phi(z) . w with w ~ N(0, I). With finitely many exact features the draw is exact; with
Fourier features each draw has its own random frequencies, and its covariance over all randomness is exactly k.

Every map takes one input [dz], or C of them as columns [dz, C], which is how planning asks.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT
from ..errors import unknown
from ..numerics import cos, products
from ..types import Input, PRNGKey, Scalar

__all__ = [
    "ESTIMATORS",
    "Composed",
    "Exact",
    "FeatureMap",
    "Fourier",
    "Joined",
    "Outer",
    "Phases",
    "Rescaled",
    "fourier",
    "standard_frequencies",
]

Inputs = Float[Array, "dz *C"]
Features = Float[Array, "D *C"]
FeatureMap = Callable[[Inputs], Features]
Phases = Callable[[Inputs], Features]


def columns(function: Callable[[Input], Any], z: Inputs) -> Any:
    """A function of one input, at one or at every column."""
    return function(z) if z.ndim == 1 else jax.vmap(function, in_axes=-1, out_axes=-1)(z)


ESTIMATORS = {
    "paired": "cosine and sine of each frequency: the variance of every draw is exact",
    "phased": "cosines with random phases: twice as many frequencies, a variance that is exact only on average",
    "orthogonal": "as paired, with frequencies at right angles in blocks: a smaller error in few dimensions",
}


class LinearPhases(eqx.Module):
    """theta(z) = omega z."""

    omega: Float[Array, "D dz"]

    def __call__(self, z: Inputs) -> Features:
        return products(self.omega, z)


class SummedPhases(eqx.Module):
    """The phases of a product of kernels: frequencies add."""

    left: Phases
    right: Phases

    def __call__(self, z: Inputs) -> Features:
        return self.left(z) + self.right(z)


class Composed(eqx.Module):
    """Features, or phases, of a mapped input."""

    inner: Callable[[Input], Input]
    outer: FeatureMap

    def __call__(self, z: Inputs) -> Features:
        return self.outer(columns(self.inner, z))


class Fourier(eqx.Module):
    """sqrt(2/D) cos(theta_i(z) + b_i) (Rahimi and Recht 2007)."""

    phases: Phases
    shift: Float[Array, " D"]

    def __call__(self, z: Inputs) -> Features:
        shift = self.shift.reshape(-1, *(1,) * (z.ndim - 1))
        return np.sqrt(2 / self.shift.shape[0]).item() * cos(self.phases(z) + shift)


class Exact(eqx.Module):
    """Finitely many features that are the kernel."""

    function: FeatureMap

    def __call__(self, z: Inputs) -> Features:
        return columns(self.function, z)


class Rescaled(eqx.Module):
    """Features of a multiple of a kernel."""

    factor: Scalar
    part: FeatureMap

    def __call__(self, z: Inputs) -> Features:
        return self.factor * self.part(z)


class Joined(eqx.Module):
    """Features of a sum of kernels."""

    left: FeatureMap
    right: FeatureMap

    def __call__(self, z: Inputs) -> Features:
        return jnp.concatenate([self.left(z), self.right(z)])


class Outer(eqx.Module):
    """Features of a product of kernels: all products of both."""

    left: FeatureMap
    right: FeatureMap

    def __call__(self, z: Inputs) -> Features:
        return columns(lambda z: jnp.outer(self.left(z), self.right(z)).reshape(-1), z)


class Repeated(eqx.Module):
    """Both halves of `paired` features share their frequencies."""

    part: Phases

    def __call__(self, z: Inputs) -> Features:
        theta = self.part(z)
        return jnp.concatenate([theta, theta])


def twice(phases: Phases) -> Phases:
    """The same phases two times below each other; frequencies are repeated beforehand where that is possible."""
    match phases:
        case LinearPhases(omega=omega):
            return LinearPhases(jnp.concatenate([omega, omega]))
        case SummedPhases(left=left, right=right):
            return SummedPhases(twice(left), twice(right))
        case Composed(inner=inner, outer=outer):
            return Composed(inner, twice(outer))
    return Repeated(phases)


def fourier(draw: Callable[[PRNGKey, int, str], Phases], key: PRNGKey, size: int, estimator: str) -> Fourier:
    """Random features of a kernel whose phases can be drawn."""
    if estimator not in ESTIMATORS:
        raise unknown("estimator", estimator, ESTIMATORS)
    frequency_key, shift_key = jax.random.split(key)
    if estimator == "phased":
        shift = jax.random.uniform(shift_key, (size,), EXACT, 0, 2 * np.pi)
        return Fourier(draw(frequency_key, size, estimator), shift)
    half = max(1, size // 2)
    return Fourier(twice(draw(frequency_key, half, estimator)), jnp.asarray(np.repeat([0.0, -np.pi / 2], half), EXACT))


def standard_frequencies(key: PRNGKey, count: int, dimension: int, estimator: str) -> Float[Array, "D dz"]:
    """Rows distributed as N(0, I): independent, or at right angles within blocks of `dimension` rows."""
    if estimator != "orthogonal":
        return jax.random.normal(key, (count, dimension), EXACT)
    blocks = -(-count // dimension)
    direction_key, length_key = jax.random.split(key)
    q, r = jnp.linalg.qr(jax.random.normal(direction_key, (blocks, dimension, dimension), EXACT))
    # A QR factor prefers one sign in some entries, which matters as soon as frequencies are added; this one does not.
    q *= jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))[:, None, :]
    # Each row has a length of its own, that of a normal vector.
    length = jnp.linalg.norm(jax.random.normal(length_key, (blocks, dimension, dimension), EXACT), axis=-1)
    return (q * length[:, :, None]).reshape(-1, dimension)[:count]
