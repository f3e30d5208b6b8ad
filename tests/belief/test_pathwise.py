"""Sampled functions: their law is the posterior, and each is a function."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import make_task
from sbsrl.belief import GPBelief
from sbsrl.problem import rollout
from sbsrl.task import Prior, Transitions

PRIOR = Prior(
    name="still",
    mean=lambda x, a: x,
    scale=(0.5, 2.0),
    lengthscales=(1.0, 1.0, 1.0),
    noise=0.1,
    bound=None,
    bound_source="",
    informative=True,
)
SCALE = np.array(PRIOR.scale)


def data(count, spread=1.0):
    rng = np.random.default_rng(0)
    x, a = spread * rng.normal(size=(count, 2)), rng.uniform(-1, 1, (count, 1))
    return Transitions(x, a, x + SCALE * 0.5 * np.sin(x.sum(1, keepdims=True)))


def evaluate(samples, x, a):
    """f^m(x, a) for all m."""
    x, a = jnp.asarray(x, jnp.float32), jnp.asarray(a, jnp.float32)
    return np.asarray(jax.lax.map(lambda m: samples.member(m)(x, a), jnp.arange(len(samples))))


POINTS = [(np.array([0.1, 0.2]), np.array([0.0])), (np.array([0.6, -0.3]), np.array([0.4]))]


def posterior(transitions):
    """Joint mean (2 points x 2 outputs) and covariance over the points, in units of scale."""
    z = np.concatenate([transitions.states, transitions.actions], axis=1)
    q = np.stack([np.concatenate(point) for point in POINTS])
    kernel = lambda u, v: np.exp(-0.5 * ((u[:, None] - v[None]) ** 2).sum(-1))  # noqa: E731
    gram = kernel(z, z) + PRIOR.noise**2 * np.eye(len(z))
    k = kernel(q, z)
    residual = (transitions.next_states - transitions.states) / SCALE
    return k @ np.linalg.solve(gram, residual), kernel(q, q) - k @ np.linalg.solve(gram, k.T)


@pytest.mark.parametrize("count", [0, 6])
def test_moments_are_those_of_the_posterior(count, getkey):
    """6000 samples; tolerances are five standard errors of a mean (sd <= 1) and of a covariance."""
    belief = GPBelief.create(PRIOR, 20, 64)
    if count:
        belief = belief.update(data(count))
    samples = belief.samples(getkey(), 6000)
    expected_mean, expected_covariance = posterior(data(count))
    values = np.stack([(evaluate(samples, x, a) - x) / SCALE for x, a in POINTS], axis=1)  # sample, point, output
    np.testing.assert_allclose(values.mean(0), expected_mean, atol=5 / np.sqrt(6000))
    for output in range(2):
        covariance = np.cov(values[:, :, output].T)
        np.testing.assert_allclose(covariance, expected_covariance, atol=5 * np.sqrt(2 / 6000))


def test_outputs_and_samples_are_independent(getkey):
    samples = GPBelief.create(PRIOR, 20, 64).update(data(6)).samples(getkey(), 6000)
    x, a = POINTS[1]
    values = (evaluate(samples, x, a) - x) / SCALE
    assert abs(np.corrcoef(values.T)[0, 1]) < 5 / np.sqrt(6000)
    assert abs(np.corrcoef(values[::2, 0], values[1::2, 0])[0, 1]) < 5 / np.sqrt(3000)


def test_a_sample_is_a_function(getkey):
    """The same input has the same output, alone or in a batch, whatever was asked before."""
    f = GPBelief.create(PRIOR, 20, 64).update(data(6)).samples(getkey(), 2).member(jnp.int32(1))
    x, a = (jnp.asarray(part, jnp.float32) for part in POINTS[0])
    alone = f(x, a)
    batch = jax.vmap(f)(jnp.stack([x + 1, x, x - 1]), jnp.stack([a, a, a]))
    np.testing.assert_allclose(batch[1], alone, rtol=1e-5)
    assert np.array_equal(f(x, a), alone)


def test_samples_pass_through_the_data_up_to_noise(getkey):
    transitions = data(6)
    samples = GPBelief.create(PRIOR, 20, 64).update(transitions).samples(getkey(), 200)
    for x, a, y in zip(*transitions, strict=True):
        error = (evaluate(samples, x, a) - y) / SCALE
        assert np.sqrt(np.mean(error**2)) < 2 * PRIOR.noise


def swings(episodes):
    """Pendulum episodes under slowly varying random torques."""
    task = make_task("pendulum")
    rng = np.random.default_rng(3)
    step = jax.jit(task.dynamics)
    parts = []
    for _ in range(episodes):
        x, a = task.reset(jax.random.key(0)), 0.0
        for _ in range(task.horizon):
            a = np.clip(0.8 * a + 0.6 * rng.normal(), -1, 1)
            y = step(x, jnp.array([a]))
            parts.append((np.asarray(x), np.array([a]), np.asarray(y)))
            x = y
    return task.prior, Transitions(*(np.stack(part) for part in zip(*parts, strict=True)))


def in_double(f):
    return jax.tree.map(lambda v: v.astype(jnp.float64) if eqx.is_inexact_array(v) else v, f)


def test_planning_in_single_precision_loses_less_than_the_noise_a_step(getkey):
    """450 points of the pendulum; root mean square error, against the very same functions in double precision."""
    prior, transitions = swings(9)
    samples = GPBelief.create(prior, 450, 128).update(transitions).samples(getkey(), 10)
    x, a = jnp.asarray(transitions.states[::9]), jnp.asarray(transitions.actions[::9])
    for m in range(10):
        f = samples.member(jnp.int32(m))
        got = jax.vmap(f)(x.astype(jnp.float32), a.astype(jnp.float32))
        error = (np.asarray(got) - np.asarray(jax.vmap(in_double(f))(x, a))) / np.array(prior.scale)
        assert np.sqrt(np.mean(error**2)) < prior.noise


def test_planning_in_single_precision_moves_a_plan_by_less_than_a_tenth_of_the_tightening(getkey):
    """The fastest turn along 20 steps from rest, of 10 samples and 20 action sequences; the tightening is 0.1."""
    prior, transitions = swings(9)
    samples = GPBelief.create(prior, 450, 128).update(transitions).samples(getkey(), 10)
    plans = jax.random.uniform(getkey(), (20, 20, 1), jnp.float64, -1, 1)
    start = jnp.array([-1.0, 0.0, 0.0])

    def fastest(f, dtype):
        turns = jax.vmap(lambda a: rollout(f, start.astype(dtype), a)[:, 2])(plans.astype(dtype))
        return np.abs(np.asarray(turns)).max(axis=1)

    for m in range(10):
        f = samples.member(jnp.int32(m))
        np.testing.assert_allclose(fastest(f, jnp.float32), fastest(in_double(f), jnp.float64), atol=0.01)


def test_gradients_are_finite_before_any_data(getkey):
    f = GPBelief.create(PRIOR, 20, 64).samples(getkey(), 1).member(jnp.int32(0))
    x, a = (jnp.asarray(part, jnp.float32) for part in POINTS[0])
    assert np.all(np.isfinite(jax.jacfwd(f)(x, a)))
