"""Kernels of finite rank, k(u, v) = phi(u) . phi(v): drawing functions, and all of the theory, is exact for them."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ..errors import UserError
from ..types import Input, PRNGKey, Scalar
from .base import Kernel, Vectors, expect_size, lengthscale_vector, numbers, unbounded
from .features import Exact

__all__ = ["FiniteRank", "Linear"]


class _Inner(Kernel):
    """A kernel that is the inner product of features."""

    @abstractmethod
    def phi(self, z: Input) -> Float[Array, " p"]:
        """The features."""

    def __call__(self, u: Input, v: Input) -> Scalar:
        return self.phi(u) @ self.phi(v)

    def query(self, z: Input) -> Vectors:
        return self.phi(z)

    def row(self, z: Input) -> Vectors:
        return self.phi(z)

    def link(self, rows: Vectors, query: Vectors) -> Float[Array, "n *C"]:
        return rows @ query

    def features(self, key: PRNGKey, size: int, estimator: str = "paired") -> Exact:
        return Exact(self.phi)


class Linear(_Inner):
    """k(u, v) = sum_i u_i v_i / l_i^2."""

    lengthscales: Float[Array, " dz"]

    def __init__(self, lengthscales: ArrayLike | Sequence[float]) -> None:
        self.lengthscales = lengthscale_vector(lengthscales)

    def phi(self, z: Input) -> Float[Array, " p"]:
        expect_size(z, self.lengthscales, type(self).__name__)
        return z / self.lengthscales

    @property
    def rank(self) -> int:
        return int(self.lengthscales.shape[0])

    def supremum(self, limits: tuple[float, ...] | None = None) -> float:
        if limits is None or unbounded(limits):
            return math.inf
        return float(np.sum((np.array(limits) / np.asarray(self.lengthscales)) ** 2))

    def describe(self) -> str:
        return f"Linear({numbers(self.lengthscales)})"


class FiniteRank(_Inner):
    """k(u, v) = phi(u) . phi(v) for any features phi of the user, with |phi(z)|^2 <= bound."""

    function: Callable[[Input], Float[Array, " p"]] = eqx.field(static=True)
    size: int = eqx.field(static=True)
    bound: float = eqx.field(static=True, default=math.inf)

    def phi(self, z: Input) -> Float[Array, " p"]:
        values = jnp.asarray(self.function(z), z.dtype)
        if values.shape != (self.size,):
            raise UserError(f"{self.describe()} promises {self.size} features and gives the shape {values.shape}.")
        return values

    @property
    def rank(self) -> int:
        return self.size

    def supremum(self, limits: tuple[float, ...] | None = None) -> float:
        return self.bound

    def describe(self) -> str:
        return f"FiniteRank({getattr(self.function, '__name__', 'features')}, {self.size})"
