"""Plans that are followed with feedback: the regulator against its definition, and what following one does."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.model import KnownModel, Signals
from sbsrl.problem import Only, Penalties, Problem
from sbsrl.solve.scoring import OpenLoop, Scoring
from sbsrl.solve.tracking import Plans, Regulator, Tracked, Tracking, tracked_rollouts

A = np.array([[1.0, 0.1], [0.3, 1.1]])
B = np.array([[0.0], [0.2]])
T = 12
SIGNALS = Signals(lambda x, a, y: -jnp.sum(y**2), lambda x, a, y: jnp.abs(y[1:]))
REGULATOR = Regulator((0.5, 0.2), (-1.0,), (3.0,), effort=2.0)


class Linear(eqx.Module):
    """x' = A x + B a + push."""

    push: jax.Array

    def __call__(self, x, a):
        return jnp.asarray(A, x.dtype) @ x + jnp.asarray(B, x.dtype) @ a + self.push.astype(x.dtype)


def model(push=0.0):
    return KnownModel(Linear(jnp.asarray([0.0, push])), SIGNALS)


def problem(sample_push=0.0, bound=10.0):
    return Problem(
        objective=None,
        nominal=model(),
        samples=Only(model(sample_push)),
        bounds=jnp.full(1, bound, jnp.float32),
        aggregations=("statewise",),
        uncertainty=lambda x, a: jnp.abs(a[0]),
        threshold=jnp.zeros((), jnp.float32),
        steps=jnp.int32(T),
        exploring=jnp.array(False),
        starts=jnp.array([[0.1, 0.0]]),
        key=jax.random.key(0),
    )


def some_actions(count=3):
    return jnp.asarray(np.random.default_rng(0).uniform(0.0, 1.0, (T, 1, count)), jnp.float32)


def policy(**changes):
    return Tracking.of(problem(**changes), problem().starts[0], some_actions()[:, :, 0], REGULATOR)


def best_corrections(dx):
    """The corrections that minimise the regulator's objective from a deviation dx, by least squares, in double."""
    q, r = 1 / np.array(REGULATOR.size), np.sqrt(2.0) / 2.0  # half the range of actions is 2
    rows, right = [], []
    powers = [np.linalg.matrix_power(A, t) for t in range(T + 1)]
    for t in range(1, T + 1):
        effect = np.zeros((2, T))
        for s in range(t):
            effect[:, s] = (powers[t - 1 - s] @ B)[:, 0]
        rows.append(q[:, None] * effect)
        right.append(-q * (powers[t] @ dx))
    rows.append(r * np.eye(T))
    right.append(np.zeros(T))
    return np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)[0]


@pytest.mark.parametrize("dx", [[0.1, 0.0], [0.0, -0.05], [0.03, 0.04]])
def test_the_first_correction_is_the_one_that_minimises_the_sum_of_squares(dx):
    """To 1e-4: states and gains are in single precision."""
    gain = np.asarray(policy().gains[0], float)
    np.testing.assert_allclose(gain @ dx, best_corrections(np.array(dx))[:1], rtol=1e-4)


def test_where_all_goes_as_planned_the_plan_is_what_is_done():
    followed, x = policy(), jnp.asarray([0.1, 0.0])
    state = followed.init()
    for t in range(T):
        a, state, _ = followed.act(x, state, jax.random.key(0))
        np.testing.assert_allclose(a, followed.actions[t], atol=1e-5)
        x = model()(x, a)


class Doubling(eqx.Module):
    """x' = 4 x (1 - x) in both states: it doubles what a rounding error makes of a trajectory in every step."""

    def __call__(self, x, a):
        return 4 * x * (1 - x) + 0.0 * a


def test_a_policy_expects_the_very_trajectory_that_its_plan_was_scored_by():
    """30 steps, which amplify rounding by 1e9: as in numpy, in double precision; to 1e-5."""
    steps, start, actions = 30, np.array([0.1, 0.3]), np.zeros((30, 1), np.float32)
    chaotic = KnownModel(Doubling(), SIGNALS)
    unstable = dataclasses.replace(
        problem(), nominal=chaotic, samples=Only(chaotic), steps=jnp.int32(steps), starts=jnp.asarray(start)[None]
    )
    states = [start.astype(np.float32).astype(float)]
    for _ in range(steps):
        states.append(4 * states[-1] * (1 - states[-1]))
    pool = jnp.asarray(np.stack([actions, actions]))
    x = jnp.asarray(start, jnp.float32)
    scores = Tracked(REGULATOR).score(unstable, Penalties(1000.0, 10.0), x, pool, jnp.ones(2, bool))
    np.testing.assert_allclose(scores.nominal, -np.sum(np.square(states[1:])), rtol=1e-5)
    followed = Tracking.of(unstable, unstable.starts[0], jnp.asarray(actions), REGULATOR)
    np.testing.assert_allclose(followed.states, states[:-1], atol=1e-5)


def test_corrections_stay_within_the_limits():
    a, _, _ = policy().act(jnp.asarray([100.0, 100.0]), policy().init(), jax.random.key(0))
    assert -1.0 <= float(a[0]) <= 3.0
    assert float(a[0]) in {-1.0, 3.0}


def test_an_episode_that_goes_on_longer_keeps_the_last_gain():
    followed = policy()
    a, state, _ = followed.act(jnp.asarray([0.1, 0.0]), jnp.int32(T + 5), jax.random.key(0))
    last, _, _ = followed.act(jnp.asarray([0.1, 0.0]), jnp.int32(T - 1), jax.random.key(0))
    np.testing.assert_array_equal(a, last)
    assert int(state) == T + 6


def play(followed, system, steps=T):
    x, state, states = jnp.asarray([0.1, 0.0]), followed.init(), []
    for _ in range(steps):
        a, state, _ = followed.act(x, state, jax.random.key(0))
        x = system(x, a)
        states.append(np.asarray(x))
    return np.array(states)


def test_candidates_are_scored_by_what_the_policy_does_on_a_sample_that_was_not_expected():
    """Played step by step, in double precision; to 1e-4."""
    asked, actions = problem(sample_push=0.05, bound=0.1), some_actions()
    scores = Tracked(REGULATOR).score(
        asked,
        Penalties(1000.0, 10.0),
        asked.starts[0].astype(jnp.float32),
        jnp.moveaxis(actions, -1, 0),
        jnp.ones(3, bool),
    )
    found = scores.hinge(jnp.arange(3), jnp.int32(0)).beyond
    expected = []
    for i in range(3):
        followed = Tracking.of(asked, asked.starts[0], actions[:, :, i], REGULATOR)
        expected.append(max(np.abs(play(followed, model(0.05))[:, 1]).max() - 0.1, 0))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert isinstance(Tracked(REGULATOR), Scoring)


def test_value_and_information_are_those_of_the_plan():
    asked, pool = problem(), jnp.moveaxis(some_actions(), -1, 0)
    x, weights, alive = asked.starts[0].astype(jnp.float32), Penalties(1000.0, 10.0), jnp.ones(3, bool)
    ours, theirs = (each.score(asked, weights, x, pool, alive) for each in (Tracked(REGULATOR), OpenLoop()))
    np.testing.assert_allclose(ours.nominal, theirs.nominal, rtol=1e-6)  # theirs are in single precision
    np.testing.assert_array_equal(ours.gather(jnp.arange(3)), theirs.gather(jnp.arange(3)))


def test_feedback_corrects_what_open_loop_would_not():
    """An unstable system with a constant push: the deviation with feedback is less than a tenth of that without."""
    followed = policy()
    blind = eqx.tree_at(lambda p: p.gains, followed, jnp.zeros_like(followed.gains))
    expected = play(followed, model())
    apart, lost = (np.abs(play(each, model(0.05)) - expected)[-1].max() for each in (followed, blind))
    assert apart < lost / 10


def test_many_rollouts_are_those_of_one_after_the_other():
    asked, actions = problem(), some_actions()
    x = asked.starts[0].astype(jnp.float32)
    plans = [Tracking.of(asked, x, actions[:, :, i], REGULATOR) for i in range(3)]
    together = tracked_rollouts(
        model(0.05),
        x,
        _plans(plans),
        REGULATOR,
    )[0]
    for i, each in enumerate(plans):
        np.testing.assert_allclose(together[1:, :, i], play(each, model(0.05)), rtol=1e-4, atol=1e-5)


def _plans(policies):
    def stacked(part):
        return jnp.stack([part(each) for each in policies], axis=-1)

    states = stacked(lambda p: jnp.concatenate([p.states, p.states[-1:]]))
    return Plans(stacked(lambda p: p.actions), states, stacked(lambda p: p.gains))
