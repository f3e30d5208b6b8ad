"""A small world of closed-loop problems in which everything can be computed again in numpy, in double precision.

x' = p x + q a + r + w, one triple (p, q, r) for the nominal dynamics and one for each sample.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.model import KnownModel, Signals
from sbsrl.policies import PolicyClass
from sbsrl.problem import Problem
from sbsrl.solve.expectation import Quadrature
from sbsrl.solve.policy_search import EvolutionSearch, ExactSearch

NOISE, HORIZON, START, REACH = 0.4, 3, 0.1, 4.0


class Line(eqx.Module):
    """x' = p x + q a + r."""

    coefficients: jax.Array

    def __call__(self, x, a):
        p, q, r = (c.astype(x.dtype) for c in self.coefficients)
        return p * x + q * a + r


class Curious(eqx.Module):
    """s(x, a) = 1 / (1 + exp(2 (a - c))): the less is pushed, the more is seen."""

    centre: jax.Array

    def __call__(self, x, a):
        return jax.nn.sigmoid(-2 * (a[0] - self.centre.astype(x.dtype)))


def reward(x, a, y):
    return jax.nn.sigmoid(2 * y[0])


def cost(x, a, y):
    return jax.nn.sigmoid(4 * (y[0] - 1))[None]


def both_costs(x, a, y):
    """The second one is the effort."""
    return jnp.stack([jax.nn.sigmoid(4 * (y[0] - 1)), a[0] ** 2])


ONE, TWO = Signals(reward, cost), Signals(reward, both_costs)


class Lines(eqx.Module):
    """M of them."""

    coefficients: jax.Array
    signals: Signals = eqx.field(static=True)

    def __len__(self):
        return len(self.coefficients)

    def member(self, m):
        return KnownModel(Line(self.coefficients[m]), self.signals)


def spring(theta, x):
    return jnp.tanh(theta[:1] + theta[1:] * x)


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


@dataclass(frozen=True)
class Small:
    """A random problem, and all there is to know about a policy."""

    policies: PolicyClass
    expectation: Quadrature
    nominal: np.ndarray
    samples: np.ndarray
    centre: float

    def problem(self, bound, threshold=0.0, **changes):
        """With as many costs as there are bounds: one or two."""
        bounds = np.atleast_1d(bound)
        signals = ONE if len(bounds) == 1 else TWO
        fields = {
            "objective": None,
            "nominal": KnownModel(Line(jnp.asarray(self.nominal)), signals),
            "samples": Lines(jnp.asarray(self.samples), signals),
            "bounds": jnp.asarray(bounds, jnp.float32),
            "aggregations": ("sum",) * len(bounds),
            "uncertainty": Curious(jnp.asarray(self.centre)),
            "threshold": jnp.asarray(threshold, jnp.float32),
            "steps": jnp.int32(HORIZON),
            "exploring": jnp.asarray(True),
            "starts": jnp.full((1, 1), START),
            "key": jax.random.key(0),
        }
        return Problem(**{**fields, **changes})

    def fine(self):
        """Exact search on a lattice of 21 x 17 of the same policies."""
        old = self.policies
        return ExactSearch(PolicyClass(old.function, old.low, old.high, old.names, (21, 17)), self.expectation)

    def evolution(self):
        """As many candidates as a run has by default."""
        return EvolutionSearch.create(self.policies, self.expectation, candidates=504, elites=24, iterations=4)

    def demands(self):
        """Bounds and thresholds: a safety that binds; with it an exploration that does, too; and neither."""
        worst = np.max([self.costs(theta) for theta in np.asarray(self.policies.lattice())], axis=1)
        bound = float(np.median(worst))
        greedy = self.fine().search(self.problem(bound)).evaluation
        return [(bound, 0.0), (bound, 1.2 * float(greedy.information)), (9.0, 0.0)]

    def nominal_returns(self, theta):
        """J_r and J_s."""
        gains = (lambda x, a, y: sigmoid(2 * y), lambda x, a, y: sigmoid(-2 * (a - self.centre)) + 0 * y)
        return [self.expected(self.nominal, theta, g) for g in gains]

    def costs(self, theta):
        """J_c on every sample."""
        return [self.expected(each, theta, lambda x, a, y: sigmoid(4 * (y - 1))) for each in self.samples]

    def second_costs(self, theta):
        """J_c of the second cost on every sample."""
        return [self.expected(each, theta, lambda x, a, y: a**2 + 0 * y) for each in self.samples]

    def expected(self, coefficients, theta, g):
        """By backward induction on a grid three times as fine and twice as wide, in double precision."""
        p, q, r = coefficients
        step = NOISE / 4.5
        x = START + step * np.arange(-90, 91)
        a = np.tanh(theta[0] + theta[1] * x)
        density = np.exp(-0.5 * ((x[None] - (p * x + q * a + r)[:, None]) / NOISE) ** 2)
        matrix = density / density.sum(axis=1, keepdims=True)
        value = np.zeros(len(x))
        for _ in range(HORIZON):
            value = np.sum(matrix * (g(x[:, None], a[:, None], x[None]) + value[None]), axis=1)
        return value[90]


POLICIES = PolicyClass(spring, (-1.0, -1.0), (1.5, 1.0), ("push", "spring"), (5, 4))
EXPECTATION = Quadrature.create(-REACH, REACH, START, NOISE, HORIZON)


@pytest.fixture(scope="session")
def small():
    """A function of a seed, with 13 samples; all problems have the same shapes and are compiled once."""

    def draw(seed):
        rng = np.random.default_rng(seed)
        centre = np.array([0.5, 0.8, 0.0])
        spread = np.array([0.1, 0.15, 0.15])
        return Small(
            policies=POLICIES,
            expectation=EXPECTATION,
            nominal=centre + spread * rng.normal(size=3) / 2,
            samples=centre + spread * rng.normal(size=(13, 3)),
            centre=float(rng.normal() / 3),
        )

    return draw
