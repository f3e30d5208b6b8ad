"""TS1 particles: white noise of the posterior's size, and yet functions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl._jax import PLAN
from sbsrl.belief.centres import SHARE, Centres, LowRankVariance
from sbsrl.belief.gp import Group
from sbsrl.belief.particles import Particle, draw_particles
from sbsrl.belief.pathwise import WeightedFeatures
from sbsrl.belief.posterior import Posterior
from sbsrl.kernels import Linear, SquaredExponential

MANY, NOISE = 4000, 0.3
LIMIT = 5 / np.sqrt(MANY)
"""Five standard errors of a correlation."""
RNG = np.random.default_rng(0)
INPUTS, TARGETS = RNG.normal(size=(10, 3)), RNG.normal(size=(10, 2))
Z = np.array([[0.6, -0.3, 0.4], [0.6, -0.3, 0.4001], [-1.0, 0.5, 0.2]], np.float32)
"""Three inputs; the first two differ by 1e-4."""


@pytest.fixture(scope="module")
def parts():
    """Mean and variance of the posterior of ten points."""

    @eqx.filter_jit
    def learn(kernel):
        nothing = Posterior.empty(kernel, jnp.asarray(NOISE), 64, 3, 2)
        posterior = nothing.append(jnp.asarray(INPUTS), jnp.asarray(TARGETS))
        centres = Centres.empty(64, 3).grow(kernel, posterior.inputs, SHARE * posterior.noise**2, posterior.valid)
        return Group(posterior, centres).mean(PLAN), LowRankVariance.of(posterior, centres)

    return learn(SquaredExponential((1.0, 1.0, 1.0)))


@eqx.filter_jit
def evaluate(particles, z):
    """Each particle at an input of its own, the rows of z: [particle, output]."""
    return jax.vmap(lambda m, z: particles.member(m)(z))(jnp.arange(len(particles)), z)


def ask(particles, z):
    """All particles at one input, or each at its own."""
    return np.asarray(evaluate(particles, jnp.broadcast_to(jnp.asarray(z), (MANY, 3))))


@pytest.fixture(scope="module")
def particles(parts):
    return draw_particles(jax.random.key(0), MANY, *parts)


@pytest.fixture(scope="module")
def values(particles):
    """[input, particle, output]."""
    return np.stack([ask(particles, z) for z in Z])


def textbook(z):
    """mu [rows, 2] and sigma [rows, 1]."""
    kernel = lambda u, v: np.exp(-0.5 * ((u[:, None] - v[None]) ** 2).sum(-1))  # noqa: E731
    gram, k = kernel(INPUTS, INPUTS) + NOISE**2 * np.eye(10), kernel(z.astype(float), INPUTS)
    return k @ np.linalg.solve(gram, TARGETS), np.sqrt(1 - np.sum(k.T * np.linalg.solve(gram, k.T), axis=0))[:, None]


def test_particles_have_mean_and_variance_of_the_posterior(values):
    """4000 particles at three inputs, within five standard errors."""
    mean, deviation = textbook(Z)
    assert np.all(np.abs(values.mean(1) - mean) < 5 * deviation / np.sqrt(MANY))
    np.testing.assert_allclose(values.var(1), np.tile(deviation**2, 2), rtol=5 * np.sqrt(2 / MANY))


def test_noise_is_independent_of_that_of_other_particles_outputs_and_inputs(values):
    """Even of inputs that differ by 1e-4. Correlations of 4000, below five standard errors."""
    for one, other in (
        (values[0, :, 0], values[0, :, 1]),
        (values[0, :, 0], values[1, :, 0]),
        (values[0, :, 0], values[2, :, 0]),
        (values[0, 1:, 0], values[0, :-1, 0]),
    ):
        assert abs(np.corrcoef(one, other)[0, 1]) < LIMIT


def test_noise_is_independent_of_that_of_earlier_steps(particles, values):
    """Two steps z -> (f(z), a): noise in units of sigma, at the second step against the first."""
    first = (values[0] - textbook(Z[:1])[0]) / textbook(Z[:1])[1]
    reached = np.concatenate([values[0], np.full((MANY, 1), Z[0, 2])], axis=1)
    mean, deviation = textbook(reached)
    second = (ask(particles, reached) - mean) / deviation
    np.testing.assert_allclose(second.std(0), 1, rtol=5 / np.sqrt(2 * MANY))
    for i in range(2):
        for j in range(2):
            assert abs(np.corrcoef(first[:, i], second[:, j])[0, 1]) < LIMIT


def test_the_same_question_has_the_same_answer(particles, values):
    """To the last digit, whatever was asked before. Minus zero is zero."""
    assert np.array_equal(ask(particles, Z[1]), values[1])
    assert np.array_equal(*(ask(particles, np.float32([zero, 1, zero])) for zero in (0.0, -0.0)))


def test_the_width_is_a_factor_on_the_noise_and_columns_are_inputs_of_their_own(parts, particles, values):
    """Three times as wide, to 1e-5; three inputs as columns have the answers that each has alone, to 1e-6."""
    key = particles.own.key[0]

    @eqx.filter_jit
    def widths(mean, variance, z):
        return mean(z), *(Particle(mean, variance, key, width)(z) for width in (1.0, 3.0))

    mean, one, three = widths(*parts, jnp.asarray(Z.T))
    np.testing.assert_allclose(three - mean, 3 * (one - mean), atol=1e-5)
    np.testing.assert_allclose(one.T, values[:, 0], atol=1e-6)


def test_particles_of_a_kernel_of_finite_rank_have_finite_gradients_where_nothing_is_unknown():
    """A linear kernel knows that the function is 0 at the origin."""
    linear = Linear((1.0, 1.0, 1.0))
    variance = LowRankVariance(linear, linear.rows(jnp.zeros((64, 3))), jnp.int32(0), jnp.eye(64))
    mean = WeightedFeatures(lambda z: z, jnp.ones((2, 3), jnp.float32))
    f = draw_particles(jax.random.key(0), 2, mean, variance).member(jnp.int32(1))
    value, slope = eqx.filter_jit(lambda f, z: (f(z), jax.jacrev(f)(z)))(f, jnp.zeros(3, jnp.float32))
    assert not np.any(value)
    assert np.all(np.isfinite(slope))
