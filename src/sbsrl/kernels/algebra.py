"""Kernels made of kernels: sums, products, multiples, and composition with a map of the input."""

from functools import reduce

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ..errors import UserError
from ..types import Input, PRNGKey, Scalar
from .base import Kernel, Vectors, numbers, positive
from .features import Composed, FeatureMap, Joined, Outer, Phases, Rescaled, SummedPhases, fourier
from .finite import FiniteRank
from .maps import BoundedMap

__all__ = ["On", "Product", "Scaled", "Sum"]


class _Pair(Kernel):
    """Two kernels side by side."""

    left: Kernel
    right: Kernel

    def query(self, z: Input) -> Vectors:
        return self.left.query(z), self.right.query(z)

    def row(self, z: Input) -> Vectors:
        return self.left.row(z), self.right.row(z)


class Sum(_Pair):
    """k_1 + k_2."""

    def about(self, inputs: Float[Array, "n dz"], weights: Float[Array, " n"]) -> Kernel:
        return Sum(self.left.about(inputs, weights), self.right.about(inputs, weights))

    def __call__(self, u: Input, v: Input) -> Scalar:
        return self.left(u, v) + self.right(u, v)

    def link(self, rows: Vectors, query: Vectors) -> Float[Array, "n *C"]:
        return self.left.link(rows[0], query[0]) + self.right.link(rows[1], query[1])

    def features(self, key: PRNGKey, size: int, estimator: str = "paired") -> FeatureMap:
        left_key, right_key = jax.random.split(key)
        return Joined(self.left.features(left_key, size, estimator), self.right.features(right_key, size, estimator))

    @property
    def rank(self) -> int | None:
        left, right = self.left.rank, self.right.rank
        return None if left is None or right is None else left + right

    def supremum(self, limits: tuple[float, ...] | None = None) -> float:
        return self.left.supremum(limits) + self.right.supremum(limits)

    def describe(self) -> str:
        return f"({self.left.describe()} + {self.right.describe()})"


class Product(_Pair):
    """k_1 k_2."""

    def about(self, inputs: Float[Array, "n dz"], weights: Float[Array, " n"]) -> Kernel:
        return Product(self.left.about(inputs, weights), self.right.about(inputs, weights))

    def __call__(self, u: Input, v: Input) -> Scalar:
        return self.left(u, v) * self.right(u, v)

    def link(self, rows: Vectors, query: Vectors) -> Float[Array, "n *C"]:
        return self.left.link(rows[0], query[0]) * self.right.link(rows[1], query[1])

    def features(self, key: PRNGKey, size: int, estimator: str = "paired") -> FeatureMap:
        """Sums are multiplied out. Then the frequencies of spectral factors add, and other factors multiply."""
        if self.spectral:
            return fourier(self.phases, key, size, estimator)
        terms = _expand(self)
        if len(terms) > 1:
            return reduce(Sum, [reduce(Product, term) for term in terms]).features(key, size, estimator)
        spectral = [factor for factor in terms[0] if factor.spectral]
        others = [factor for factor in terms[0] if not factor.spectral]
        parts = [*others, reduce(Product, spectral)] if spectral else others
        keys = jax.random.split(key, len(parts))
        return reduce(Outer, [part.features(k, size, estimator) for part, k in zip(parts, keys, strict=True)])

    @property
    def rank(self) -> int | None:
        left, right = self.left.rank, self.right.rank
        return None if left is None or right is None else left * right

    @property
    def spectral(self) -> bool:
        return self.left.spectral and self.right.spectral

    def phases(self, key: PRNGKey, count: int, estimator: str) -> Phases:
        left_key, right_key = jax.random.split(key)
        return SummedPhases(
            self.left.phases(left_key, count, estimator), self.right.phases(right_key, count, estimator)
        )

    def supremum(self, limits: tuple[float, ...] | None = None) -> float:
        return self.left.supremum(limits) * self.right.supremum(limits)

    def describe(self) -> str:
        return f"{self.left.describe()} * {self.right.describe()}"


class Scaled(Kernel):
    """a k: functions of standard deviation sqrt(a) times as large."""

    variance: Scalar
    kernel: Kernel

    def __init__(self, variance: ArrayLike, kernel: Kernel) -> None:
        self.variance = positive("a variance", variance)
        if self.variance.ndim:
            raise UserError(f"a kernel is multiplied by one number, not by an array of shape {self.variance.shape}.")
        self.kernel = kernel

    def __call__(self, u: Input, v: Input) -> Scalar:
        return self.variance * self.kernel(u, v)

    def about(self, inputs: Float[Array, "n dz"], weights: Float[Array, " n"]) -> Kernel:
        return Scaled(self.variance, self.kernel.about(inputs, weights))

    def query(self, z: Input) -> Vectors:
        return self.kernel.query(z)

    def row(self, z: Input) -> Vectors:
        return self.kernel.row(z)

    def link(self, rows: Vectors, query: Vectors) -> Float[Array, "n *C"]:
        return self.variance * self.kernel.link(rows, query)

    def features(self, key: PRNGKey, size: int, estimator: str = "paired") -> FeatureMap:
        return Rescaled(jnp.sqrt(self.variance), self.kernel.features(key, size, estimator))

    @property
    def rank(self) -> int | None:
        return self.kernel.rank

    def supremum(self, limits: tuple[float, ...] | None = None) -> float:
        return float(self.variance) * self.kernel.supremum(limits)

    def describe(self) -> str:
        return f"{numbers(self.variance)[1:-1]} * {self.kernel.describe()}"


class On(Kernel):
    """k(phi(u), phi(v)) for a bounded map phi (appendix A of the paper)."""

    feature_map: BoundedMap
    kernel: Kernel

    def __call__(self, u: Input, v: Input) -> Scalar:
        return self.kernel(self.feature_map(u), self.feature_map(v))

    def about(self, inputs: Float[Array, "n dz"], weights: Float[Array, " n"]) -> Kernel:
        return On(self.feature_map, self.kernel.about(jax.vmap(self.feature_map)(inputs), weights))

    def query(self, z: Input) -> Vectors:
        return self.kernel.query(self.feature_map(z))

    def row(self, z: Input) -> Vectors:
        return self.kernel.row(self.feature_map(z))

    def link(self, rows: Vectors, query: Vectors) -> Float[Array, "n *C"]:
        return self.kernel.link(rows, query)

    def features(self, key: PRNGKey, size: int, estimator: str = "paired") -> FeatureMap:
        return Composed(self.feature_map, self.kernel.features(key, size, estimator))

    @property
    def rank(self) -> int | None:
        return self.kernel.rank

    @property
    def spectral(self) -> bool:
        return self.kernel.spectral

    def phases(self, key: PRNGKey, count: int, estimator: str) -> Phases:
        return Composed(self.feature_map, self.kernel.phases(key, count, estimator))

    def supremum(self, limits: tuple[float, ...] | None = None) -> float:
        return self.kernel.supremum(self.feature_map.limits(limits))

    def describe(self) -> str:
        return f"({self.kernel.describe()} on {self.feature_map.describe()})"


def _expand(kernel: Kernel) -> list[list[Kernel]]:
    """The kernel as a sum of products. Sums of finite rank stay together; a variance is a factor of rank 1."""
    match kernel:
        case Product(left=left, right=right):
            return [a + b for a in _expand(left) for b in _expand(right)]
        case Kernel(rank=int()):
            return [[kernel]]
        case Sum(left=left, right=right):
            return _expand(left) + _expand(right)
        case Scaled(variance=variance, kernel=inner):
            return [[Scaled(variance, FiniteRank(_one, 1, 1.0)), *term] for term in _expand(inner)]
        case On(feature_map=feature_map, kernel=inner):
            return [[On(feature_map, factor) for factor in term] for term in _expand(inner)]
    return [[kernel]]


def _one(z: Input) -> Float[Array, "1"]:
    return jnp.ones(1, z.dtype)
