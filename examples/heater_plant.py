"""A heater in a room, in plain numpy: the machine of two examples. Its core is warmed, and warms the room."""

import numpy as np

low, high = [0.0], [1.0]
states = ["core", "room"]


def reset(rng):
    """A cold morning."""
    return np.array([15.0, 15.0]) + rng.uniform(-1, 1, 2)


def step(x, a, rng):
    """A minute later, give or take two hundredths of a degree."""
    core, room = x
    flow = core - room
    after = np.array([core + (12 * a[0] - flow) / 8, room + (flow / 2 - (room - 10) / 10) / 8])
    return after + rng.normal(0, 0.02, 2)
