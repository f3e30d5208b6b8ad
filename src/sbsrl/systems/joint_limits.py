"""Costs of joints beyond their limits, as the real-world RL suite charges them on bodies of the control suite."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["joints_beyond"]


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
