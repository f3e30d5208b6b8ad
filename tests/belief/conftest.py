"""Data that several tests learn from: long smooth trajectories, as in planning."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief import GPBelief
from sbsrl.task import Transitions
from sbsrl.tasks.pendulum import SIMULATOR, pendulum


@pytest.fixture(scope="session")
def swings():
    """Nine pendulum episodes of 50 steps under slowly varying random torques."""
    task = pendulum()
    rng = np.random.default_rng(3)
    step = jax.jit(task.dynamics)
    episodes = []
    for _ in range(9):
        x, a = task.reset(jax.random.key(0)), 0.0
        parts = []
        for _ in range(task.horizon):
            a = np.clip(0.8 * a + 0.6 * rng.normal(), -1, 1)
            y = step(x, jnp.array([a]))
            parts.append((np.asarray(x), np.array([a]), np.asarray(y)))
            x = y
        episodes.append(Transitions(*(np.stack(part) for part in zip(*parts, strict=True))))
    return episodes


@pytest.fixture(scope="session")
def swung(swings):
    """What is believed after these 450 points, in nine updates; sigma_w = 2.5e-3."""
    belief = GPBelief.create(SIMULATOR, 4, 450, 9)
    for episode in swings:
        belief = belief.update(episode)
    return belief
