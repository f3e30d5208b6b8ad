"""Models made of functions of unit scale: x_{t+1} = mu(x, a) + offset + scale * g(z), z = (x, a).

A *unit function* maps an input z to the outputs that share a kernel. There is one for all outputs (shared kernel, the
fast case) or one for each. Whatever knows how to make unit functions gives models, and sets of them, with no more
code. Unit functions take one input, or many as columns: on a CPU that is what makes planning fast.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import UserError
from ..kernels.features import Inputs
from ..model import Signals
from ..types import Action, Dynamics, Index, PRNGKey, Scalar, State

__all__ = ["Frame", "GPSamples", "GPSystem", "Stack", "UnitFunction", "blank", "join"]

UnitFunction = Callable[[Inputs], Float[Array, "k *C"]]

Tree = TypeVar("Tree")


def join(x: Float[Array, "dx *C"], a: Float[Array, "da *C"]) -> Inputs:
    """z = (x, a)."""
    return jnp.concatenate([x, a])


class Frame(eqx.Module):
    """The mean around which unit functions are added, and their units."""

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


class GPSystem(eqx.Module):
    """One model of the system, nominal or sampled: a dynamics that is a function, with known reward and costs."""

    frame: Frame
    parts: tuple[UnitFunction, ...]
    signals: Signals | None = eqx.field(static=True, default=None)
    """Reward and costs; None where they are not known, which refuses to be asked for them."""

    @property
    def stochastic(self) -> bool:
        return False

    def __call__(self, x: State, a: Action) -> State:
        return self.frame.lift(x, a, self._unit(join(x, a)))

    def many(self, x: Float[Array, "dx C"], a: Float[Array, "da C"]) -> Float[Array, "dx C"]:
        """The same at C states and actions, as columns."""
        return jax.vmap(self.frame.lift, in_axes=-1, out_axes=-1)(x, a, self._unit(join(x, a)))

    def draw(self, x: State, a: Action, key: PRNGKey) -> State:
        """The next state; it is not random."""
        return self(x, a)

    def reward(self, x: State, a: Action, y: State) -> Scalar:
        return self._known_signals.reward(x, a, y)

    def costs(self, x: State, a: Action, y: State) -> Float[Array, " k"]:
        return self._known_signals.costs(x, a, y)

    @property
    def _known_signals(self) -> Signals:
        if self.signals is None:
            raise UserError(
                "reward and costs are not known, and a Gaussian process does not learn them; give the belief the "
                "signals of the task, or use another belief."
            )
        return self.signals

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
    signals: Signals | None = eqx.field(static=True, default=None)

    def __len__(self) -> int:
        return len(self.parts[0])

    def member(self, m: Index) -> GPSystem:
        """f_n^m."""
        return GPSystem(self.frame, tuple(part.member(m) for part in self.parts), self.signals)
