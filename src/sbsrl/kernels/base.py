"""What every kernel offers.

The same function k in three views:

    kernel(u, v)                                one value
    kernel.link(kernel.rows(Z), kernel.query(z))    k(z, z_i) for all i, from what was prepared of each: fast
    kernel.features(key, size)                  a map phi with E[phi(u) . phi(v)] = k(u, v), for drawing functions

All array leaves of a kernel are positive hyper-parameters.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, PyTree

from .._jax import EXACT
from ..errors import UserError
from ..types import Input, PRNGKey, Scalar
from .features import FeatureMap, Phases

if TYPE_CHECKING:
    from .algebra import On, Product, Scaled, Sum
    from .maps import BoundedMap

    Vectors: TypeAlias = Any
else:
    Vectors = PyTree[Float[Array, "..."]]

__all__ = ["Kernel", "Vectors", "cast", "gram", "positive"]

Tree = TypeVar("Tree")


class Kernel(eqx.Module):
    """A positive definite function k(u, v) of two inputs."""

    @abstractmethod
    def __call__(self, u: Input, v: Input) -> Scalar:
        """k(u, v)."""

    @abstractmethod
    def query(self, z: Input) -> Vectors:
        """What is needed of an input that is asked about: a vector, or one for each part of a composite kernel."""

    @abstractmethod
    def row(self, z: Input) -> Vectors:
        """What is needed of an input that is remembered."""

    @abstractmethod
    def link(self, rows: Vectors, query: Vectors) -> Float[Array, "n *C"]:
        """k(z, z_i) for all remembered z_i; `rows` has their vectors below each other.

        The query may have a second axis, of C questions side by side.
        """

    @abstractmethod
    def features(self, key: PRNGKey, size: int, estimator: str = "paired") -> FeatureMap:
        """About `size` random features, or as many exact ones as the kernel has."""

    @abstractmethod
    def supremum(self, limits: tuple[float, ...] | None = None) -> float:
        """A bound on k(z, z), sigma_max of assumption 2, over all z or over |z_i| <= limits_i; mostly the smallest."""

    @abstractmethod
    def describe(self) -> str:
        """The kernel and its parameters in a line."""

    @property
    def rank(self) -> int | None:
        """How many features the kernel has, or None if infinitely many."""
        return None

    @property
    def spectral(self) -> bool:
        """Whether the kernel is the Fourier transform of a probability: then `phases` works."""
        return False

    def phases(self, key: PRNGKey, count: int, estimator: str) -> Phases:
        """Draws frequencies: phases theta_i(z) with E[cos(theta_i(u) - theta_i(v))] = k(u, v)."""
        raise UserError(f"{self.describe()} has no spectral density, so it has no Fourier features.")

    def about(self, inputs: Float[Array, "n dz"], weights: Float[Array, " n"]) -> "Kernel":
        """The same kernel, computed about the mean of these inputs where that loses fewer digits.

        Far from the origin an input that is rounded to few digits is rounded by more than its distance to others.
        """
        return self

    def rows(self, inputs: Float[Array, "n dz"]) -> Vectors:
        return jax.vmap(self.row)(inputs)

    def __add__(self, other: "Kernel") -> "Sum":
        from .algebra import Sum  # noqa: PLC0415  (the algebra is made of kernels)

        return Sum(self, other)

    def __mul__(self, other: "Kernel | ArrayLike") -> "Product | Scaled":
        from .algebra import Product  # noqa: PLC0415

        return Product(self, other) if isinstance(other, Kernel) else self.__rmul__(other)

    def __rmul__(self, variance: ArrayLike) -> "Scaled":
        from .algebra import Scaled  # noqa: PLC0415

        return Scaled(positive("a variance", variance), self)

    def on(self, feature_map: "BoundedMap") -> "On":
        """k(map(u), map(v)): with a bounded map, unbounded states are covered (appendix A of the paper)."""
        from .algebra import On  # noqa: PLC0415

        return On(feature_map, self)


def gram(kernel: Kernel, u: Float[Array, "n dz"], v: Float[Array, "m dz"]) -> Float[Array, "n m"]:
    """K_ij = k(u_i, v_j)."""
    return jax.vmap(lambda a: jax.vmap(lambda b: kernel(a, b))(v))(u)


def positive(name: str, values: ArrayLike | Sequence[float]) -> Float[Array, "..."]:
    """The hyper-parameters as an array; refuses what is not positive and finite."""
    known = not isinstance(values, jax.core.Tracer)
    if known and not (np.all(np.isfinite(values)) and np.all(np.asarray(values) > 0)):
        raise UserError(f"{name} must be positive and finite, and {np.asarray(values).tolist()} is not.")
    if isinstance(values, jax.Array) and jnp.issubdtype(values.dtype, jnp.floating):
        return values
    return jnp.asarray(values, EXACT)


def lengthscale_vector(values: ArrayLike | Sequence[float]) -> Float[Array, " dz"]:
    """One positive length scale per input."""
    try:
        scales = positive("length scales", values)
    except TypeError:
        raise UserError(f"length scales must be numbers, one for each input, and {values!r} is not.") from None
    if scales.ndim != 1 or not scales.size:
        raise UserError(f"length scales have the shape {scales.shape}; give one for each input, such as (1.0, 2.0).")
    return scales


def expect_size(z: Float[Array, " n"], lengthscales: Float[Array, " m"], name: str) -> None:
    """Refuses inputs of another size, which would be broadcast silently."""
    if z.shape != lengthscales.shape:
        raise UserError(f"{name} has {lengthscales.shape[0]} length scales and got an input of shape {z.shape}.")


def cast(tree: Tree, dtype: DTypeLike) -> Tree:
    """The same tree with its floating-point arrays in another precision."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, tree)


def centre(inputs: Float[Array, "n dz"], weights: Float[Array, " n"]) -> Float[Array, " dz"]:
    """The weighted mean; 0 if there is nothing."""
    seen = jnp.where(weights[:, None] > 0, inputs, 0)
    return jnp.sum(seen, axis=0) / jnp.maximum(jnp.sum(weights), 1)


def numbers(values: ArrayLike) -> str:
    """An array for `describe`."""
    return "[" + ", ".join(f"{v:.4g}" for v in np.atleast_1d(np.asarray(values))) + "]"


def unbounded(limits: tuple[float, ...] | None) -> bool:
    return limits is None or not all(map(math.isfinite, limits))
