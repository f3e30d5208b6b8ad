"""A class of policies, Pi of the paper: pi_theta(x) for parameters theta in a box."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .errors import UserError
from .types import Action, State

__all__ = ["Parameters", "PolicyClass"]

Parameters = Float[Array, " p"]


class PolicyClass(eqx.Module):
    """pi_theta(x), theta in a box. Its lattice is a finite class; between its points it is a parametric one."""

    function: Callable[[Parameters, State], Action] = eqx.field(static=True)
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    points: tuple[int, ...] = eqx.field(static=True)
    """How many values of each parameter the lattice has."""

    def __check_init__(self) -> None:
        sizes = {len(self.low), len(self.high), len(self.names), len(self.points)}
        if len(sizes) != 1 or not all(a < b for a, b in zip(self.low, self.high, strict=True)) or min(self.points) < 1:
            raise UserError(
                "a policy class needs limits, the lower one first, a name and a number of points for each parameter, "
                f"and got low={self.low}, high={self.high}, names={self.names}, points={self.points}."
            )

    def __call__(self, theta: Parameters, x: State) -> Action:
        return self.function(theta, x)

    def axes(self, points: tuple[int, ...] | None = None) -> list[Float[np.ndarray, " n"]]:
        """The values of each parameter."""
        sizes = points or self.points
        return [np.linspace(a, b, n) for a, b, n in zip(self.low, self.high, sizes, strict=True)]

    def lattice(self, points: tuple[int, ...] | None = None) -> Float[Array, "P p"]:
        """The finite class: all combinations of these values, the last parameter changing fastest."""
        grids = np.meshgrid(*self.axes(points), indexing="ij")
        return jnp.asarray(np.stack([grid.ravel() for grid in grids], axis=-1))
