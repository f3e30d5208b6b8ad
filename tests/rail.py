"""A user's system in plain numpy: a carriage on a rail, which should reach 1 and must not go beyond 1.2."""

import numpy as np

low, high = [-1.0], [1.0]
states = ["place"]
STEPS = 8


def reset(rng):
    return rng.uniform(-0.05, 0.05, 1)


def step(x, a, rng):
    return x + 0.2 * a + rng.normal(0, 0.002, 1)


def simulator(x, a):
    return x + 0.17 * a


def branching(x, a):
    """Nearly the same, but nothing that JAX can trace."""
    return x + 0.17 * a if a[0] > 0 else x + 0.16 * a


def near(x, a, y):
    return -abs(y[0] - 1)


def place(x, a, y):
    return y[0]


def effort(x, a, y):
    return a[0] ** 2


def hold(x):
    return np.array([-x[0]])


TASK = {"cost": place, "budget": 1.2, "aggregation": "statewise", "reward": near, "steps": STEPS}
"""What a user says of it."""
SMALL = {
    **TASK,
    "episodes": 2,
    "samples": 3,
    "candidates": 32,
    "elites": 4,
    "iterations": 2,
    "horizon": 6,
    "features": 32,
}
"""The same with little work."""
