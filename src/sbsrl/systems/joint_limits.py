"""Costs of joints beyond their limits, as the real-world RL suite charges them on bodies of the control suite."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = ["excesses", "joints_beyond"]


def joints_beyond(limits: Mapping[str, tuple[float, float]]) -> Callable[[Any], float]:
    """A cost of physics: 1 while any of these joints is outside its limits, which are in degrees."""
    found: dict[int, tuple[slice, np.ndarray, np.ndarray]] = {}

    def cost(physics: Any) -> float:
        model = physics.model
        if id(model) not in found:  # looking names up takes as long as a step
            found.clear()
            found[id(model)] = _placed(model, limits)
        part, middle, half = found[id(model)]
        return float((np.abs(physics.data.qpos[part] - middle) > half).any())

    return cost


def _placed(model: Any, limits: Mapping[str, tuple[float, float]]) -> tuple[slice, np.ndarray, np.ndarray]:
    """Where the joints are in the vector of places, the middle of their limits, and half the way between them.

    Joints among them that are not limited may go anywhere.
    """
    places = {name: int(model.jnt_qposadr[model.name2id(name, "joint")]) for name in limits}
    first, last = min(places.values()), max(places.values())
    middle, half = np.zeros(last + 1 - first), np.full(last + 1 - first, np.inf)
    for name in limits:
        low, high = np.radians(limits[name])
        middle[places[name] - first], half[places[name] - first] = (low + high) / 2, (high - low) / 2
    return slice(first, last + 1), middle, half


NEAREST, SHARP = 3, np.radians(5.0)
"""Joints that are looked at, and radians that make a difference."""


def excesses(
    limits: Sequence[tuple[float, float]], seconds: float
) -> Callable[[Float[Array, " j2"]], Float[Array, "3"]]:
    """What decides whether a joint will be beyond: how far those are that come nearest to their limits.

    The function is of angles, then rates, of joints in the order of these limits, which are in degrees; a joint is
    looked at where it will be after a step of so many seconds at its rate.
    """
    low, high = np.radians(np.array(limits, np.float32)).T
    middle, half = (low + high) / 2, (high - low) / 2

    def found(seen: Float[Array, " j2"]) -> Float[Array, "3"]:
        angles, rates = seen[: len(limits)], seen[len(limits) :]
        beyond = jnp.abs(angles + np.float32(seconds) * rates - middle.astype(seen.dtype)) - half.astype(seen.dtype)
        return jax.lax.top_k(beyond, NEAREST)[0] / np.float32(SHARP)

    return found
