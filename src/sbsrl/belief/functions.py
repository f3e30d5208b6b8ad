"""Dynamics made of functions of unit scale: x_{t+1} = mu(x, a) + offset + scale * g(z), z = (x, a).

A *unit function* maps an input z to the outputs that share a kernel. There is one for all outputs (shared kernel, the
fast case) or one for each. Whatever knows how to make unit functions gives dynamics, and sets of them, with no more
code. Unit functions take one input, or many as columns: on a CPU that is what makes planning fast.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..kernels.features import Inputs
from ..types import Action, Dynamics, Index, State

__all__ = ["Frame", "GPDynamics", "GPSamples", "Stack", "UnitFunction", "blank", "join"]

UnitFunction = Callable[[Inputs], Float[Array, "k *C"]]

Tree = TypeVar("Tree")


def join(x: Float[Array, "dx *C"], a: Float[Array, "da *C"]) -> Inputs:
    """z = (x, a)."""
    return jnp.concatenate([x, a])


class Frame(eqx.Module):
    """Where a unit function lives: around which mean, in which units."""

    mean: Dynamics = eqx.field(static=True)
    """mu, the prior mean: zero, the identity, a simulator, any function."""
    offset: Float[Array, " dx"]
    scale: Float[Array, " dx"]

    def lift(self, x: State, a: Action, g: Float[Array, " dx"]) -> State:
        """From unit scale to the next state."""
        return self.mean(x, a) + self.offset.astype(x.dtype) + self.scale.astype(x.dtype) * g.astype(x.dtype)

    def drop(self, x: State, a: Action, y: State) -> Float[Array, " dx"]:
        """From the next state to unit scale."""
        return (y - self.mean(x, a) - self.offset) / self.scale


class GPDynamics(eqx.Module):
    """One dynamics: the nominal one, or a sample."""

    frame: Frame
    parts: tuple[UnitFunction, ...]

    def __call__(self, x: State, a: Action) -> State:
        return self.frame.lift(x, a, self._unit(join(x, a)))

    def many(self, x: Float[Array, "dx C"], a: Float[Array, "da C"]) -> Float[Array, "dx C"]:
        """The same at C states and actions, as columns."""
        return jax.vmap(self.frame.lift, in_axes=-1, out_axes=-1)(x, a, self._unit(join(x, a)))

    def _unit(self, z: Inputs) -> Float[Array, "dx *C"]:
        return jnp.concatenate([part(z) for part in self.parts])


class Stack(eqx.Module):
    """M unit functions that differ in some arrays, stacked along a first axis, and share the others."""

    own: Any
    shared: Any

    @classmethod
    def varying(cls, function: UnitFunction, where: Callable[[Any], Any], values: Any) -> "Stack":
        """M functions that are this one but for the parts `where`, whose stacked values are given."""
        own = eqx.tree_at(where, blank(function), values, is_leaf=lambda leaf: leaf is None)
        return cls(own, eqx.tree_at(where, function, replace_fn=blank))

    def member(self, m: Index) -> UnitFunction:
        return eqx.combine(jax.tree.map(lambda leaf: leaf[m], self.own), self.shared)

    def __len__(self) -> int:
        return jax.tree.leaves(self.own)[0].shape[0]


def blank(tree: Tree) -> Tree:
    """The same tree without its arrays."""
    return jax.tree.map(lambda _: None, tree)


class GPSamples(eqx.Module):
    """f_n^1 .. f_n^M."""

    frame: Frame
    parts: tuple[Stack, ...]

    def __len__(self) -> int:
        return len(self.parts[0])

    def member(self, m: Index) -> GPDynamics:
        return GPDynamics(self.frame, tuple(part.member(m) for part in self.parts))
