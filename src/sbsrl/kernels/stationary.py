"""Kernels of the distance: squared exponential and Matern, one length scale an input (ARD)."""

from abc import abstractmethod
from collections.abc import Sequence
from math import factorial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from .._jax import EXACT
from ..errors import UserError
from ..numerics import exp, squared_distances
from ..types import Input, PRNGKey, Scalar
from .base import Kernel, Vectors, centre, expect_size, lengthscale_vector, numbers
from .features import Fourier, LinearPhases, fourier, standard_frequencies

__all__ = ["Matern", "SquaredExponential", "Stationary"]


FAR = 1e3
"""exp(-FAR) is 0 in any precision. Beyond it a polynomial would overflow, and infinity times 0 is not a number."""


class Stationary(Kernel):
    """k(u, v) = h(r^2), r^2 = sum_i (u_i - v_i)^2 / l_i^2, h(0) = 1."""

    lengthscales: Float[Array, " dz"]

    def __init__(self, lengthscales: ArrayLike | Sequence[float]) -> None:
        self.lengthscales = lengthscale_vector(lengthscales)

    @abstractmethod
    def profile(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        """h."""

    @abstractmethod
    def spread(self, key: PRNGKey, count: int) -> Float[Array, " D"]:
        """The factor that turns a normal frequency into one of this kernel's spectral density."""

    def __call__(self, u: Input, v: Input) -> Scalar:
        return self.profile(jnp.sum(self._scaled(u - v) ** 2))

    def _scaled(self, z: Input) -> Input:
        expect_size(z, self.lengthscales, type(self).__name__)
        return z / self.lengthscales

    def query(self, z: Input) -> Vectors:
        """The input in units of the length scales."""
        return self._scaled(z)

    def row(self, z: Input) -> Vectors:
        return self._scaled(z)

    def link(self, rows: Vectors, query: Vectors) -> Float[Array, "n *C"]:
        return self.profile(squared_distances(rows, query))

    def about(self, inputs: Float[Array, "n dz"], weights: Float[Array, " n"]) -> Kernel:
        return Centred(self, centre(inputs, weights))

    def features(self, key: PRNGKey, size: int, estimator: str = "paired") -> Fourier:
        return fourier(self.phases, key, size, estimator)

    @property
    def spectral(self) -> bool:
        return True

    def phases(self, key: PRNGKey, count: int, estimator: str) -> LinearPhases:
        normal_key, spread_key = jax.random.split(key)
        normal = standard_frequencies(normal_key, count, self.lengthscales.shape[0], estimator)
        return LinearPhases(normal * self.spread(spread_key, count)[:, None] / self.lengthscales[None, :])

    def supremum(self, limits: tuple[float, ...] | None = None) -> float:
        return 1.0


class Centred(Kernel):
    """A stationary kernel, computed about a centre."""

    kernel: Stationary
    centre: Float[Array, " dz"]

    def __call__(self, u: Input, v: Input) -> Scalar:
        return self.kernel(u, v)

    def query(self, z: Input) -> Vectors:
        return self.kernel.query(z - self.centre)

    def row(self, z: Input) -> Vectors:
        return self.kernel.row(z - self.centre)

    def link(self, rows: Vectors, query: Vectors) -> Float[Array, "n *C"]:
        return self.kernel.link(rows, query)

    def features(self, key: PRNGKey, size: int, estimator: str = "paired") -> Fourier:
        return self.kernel.features(key, size, estimator)

    def supremum(self, limits: tuple[float, ...] | None = None) -> float:
        return self.kernel.supremum(limits)

    def describe(self) -> str:
        return self.kernel.describe()


class SquaredExponential(Stationary):
    """h(r^2) = exp(-r^2 / 2)."""

    def __init__(self, lengthscales: ArrayLike | Sequence[float]) -> None:
        super().__init__(lengthscales)

    def profile(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        return exp(-0.5 * r2)

    def spread(self, key: PRNGKey, count: int) -> Float[Array, " D"]:
        return jnp.ones(count, EXACT)

    def describe(self) -> str:
        return f"SquaredExponential({numbers(self.lengthscales)})"


class Matern(Stationary):
    """Matern with half-integer nu = p + 1/2: a polynomial of degree p times an exponential,

    h(r^2) = exp(-t) p!/(2p)! sum_i (p+i)!/(i! (p-i)!) (2 t)^(p-i),  t = sqrt(2 nu) r.

    Functions drawn from it have p derivatives. Frequencies follow Student's t with 2 nu degrees of freedom.
    """

    nu: float = eqx.field(static=True, default=1.5)

    def __init__(self, lengthscales: ArrayLike | Sequence[float], nu: float = 1.5) -> None:
        if not (nu > 0 and (2 * nu) % 2 == 1):
            raise UserError(f"nu={nu} is not a half-integer; use 0.5, 1.5, 2.5, ... (or a squared exponential).")
        super().__init__(lengthscales)
        self.nu = nu

    def profile(self, r2: Float[Array, "..."]) -> Float[Array, "..."]:
        p = round(self.nu - 0.5)
        apart = r2 > 0
        # At distance 0 the root has no derivative, though the kernel has: keep it out of the gradient.
        t = jnp.where(apart, np.sqrt(2 * self.nu).item() * jnp.sqrt(jnp.where(apart, r2, 1)), 0)
        t = jnp.minimum(t, FAR)
        coefficients = [
            2**j * factorial(p) * factorial(2 * p - j) / (factorial(2 * p) * factorial(p - j) * factorial(j))
            for j in range(p + 1)
        ]
        value = jnp.full_like(t, coefficients[-1])
        for c in coefficients[-2::-1]:
            value = value * t + c
        return value * exp(-t)

    def spread(self, key: PRNGKey, count: int) -> Float[Array, " D"]:
        """sqrt(2 nu / chi^2_{2 nu}) = sqrt(nu / Gamma(nu))."""
        return jnp.sqrt(self.nu / jax.random.gamma(key, self.nu, (count,), EXACT))

    def describe(self) -> str:
        return f"Matern({numbers(self.lengthscales)}, nu={self.nu:g})"
