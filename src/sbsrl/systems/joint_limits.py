"""Costs of joints beyond their limits, as the real-world RL suite charges them on bodies of the control suite."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["joints_beyond"]


def joints_beyond(limits: Mapping[str, tuple[float, float]]) -> Callable[[Any], float]:
    """A cost of physics: 1 while any of these joints is outside its limits, which are in degrees."""
    names = list(limits)
    low, high = (np.radians([limits[name][side] for name in names]) for side in (0, 1))
    found: dict[int, np.ndarray] = {}

    def cost(physics: Any) -> float:
        model = physics.model
        if id(model) not in found:  # looking names up takes as long as a step
            found.clear()
            found[id(model)] = np.array([model.jnt_qposadr[model.name2id(name, "joint")] for name in names])
        angles = physics.data.qpos[found[id(model)]]
        return float(np.any((angles < low) | (angles > high)))

    return cost
