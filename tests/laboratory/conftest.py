"""A world that is learned within 150 episodes, and the same physics written again in numpy, in double precision.

Compiling takes most of the time, so one world serves all tests of this folder.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.laboratory.world import World
from sbsrl.tasks.ledge import Sled

NOISE, SIZE, HORIZON = 0.3, 0.15, 3


@pytest.fixture(scope="session")
def world():
    """The larger epsilon, the earlier it ends."""
    return World("motor", epsilon=2.0, episodes=400)


class Returns(NamedTuple):
    cost: float
    reward: float
    action: float
    """E sum |a_t|: on this ground all uncertainty is a multiple of it."""


class Physics:
    """The sled on any ground, on a grid three times as fine as that of the package and nearly twice as wide."""

    nodes = 0.06 * np.arange(-90, 91)
    cost = 1 / (1 + np.exp(-8 * (nodes - 1)))
    reward = 1 / (1 + np.exp(-2 * nodes))

    @staticmethod
    def lattice():
        pushes, springs = np.linspace(-1, 1.5, 11), np.linspace(-1, 1, 9)
        return [(p, s) for p in pushes for s in springs]

    def act(self, policy):
        push, spring = policy
        return np.tanh(push + spring * self.nodes)

    def transitions(self, mean):
        density = np.exp(-0.5 * ((self.nodes[None, :] - mean[:, None]) / NOISE) ** 2)
        return density / density.sum(axis=1, keepdims=True)

    def returns(self, policy, unknown):
        """J_c, J_r and E sum |a_t| of a policy if x_{t+1} = 0.5 x + 0.9 a + unknown(x, a) + w."""
        a = self.act(policy)
        matrix = self.transitions(0.5 * self.nodes + 0.9 * a + unknown(self.nodes, a))
        now = (self.nodes == 0).astype(float)
        cost = reward = action = 0.0
        for _ in range(HORIZON):
            action += now @ np.abs(a)
            now = now @ matrix
            cost += now @ self.cost
            reward += now @ self.reward
        return Returns(cost, reward, action)


@pytest.fixture(scope="session")
def physics():
    return Physics()


@pytest.fixture(scope="session")
def sled_of():
    def make(world, *weights):
        return Sled(world.kernel, jnp.asarray(weights))

    return make
