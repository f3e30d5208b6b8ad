"""Bounded Lipschitz maps of the input (appendix A of the paper): with them a kernel covers unbounded states."""

import math
from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import UserError
from ..numerics import cos, sin
from ..types import Input

__all__ = ["Angles", "BoundedMap", "Clip", "Tanh"]


class BoundedMap(eqx.Module):
    """A map of inputs. All those here have the Lipschitz constant 1."""

    @abstractmethod
    def __call__(self, z: Input) -> Float[Array, " p"]:
        """phi(z)."""

    @abstractmethod
    def limits(self, before: tuple[float, ...] | None) -> tuple[float, ...] | None:
        """Bounds |phi(z)_i| <= b_i, given those of z (None: unbounded)."""

    @abstractmethod
    def describe(self) -> str:
        """The map in a word."""

    def _expect(self, size: int, z: Input) -> None:
        """Indexing would drop inputs, and one width would serve for all, without a word."""
        if z.shape[0] != size:
            raise UserError(f"{self.describe()} is made for {size} inputs, and there are {z.shape[0]}.")


class Angles(BoundedMap):
    """Replaces the angles among `size` inputs by their cosines and sines; the others follow unchanged."""

    indices: tuple[int, ...] = eqx.field(static=True, converter=tuple)
    size: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if not all(0 <= i < self.size for i in self.indices) or len(set(self.indices)) != len(self.indices):
            raise UserError(f"angles {self.indices} must be different numbers from 0 to {self.size - 1}.")

    @property
    def _others(self) -> tuple[int, ...]:
        return tuple(i for i in range(self.size) if i not in self.indices)

    def __call__(self, z: Input) -> Float[Array, " p"]:
        self._expect(self.size, z)
        angle = z[np.array(self.indices, int)]
        return jnp.concatenate([cos(angle), sin(angle), z[np.array(self._others, int)]])

    def limits(self, before: tuple[float, ...] | None) -> tuple[float, ...] | None:
        known = before or (math.inf,) * self.size
        return (1.0,) * (2 * len(self.indices)) + tuple(known[i] for i in self._others)

    def describe(self) -> str:
        return f"Angles({list(self.indices)})"


def _widths(values: Sequence[float]) -> tuple[float, ...]:
    widths = tuple(float(v) for v in values)
    if not all(v > 0 for v in widths):
        raise UserError(f"widths must be positive, and {list(widths)} are not; use inf where nothing is bounded.")
    return widths


class Tanh(BoundedMap):
    """w tanh(z / w): the identity near 0, bounded by the width w. An infinite width leaves an input as it is."""

    widths: tuple[float, ...] = eqx.field(static=True, converter=_widths)

    def __call__(self, z: Input) -> Input:
        self._expect(len(self.widths), z)
        finite = np.isfinite(self.widths)
        w = jnp.asarray(np.where(finite, self.widths, 1.0), z.dtype)
        return jnp.where(finite, w * jnp.tanh(z / w), z)

    def limits(self, before: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if before is None:
            return self.widths
        return tuple(b if math.isinf(w) else w * math.tanh(b / w) for w, b in zip(self.widths, before, strict=True))

    def describe(self) -> str:
        return f"Tanh({list(self.widths)})"


class Clip(BoundedMap):
    """Each input cut to [-w, w]."""

    widths: tuple[float, ...] = eqx.field(static=True, converter=_widths)

    def __call__(self, z: Input) -> Input:
        self._expect(len(self.widths), z)
        w = jnp.asarray(self.widths, z.dtype)
        return jnp.clip(z, -w, w)

    def limits(self, before: tuple[float, ...] | None) -> tuple[float, ...] | None:
        return self.widths if before is None else tuple(map(min, self.widths, before))

    def describe(self) -> str:
        return f"Clip({list(self.widths)})"
