"""Sampled functions: their law is the posterior, and each is a function."""

import dataclasses
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.centres import SHARE, Centres
from sbsrl.belief.gp import GPBelief
from sbsrl.belief.pathwise import WeightedFeatures, draw_posterior
from sbsrl.belief.posterior import Posterior
from sbsrl.errors import UserError
from sbsrl.kernels import FiniteRank, Linear, Matern, SquaredExponential
from sbsrl.prior import GPPrior
from sbsrl.transitions import Transitions

MANY = 4000
ROOM = 64
NOISE = 0.4
RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(ROOM, 3))
"""The first six are data; the others stand in the padding."""
TARGETS = 0.5 * np.sin(INPUTS.sum(1, keepdims=True) + np.array([0.0, 1.0])) * (np.arange(ROOM) < 6)[:, None]
QUERIES = np.array([[0.1, 0.2, 0.0], [0.6, -0.3, 0.4]]).astype(np.float32)


def some(z):
    """Four features, of numpy and of jax arrays."""
    return 0.5 * (jnp if isinstance(z, jax.Array) else np).stack([1 + 0 * z[0], z[0], z[1] * z[2], z[1] ** 2])


def distance(u, v):
    return np.sqrt(((u[:, None] - v[None]) ** 2).sum(-1))


def matern(u, v):
    t = np.sqrt(3) * distance(u, v)
    return (1 + t) * np.exp(-t)


ONES = (1.0, 1.0, 1.0)
KERNELS = {
    "squared exponential": (SquaredExponential(ONES), lambda u, v: np.exp(-0.5 * distance(u, v) ** 2)),
    "matern 3/2": (Matern(ONES, nu=1.5), matern),
    "sum": (
        0.5 * SquaredExponential(ONES) + Linear((2.0, 2.0, 2.0)),
        lambda u, v: 0.5 * np.exp(-0.5 * distance(u, v) ** 2) + u @ v.T / 4,
    ),
    "finite rank": (FiniteRank(some, 4), lambda u, v: some(u.T).T @ some(v.T)),
}


def textbook(kernel, count, outputs, noise=NOISE):
    """Joint mean [2 queries, outputs] and covariance of both queries."""
    z, q = INPUTS[:count], QUERIES.astype(float)
    gram, k = kernel(z, z) + noise**2 * np.eye(count), kernel(q, z)
    targets = TARGETS[:count, :outputs]
    return k @ np.linalg.solve(gram, targets), kernel(q, q) - k @ np.linalg.solve(gram, k.T)


@cache
def posterior(name, count):
    kernel, _ = KERNELS[name]
    targets = jnp.asarray(TARGETS * (np.arange(ROOM) < count)[:, None])
    return Posterior.given(kernel, jnp.asarray(NOISE), jnp.asarray(INPUTS), targets, jnp.int32(count))


@cache
def drawn(name, count):
    """4000 samples."""
    known = posterior(name, count)
    centres = Centres.empty(ROOM, 3).grow(known.kernel, known.inputs, SHARE * known.noise**2, known.valid)
    return draw_posterior(jax.random.key(count), MANY, known, centres, 32, "paired")


@eqx.filter_jit
def evaluate(samples, z):
    """f^m(z) for all m and all columns z: [sample, output, column]."""
    return jax.vmap(lambda m: samples.member(m)(z))(jnp.arange(len(samples)))


def check_moments(values, mean, covariance):
    """Values [sample, point] against their law: within five standard errors, those of the covariance estimated."""
    values = np.asarray(values, float)
    errors = 5 * np.sqrt(np.diag(covariance) / len(values))
    assert np.all(np.abs(values.mean(0) - mean) <= errors)
    products = (values - mean)[:, :, None] * (values - mean)[:, None, :]
    errors = 5 * products.std(0) / np.sqrt(len(values))
    assert np.all(np.abs(products.mean(0) - covariance) <= errors)


@pytest.mark.parametrize("count", [0, 6])
@pytest.mark.parametrize("name", KERNELS)
def test_moments_are_those_of_the_posterior(name, count):
    """Joint mean and covariance at two points of 4000 samples, for both outputs."""
    values = evaluate(drawn(name, count), jnp.asarray(QUERIES.T))
    mean, covariance = textbook(KERNELS[name][1], count, 2)
    for output in range(2):
        check_moments(values[:, output], mean[:, output], covariance)


def test_outputs_and_samples_are_independent():
    """Correlations of 4000 samples below five standard errors."""
    values = np.asarray(evaluate(drawn("squared exponential", 6), jnp.asarray(QUERIES.T)))[:, :, 1]
    assert abs(np.corrcoef(values.T)[0, 1]) < 5 / np.sqrt(MANY)
    assert abs(np.corrcoef(values[::2, 0], values[1::2, 0])[0, 1]) < 5 / np.sqrt(MANY / 2)


def test_samples_pass_through_the_data_up_to_noise():
    """Root mean square over 4000 samples, at each of six points: within twice the noise."""
    values = np.asarray(evaluate(drawn("matern 3/2", 6), jnp.asarray(INPUTS[:6].T, jnp.float32)))
    error = values - TARGETS[:6].T[None]
    assert np.all(np.sqrt(np.mean(error**2, axis=0)) < 2 * NOISE)


def test_a_sample_is_a_function():
    """The same input has the same output to 1e-5, alone, in a batch or as a column; asked again, to the last digit."""
    f = drawn("squared exponential", 6).member(jnp.int32(7))
    z = jnp.asarray(QUERIES[0])
    batch = jnp.stack([z + 1, z, z - 1])
    ask, ask_all = eqx.filter_jit(lambda f, z: f(z)), eqx.filter_jit(lambda f, z: (jax.vmap(f)(z), f(z.T).T))
    alone = ask(f, z)
    for many_at_once in ask_all(f, batch):
        np.testing.assert_allclose(many_at_once[1], alone, rtol=1e-5)
    assert np.array_equal(ask(f, z), alone)


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_are_finite_and_both_modes_agree(name):
    """With data, at a query and at a data point; relative difference 1e-4, in single precision."""
    f = drawn(name, 6).member(jnp.int32(3))
    both = eqx.filter_jit(lambda f, z: (jax.jacrev(f)(z), jax.jacfwd(f)(z)))
    for z in (QUERIES[1], INPUTS[2].astype(np.float32)):
        reverse, forward = both(f, jnp.asarray(z))
        assert np.all(np.isfinite(reverse))
        np.testing.assert_allclose(reverse, forward, rtol=1e-4, atol=1e-5)


def test_weights_of_a_kernel_of_finite_rank_have_their_exact_posterior():
    """No sum over data is left, and 4000 weights have mean m and covariance S within five standard errors:

    S = (I + Phi^T Phi / sigma_w^2)^-1, m = S Phi^T y / sigma_w^2.
    """
    stack = drawn("finite rank", 6)
    assert isinstance(stack.member(jnp.int32(0)), WeightedFeatures)
    phi = some(INPUTS[:6].T).T
    covariance = np.linalg.inv(np.eye(4) + phi.T @ phi / NOISE**2)
    mean = covariance @ phi.T @ TARGETS[:6] / NOISE**2
    for output in range(2):
        check_moments(stack.own.weights[:, output], mean[:, output], covariance)


SCALE = np.array([0.5, 2.0])
KEY = jax.random.key(0)


def moves(x, a, y):
    """Transitions of which nothing but the states is known."""
    return Transitions(x, a, y, np.zeros(len(a)), np.zeros((len(a), 1)), np.zeros(len(a), bool))


@pytest.fixture(scope="module")
def separate():
    """A belief with a kernel and a noise for each output."""
    prior = GPPrior(
        mean=lambda x, a: x,
        scale=tuple(SCALE),
        kernel=(KERNELS["squared exponential"][0], KERNELS["finite rank"][0]),
        noise=(0.3, 0.6),
        bound=None,
        bound_source="",
    )
    return GPBelief.create(prior, 3, 20, 2)


def states(values):
    return values[:, :2] + SCALE * TARGETS[: len(values)]


def test_outputs_with_kernels_and_noise_of_their_own_have_their_own_posteriors(separate):
    """Moments of 4000 samples of a belief before and after six points, in units of the state; and independence."""
    z = QUERIES.T
    for belief, count in (
        (separate, 0),
        (separate.update(moves(INPUTS[:6, :2], INPUTS[:6, 2:], states(INPUTS[:6])), KEY), 6),
    ):
        samples = belief.samples(jax.random.key(1), MANY)
        values = many(samples, jnp.asarray(z[:2]), jnp.asarray(z[2:]))
        values = (np.asarray(values) - z[:2]) / SCALE[:, None]
        for output, (name, noise) in enumerate((("squared exponential", 0.3), ("finite rank", 0.6))):
            mean, covariance = textbook(KERNELS[name][1], count, 2, noise)
            check_moments(values[:, output], mean[:, output], covariance)
        assert abs(np.corrcoef(values[:, :, 1].T)[0, 1]) < 5 / np.sqrt(MANY)


@eqx.filter_jit
def many(samples, x, a):
    """f^m(x, a) for all m and all columns: [sample, state, column]."""
    return jax.vmap(lambda m: samples.member(m).many(x, a))(jnp.arange(len(samples)))


def in_double(f):
    return jax.tree.map(lambda v: v.astype(jnp.float64) if eqx.is_inexact_array(v) else v, f)


HORIZON = 20


@eqx.filter_jit
def trajectories(samples, starts, plans):
    """x_1 .. x_H of every sample from every start: [sample, start, step, state]."""

    def of(m):
        f = samples.member(m)
        step = lambda x, a: (y := f(x, a), y)  # noqa: E731
        return jax.vmap(lambda x, plan: jax.lax.scan(step, x, plan)[1])(starts, plans)

    return jax.lax.map(of, jnp.arange(len(samples)))


@pytest.fixture(scope="module")
def both_precisions(swung, swings):
    """Trajectories of ten samples of what 450 points of the pendulum teach: 20 from rest, one from each of 50 data.

    In single precision, and of the very same functions in double precision.
    """
    ten = swung.samples(jax.random.key(2), 10)
    plans = np.random.default_rng(0).uniform(-1, 1, (70, HORIZON, 1))
    x, a = (np.concatenate(part)[::9] for part in list(zip(*swings, strict=True))[:2])
    starts = np.concatenate([np.tile([-1.0, 0.0, 0.0], (20, 1)), x])
    plans[20:, 0] = a
    starts, plans = starts.astype(np.float32), plans.astype(np.float32)
    double = trajectories(in_double(ten), jnp.asarray(starts, jnp.float64), jnp.asarray(plans, jnp.float64))
    return np.asarray(trajectories(ten, jnp.asarray(starts), jnp.asarray(plans))), np.asarray(double)


def test_planning_in_single_precision_loses_less_than_half_the_noise_per_step(both_precisions, swing_prior):
    """One step from 50 of the 450 points; root mean square of each sample."""
    single, double = (values[:, 20:, 0] for values in both_precisions)
    error = (single - double) / np.array(swing_prior.scale)
    assert np.all(np.sqrt(np.mean(error**2, axis=(1, 2))) < 0.5 * swing_prior.noise)


def test_planning_in_single_precision_moves_a_plan_by_less_than_a_tenth_of_the_tightening(both_precisions):
    """The fastest turn along 20 steps from rest, of 10 samples and 20 action sequences; the tightening is 0.1."""
    single, double = (np.abs(values[:, :20, :, 2]).max(axis=2) for values in both_precisions)
    np.testing.assert_allclose(single, double, atol=0.01)


def test_every_episode_has_samples_of_its_own(separate):
    """The key is that of the run, and yet nothing is reused after an update; asked again, the samples are the same."""
    key, x, a = jax.random.key(5), jnp.asarray(QUERIES.T[:2]), jnp.asarray(QUERIES.T[2:])
    far = moves(np.full((6, 2), 50.0), np.zeros((6, 1)), np.full((6, 2), 50.0))
    first, again, later = (
        np.asarray(many(belief.samples(key, MANY), x, a)) for belief in (separate, separate, separate.update(far, KEY))
    )
    assert np.array_equal(first, again)
    assert abs(np.corrcoef(first[:, 0, 0], later[:, 0, 0])[0, 1]) < 5 / np.sqrt(MANY)


@pytest.mark.parametrize(("noise", "closeness"), [(1e-3, 0.05), (1e-4, 0.05), (1e-5, 0.05), (1e-6, 0.2)])
def test_samples_have_the_posterior_s_deviation_at_the_data_however_small_the_noise(
    noise, closeness, swings, swing_prior
):
    """30 samples at 50 of 450 points, in units of the deviation that numpy computes: root mean square 1 within 0.05.

    That deviation is less than the noise. The posterior mean is right to a twentieth of it (a fifth at 1e-6), what is
    said to be uncertain to a tenth.
    """
    prior = dataclasses.replace(swing_prior, noise=noise)
    belief = GPBelief.create(prior, 4, 450, 9)
    for episode in swings:
        belief = belief.update(episode, jax.random.key(0))
    x, a, y = (np.concatenate([getattr(e, name) for e in swings]) for name in ("states", "actions", "next_states"))
    targets = (y - np.asarray(jax.vmap(prior.mean)(jnp.asarray(x), jnp.asarray(a)))) / np.array(prior.scale)
    data = np.concatenate([x, a], axis=1) / np.asarray(prior.kernel.lengthscales)
    seen = np.concatenate([x, a], axis=1)[::9].astype(np.float32)  # as planning asks
    asked = seen.astype(float) / np.asarray(prior.kernel.lengthscales)
    between, across = (np.exp(-0.5 * distance(u, data) ** 2) for u in (data, asked))
    factor = np.linalg.cholesky(between + noise**2 * np.eye(450))
    white = np.linalg.solve(factor, across.T)
    mean, deviation = white.T @ np.linalg.solve(factor, targets), np.sqrt(1 - (white**2).sum(axis=0))

    def unit(function):
        """(g(z) - mu(z)) / sigma(z)."""
        return (np.asarray(function(jnp.asarray(seen.T)), float).T - mean) / deviation[:, None]

    (stack,), (nominal,) = belief.samples(jax.random.key(2), 30).parts, belief.nominal().parts
    off = np.stack([unit(stack.member(m)) for m in jnp.arange(30, dtype=jnp.int32)])
    assert np.sqrt(np.mean(off**2)) == pytest.approx(1, abs=0.05)
    assert np.abs(unit(nominal)).max() < closeness
    (variance,) = belief.uncertainty().variances
    np.testing.assert_allclose(np.sqrt(variance(jnp.asarray(seen.T))), deviation, rtol=0.1)


@pytest.mark.parametrize("noise", [9e-7, 1e-9])
def test_noise_that_rounding_would_drown_is_refused(noise, swing_prior):
    with pytest.raises(UserError, match=r"below 1e-06 double precision cannot tell .*; use more noise"):
        GPBelief.create(dataclasses.replace(swing_prior, noise=noise), 4, 450, 9)
