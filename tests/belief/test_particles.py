"""TS1 particles: white noise of the posterior's size, and yet functions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.centres import SHARE, Centres, LowRankVariance
from sbsrl.belief.gp import Group
from sbsrl.belief.particles import Particle, draw_particles
from sbsrl.belief.posterior import Posterior
from sbsrl.kernels import Linear, SquaredExponential

MANY, NOISE = 4000, 0.3
LIMIT = 5 / np.sqrt(MANY)
"""Five standard errors of a correlation."""
RNG = np.random.default_rng(0)
INPUTS, TARGETS = RNG.normal(size=(10, 3)), RNG.normal(size=(10, 2))
Z = np.array([[0.6, -0.3, 0.4], [0.6, -0.3, 0.4001], [-1.0, 0.5, 0.2]], np.float32).T
"""Three inputs as columns; the first two differ by 1e-4."""


@eqx.filter_jit
def parts(kernel):
    """Mean and variance of the posterior of ten points."""
    posterior = Posterior.none(kernel, jnp.asarray(NOISE), 64, 3, 2).append(jnp.asarray(INPUTS), jnp.asarray(TARGETS))
    centres = Centres.none(64, 3).grow(kernel, posterior.inputs, SHARE * posterior.noise**2, posterior.valid)
    return Group(posterior, centres).mean(), LowRankVariance.of(posterior, centres)


@pytest.fixture(scope="module")
def smooth():
    return parts(SquaredExponential((1.0, 1.0, 1.0)))


@eqx.filter_jit
def evaluate(particles, z):
    """[particle, output, column]."""
    return jax.vmap(lambda m: particles.member(m)(z))(jnp.arange(len(particles)))


@pytest.fixture(scope="module")
def values(smooth):
    return np.asarray(evaluate(draw_particles(jax.random.key(0), MANY, *smooth), jnp.asarray(Z)))


def textbook(z):
    """mu [2, columns] and sigma [columns]."""
    kernel = lambda u, v: np.exp(-0.5 * ((u[:, None] - v[None]) ** 2).sum(-1))  # noqa: E731
    gram, k = kernel(INPUTS, INPUTS) + NOISE**2 * np.eye(10), kernel(z.T.astype(float), INPUTS)
    return (k @ np.linalg.solve(gram, TARGETS)).T, np.sqrt(1 - np.sum(k.T * np.linalg.solve(gram, k.T), axis=0))


def test_particles_have_mean_and_variance_of_the_posterior(values):
    """4000 particles at three inputs, within five standard errors."""
    mean, deviation = textbook(Z)
    assert np.all(np.abs(values.mean(0) - mean) < 5 * deviation / np.sqrt(MANY))
    np.testing.assert_allclose(values.var(0), np.tile(deviation**2, (2, 1)), rtol=5 * np.sqrt(2 / MANY))


def test_noise_is_independent_of_that_of_other_particles_outputs_and_inputs(values):
    """Even of inputs that differ by 1e-4. Correlations of 4000, below five standard errors."""
    for one, other in (
        (values[:, 0, 0], values[:, 1, 0]),
        (values[:, 0, 0], values[:, 0, 1]),
        (values[:, 0, 0], values[:, 0, 2]),
        (values[1:, 0, 0], values[:-1, 0, 0]),
    ):
        assert abs(np.corrcoef(one, other)[0, 1]) < LIMIT


def test_noise_is_independent_of_that_of_earlier_steps(smooth):
    """Two steps z -> (f(z), a): noise in units of sigma, at the second step against the first."""
    mean, variance = smooth

    @eqx.filter_jit
    def two_steps(particles, z):
        def of(m):
            f, noise, at = particles.member(m), [], z
            for _ in range(2):
                value = f(at)
                noise.append((value - mean(at)) / jnp.sqrt(variance(at)).astype(jnp.float32))
                at = jnp.concatenate([value, z[2:]])
            return jnp.stack(noise)

        return jax.vmap(of)(jnp.arange(len(particles)))

    noise = np.asarray(two_steps(draw_particles(jax.random.key(1), MANY, *smooth), jnp.asarray(Z[:, 0])))
    np.testing.assert_allclose(noise.std(0), 1, rtol=5 / np.sqrt(2 * MANY))
    for i in range(2):
        for j in range(2):
            assert abs(np.corrcoef(noise[:, 0, i], noise[:, 1, j])[0, 1]) < LIMIT


def test_the_same_question_has_the_same_answer(smooth, values):
    """To the last digit; as another column, or alone, to 1e-6. Minus zero is zero."""
    particles = draw_particles(jax.random.key(0), MANY, *smooth)
    assert np.array_equal(evaluate(particles, jnp.asarray(Z)), values)
    turned = np.asarray(evaluate(particles, jnp.asarray(Z[:, ::-1])))[:, :, ::-1]
    np.testing.assert_allclose(turned, values, atol=1e-6)
    zeros = np.zeros((3, 3), np.float32)
    assert np.array_equal(*(evaluate(particles, jnp.asarray(z)) for z in (zeros, -zeros)))


def test_the_width_is_a_factor_on_the_noise(smooth):
    """Three times as wide, to 1e-5."""
    mean, variance = smooth
    ask = eqx.filter_jit(lambda f, z: f(z))
    one, three = (ask(Particle(mean, variance, jax.random.key(3), width), jnp.asarray(Z)) for width in (1.0, 3.0))
    np.testing.assert_allclose(three - ask(mean, jnp.asarray(Z)), 3 * (one - ask(mean, jnp.asarray(Z))), atol=1e-5)


def test_particles_of_a_kernel_of_finite_rank_have_finite_gradients_where_nothing_is_unknown():
    """A linear kernel knows that the function is 0 at the origin."""
    f = draw_particles(jax.random.key(0), 2, *parts(Linear((1.0, 1.0, 1.0)))).member(jnp.int32(1))
    value, slope = eqx.filter_jit(lambda f, z: (f(z), jax.jacrev(f)(z)))(f, jnp.zeros(3, jnp.float32))
    assert not np.any(value)
    assert np.all(np.isfinite(slope))
