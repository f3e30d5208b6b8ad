"""Data that several tests learn from: long smooth trajectories, as in planning."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.gp import GPBelief
from sbsrl.kernels import SquaredExponential
from sbsrl.prior import GPPrior
from sbsrl.transitions import Transitions

STEPS, DT = 50, 0.05


def pendulum(x, a, gravity=9.81, torque=2.0):
    """A pendulum (cos th, sin th, omega), two substeps of Euler's rule."""
    c, s, omega = x
    for _ in range(2):
        omega = jnp.clip(omega + DT * (1.5 * gravity * s + 3.0 * torque * a[0]), -8.0, 8.0)
        turn = DT * omega
        c, s = c * jnp.cos(turn) - s * jnp.sin(turn), s * jnp.cos(turn) + c * jnp.sin(turn)
    return jnp.stack([c, s, omega])


def careless(x, a):
    """Gravity 25 % too small, torque 30 % too large."""
    return pendulum(x, a, 0.75 * 9.81, 2.6)


@pytest.fixture(scope="session")
def swing_prior():
    return GPPrior(
        mean=careless,
        scale=(0.03, 0.03, 0.4),
        kernel=SquaredExponential((1.5, 1.5, 4.5, 2.25)),
        noise=2.5e-3,
        bound=20.0,
        bound_source="assumed",
    )


@pytest.fixture(scope="session")
def swings():
    """Nine pendulum episodes of 50 steps under slowly varying random torques."""
    rng = np.random.default_rng(3)
    step = jax.jit(pendulum)
    episodes = []
    for _ in range(9):
        x, a = jnp.array([-1.0, 0.0, 0.0]), 0.0
        parts = []
        for _ in range(STEPS):
            a = np.clip(0.8 * a + 0.6 * rng.normal(), -1, 1)
            y = step(x, jnp.array([a]))
            parts.append((np.asarray(x), np.array([a]), np.asarray(y)))
            x = y
        moved = (np.stack(part) for part in zip(*parts, strict=True))
        episodes.append(Transitions(*moved, np.zeros(STEPS), np.zeros((STEPS, 1)), np.zeros(STEPS, bool)))
    return episodes


@pytest.fixture(scope="session")
def swung(swings, swing_prior):
    """What is believed after these 450 points, in nine updates; sigma_w = 2.5e-3."""
    belief = GPBelief.create(swing_prior, 4, 450, 9)
    for episode in swings:
        belief = belief.update(episode, jax.random.key(0))
    return belief
