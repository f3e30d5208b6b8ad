"""One plan for a whole episode: several beginnings, and what an episode of it costs, against numpy."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.model import KnownModel, Signals
from sbsrl.problem import Penalties, Problem
from sbsrl.solve.episode_plan import EpisodePlanner, Remembered, episode_costs
from sbsrl.solve.icem import ICEM
from sbsrl.solve.protocol import Solver, Trying
from sbsrl.solve.tracking import Regulator, Tracked, Tracking

T = 8
REGULATOR = Regulator((0.2,), (-1.0,), (1.0,))
PLANNER = ICEM(
    low=(-1.0,),
    high=(1.0,),
    horizon=T,
    candidates=64,
    elites=8,
    iterations=3,
    penalties=Penalties(1000.0, 10.0),
    receding=False,
    scoring=Tracked(REGULATOR),
)
SOLVER = EpisodePlanner(PLANNER, REGULATOR, scouts=3, glance=4)
SIGNALS = Signals(lambda x, a, y: y[0], lambda x, a, y: jnp.stack([y[0], a[0] ** 2]))


class Drift(eqx.Module):
    """x' = x + (a + push) / 4."""

    push: jax.Array

    def __call__(self, x, a):
        return x + (a + self.push.astype(x.dtype)) / 4


class Drifts(eqx.Module):
    pushes: jax.Array

    def __len__(self):
        return len(self.pushes)

    def member(self, m):
        return KnownModel(Drift(self.pushes[m]), SIGNALS)


PUSHES = np.linspace(-0.3, 0.3, 7)


def problem(bound=1.0, starts=((0.0,),)):
    """The farther the better, but on no sample beyond the bound; the second cost is the effort of the episode."""
    return Problem(
        objective=None,
        nominal=KnownModel(Drift(jnp.zeros(())), SIGNALS),
        samples=Drifts(jnp.asarray(PUSHES)),
        bounds=jnp.asarray([bound, 100.0], jnp.float32),
        aggregations=("statewise", "sum"),
        uncertainty=lambda x, a: jnp.abs(a[0]),
        threshold=jnp.zeros((), jnp.float32),
        steps=jnp.int32(T),
        exploring=jnp.array(False),
        starts=jnp.asarray(starts),
        key=jax.random.key(0),
    )


@pytest.fixture(scope="module")
def solved():
    return SOLVER.solve(problem(), SOLVER.init(jax.random.key(0)), jax.random.key(1))


def by_hand(policy, pushes, starts):
    """Both costs of an episode without noise, one system after the other."""
    every = []
    for push, start in zip(pushes, starts, strict=True):
        x, state, farthest, effort = np.array(start), policy.init(), -np.inf, 0.0
        for _ in range(T):
            a, state, _ = policy.act(jnp.asarray(x), state, jax.random.key(0))
            x = x + (np.asarray(a, float) + push) / 4
            farthest, effort = max(farthest, x[0]), effort + float(a[0]) ** 2
        every.append((farthest, effort))
    return np.array(every)


def test_the_plan_keeps_the_bound_on_all_samples_followed_with_feedback(solved):
    solution, _ = solved
    assert isinstance(solution.policy, Tracking)
    assert float(solution.evaluation.violation) == 0
    costs = by_hand(solution.policy, PUSHES, [[0.0]] * len(PUSHES))
    assert costs[:, 0].max() <= 1 + 1e-5
    assert costs[:, 0].max() > 0.9  # and goes nearly as far as it may


def test_costs_are_those_of_an_episode_on_each_sample_from_its_own_start(solved):
    """Without noise to 1e-5."""
    policy, starts = solved[0].policy, [[s] for s in np.linspace(-0.2, 0.2, len(PUSHES))]
    found = SOLVER.costs(problem(starts=starts), policy, jnp.zeros(1), jax.random.key(0))
    np.testing.assert_allclose(found, by_hand(policy, PUSHES, starts), rtol=1e-5, atol=1e-5)


def test_the_process_noise_has_the_deviation_that_was_said(solved):
    """Without feedback the place at the end has a variance of T s^2: 4000 episodes, to 4 standard errors."""
    blind = eqx.tree_at(lambda p: (p.gains, p.actions), solved[0].policy, replace_fn=jnp.zeros_like)
    last = Signals(lambda x, a, y: y[0], lambda x, a, y: y)
    many = replace(problem(), samples=Same(4000, last), starts=jnp.zeros((4000, 1)), aggregations=("sum",))
    found = np.asarray(episode_costs(many, blind, jnp.asarray([0.1]), T, jax.random.key(2)))[:, 0]
    expected = 0.1**2 * np.sum(np.arange(1, T + 1) ** 2)  # the sum of a random walk
    assert np.var(found) == pytest.approx(expected, rel=4 * np.sqrt(2 / 4000))
    assert np.mean(found) == pytest.approx(0, abs=4 * np.sqrt(expected / 4000))


class Same(eqx.Module):
    """The nominal system, many times."""

    count: int = eqx.field(static=True)
    signals: Signals = eqx.field(static=True)

    def __len__(self):
        return self.count

    def member(self, m):
        return KnownModel(Drift(jnp.zeros(())), self.signals)


def test_the_same_key_gives_the_same_policy_bit_for_bit(solved):
    again, memory = SOLVER.solve(problem(), SOLVER.init(jax.random.key(0)), jax.random.key(1))
    for one, other in zip(jax.tree.leaves(solved), jax.tree.leaves((again, memory)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_next_search_begins_with_what_was_found(solved):
    """It is at least as good for the same problem, whatever else it tries."""
    solution, memory = solved
    assert isinstance(memory, Remembered)
    assert bool(memory.warm)
    np.testing.assert_array_equal(memory.elites[0], solution.policy.actions)
    better, _ = SOLVER.solve(problem(), memory, jax.random.key(9))
    assert float(better.evaluation.value) >= float(solution.evaluation.value)


def test_its_state_keeps_its_shapes(solved):
    before, after = SOLVER.init(jax.random.key(0)), solved[1]
    assert jax.tree.map(jnp.shape, before) == jax.tree.map(jnp.shape, after)
    assert isinstance(SOLVER, Solver)
    assert isinstance(SOLVER, Trying)
