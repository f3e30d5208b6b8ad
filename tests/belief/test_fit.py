"""Fitting: the likelihood against numpy, and parameters that are known."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.fit import LEAST_NOISE, fit, log_likelihood, normalised
from sbsrl.belief.gp import GPBelief
from sbsrl.belief.gp_model import GPModel
from sbsrl.belief.settings import GPSettings
from sbsrl.kernels import SquaredExponential
from sbsrl.prior import GPPrior
from sbsrl.transitions import Transitions

PRIOR = GPPrior(
    mean=lambda x, a: jnp.zeros_like(x),
    scale=(1.5,),
    kernel=SquaredExponential((1.0, 1.0)),
    noise=0.2,
    bound=None,
    bound_source="",
)
TRUE_LENGTHS, TRUE_NOISE, TRUE_SCALE = np.array([0.5, 2.0]), 0.05, 1.0
ROOM = 192

likelihood = eqx.filter_jit(log_likelihood)


def kernel(u, v, lengths):
    return np.exp(-0.5 * (((u[:, None] - v[None]) / lengths) ** 2).sum(-1))


def padded(rows):
    return jnp.asarray(np.concatenate([rows, np.zeros((ROOM - len(rows), *rows.shape[1:]))]))


@pytest.fixture(scope="module")
def drawn():
    """150 points of a function drawn from the Gaussian process with the true parameters, and noise."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-3, 3, (150, 2))
    gram = TRUE_SCALE**2 * (kernel(z, z, TRUE_LENGTHS) + TRUE_NOISE**2 * np.eye(150))
    return z, np.linalg.cholesky(gram) @ rng.normal(size=(150, 1))


def dense(z, residuals, lengths, noise, scale, offset):
    """ln p of each output, added up."""
    total = 0.0
    for y, s, length, w, o in zip(residuals.T, scale, lengths, noise, offset, strict=True):
        gram = s**2 * (kernel(z, z, length) + w**2 * np.eye(len(z)))
        total -= 0.5 * (y - o) @ np.linalg.solve(gram, y - o)
        total -= 0.5 * (np.linalg.slogdet(gram)[1] + len(z) * np.log(2 * np.pi))
    return total


def test_the_likelihood_of_outputs_that_share_a_kernel_is_that_of_the_textbook(drawn):
    """To 1e-9 of its size, also with no data; what stands in padding does not matter."""
    z, y = drawn
    prior = dataclasses.replace(PRIOR, scale=(1.5, 0.7))
    model = eqx.tree_at(lambda m: m.frame.offset, GPModel.of(prior), jnp.array([0.3, -0.1]))
    both = np.concatenate([y, y**2], axis=1)
    shared = (np.tile(np.asarray(PRIOR.kernel.lengthscales), (2, 1)), (0.2, 0.2), (1.5, 0.7), (0.3, -0.1))
    for count in (0, 40, 150):
        got = likelihood(model, padded(z), padded(both), jnp.int32(count))
        np.testing.assert_allclose(got, dense(z[:count], both[:count], *shared), rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def separate():
    """A model with a kernel and a noise for each of two outputs."""
    kernels = (PRIOR.kernel, SquaredExponential((0.5, 3.0)))
    return GPModel.of(dataclasses.replace(PRIOR, scale=(1.5, 0.7), kernel=kernels, noise=(0.2, 0.4)))


def test_the_likelihood_of_outputs_with_kernels_of_their_own_is_that_of_the_textbook(drawn, separate):
    """To 1e-9 of its size."""
    z, y = drawn
    both = np.concatenate([y, y**2], axis=1)
    got = likelihood(separate, padded(z), padded(both), jnp.int32(150))
    expected = dense(z, both, ((1.0, 1.0), (0.5, 3.0)), (0.2, 0.4), (1.5, 0.7), (0.0, 0.0))
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_the_gradient_of_the_likelihood_is_that_of_finite_differences(drawn):
    """In length scales, noise and scale: central differences of 1e-5, to 1e-5 of the gradient."""
    z, y = drawn
    model = GPModel.of(PRIOR)

    @eqx.filter_jit
    def along(theta):
        lengths, noise, scale = theta[:2], theta[2:3], theta[3:]
        changed = eqx.tree_at(
            lambda m: (m.kernels[0].lengthscales, m.noise, m.frame.scale), model, (lengths, noise, scale)
        )
        return log_likelihood(changed, padded(z), padded(y), jnp.int32(150))

    theta = np.array([1.0, 1.0, 0.2, 1.5])
    slope = eqx.filter_jit(jax.grad(along))(jnp.asarray(theta))
    for i, step in enumerate(1e-5 * np.eye(4)):
        difference = (along(jnp.asarray(theta + step)) - along(jnp.asarray(theta - step))) / 2e-5
        np.testing.assert_allclose(slope[i], difference, rtol=1e-5)


def test_parameters_of_a_known_process_are_recovered(drawn):
    """150 points, from starts a factor of 2 to 4 away: each within a factor of 1.5."""
    z, y = drawn
    found = fit(GPModel.of(PRIOR), padded(z), padded(y), jnp.int32(150))
    for got, true in (
        (found.kernels[0].lengthscales, TRUE_LENGTHS),
        (found.noise, TRUE_NOISE),
        (found.frame.scale, TRUE_SCALE),
    ):
        assert np.all(np.abs(np.log(np.asarray(got) / true)) < np.log(1.5))
    data = (padded(z), padded(y), jnp.int32(150))
    assert likelihood(found, *data) >= dense(z, y, (TRUE_LENGTHS,), (TRUE_NOISE,), (TRUE_SCALE,), (0.0,))


def rubbish():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(20, 2))
    return {
        "constant outputs": (z, np.full((20, 1), 3.0)),
        "outputs that are 0": (z, np.zeros((20, 1))),
        "one point": (z[:1], np.ones((1, 1))),
        "the same point again and again": (np.tile(z[:1], (20, 1)), rng.normal(size=(20, 1))),
        "pure noise": (z, rng.normal(size=(20, 1))),
        "huge outputs": (z, 1e6 * rng.normal(size=(20, 1))),
        "no noise": (z, np.sin(z[:, :1])),
    }


@pytest.mark.parametrize("name", rubbish())
def test_no_data_break_the_fit_and_it_is_never_worse_than_the_start(name):
    z, y = rubbish()[name]
    start, data = GPModel.of(PRIOR), (padded(z), padded(y), jnp.int32(len(z)))
    found = fit(start, *data, restarts=1, iterations=15)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found))
    assert all(np.all(leaf > 0) for leaf in jax.tree.leaves((found.kernels, found.noise, found.frame.scale)))
    assert likelihood(found, *data) >= likelihood(start, *data) - 1e-9
    assert np.all(found.noise >= LEAST_NOISE * (1 - 1e-9))


def test_a_normalised_model_has_the_units_of_the_data(separate):
    """Offset and scale are mean and deviation; noise keeps its size in units of the state; constants keep all."""
    rng = np.random.default_rng(0)
    y = np.stack([5 + 3 * rng.normal(size=30), np.full(30, 7.0)], axis=1)
    found = normalised(separate, padded(y), jnp.int32(30))
    np.testing.assert_allclose(found.frame.offset, y.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.frame.scale, [y[:, 0].std(), 0.7], rtol=1e-12)
    np.testing.assert_allclose(found.noise * found.frame.scale, separate.noise * separate.frame.scale, rtol=1e-12)
    assert found.kernels == separate.kernels


def test_a_shared_noise_keeps_its_share_of_the_scale():
    model = GPModel.of(dataclasses.replace(PRIOR, scale=(1.0, 1.0)))
    y = np.stack([3 * np.arange(5.0), 0.1 * np.arange(5.0)], axis=1)
    found = normalised(model, padded(y), jnp.int32(5))
    np.testing.assert_allclose(found.frame.scale, y.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(found.noise, model.noise)


def test_a_belief_that_fits_improves_and_stays_finite_on_data_without_noise():
    """Four episodes of 16 points on a smooth curve; each fit is at least as likely as the model it started from."""
    belief = GPBelief.create(PRIOR, 2, ROOM, 4, GPSettings(fitted=True))
    for number in range(4):
        z = np.linspace(number, number + 1, 16)[:, None] * np.array([1.0, -0.5])
        before = belief.model
        rest = np.zeros(16), np.zeros((16, 1)), np.zeros(16, bool)
        data = Transitions(z[:, :1], z[:, 1:], np.sin(2 * z[:, :1]) + 3, *rest)
        belief = belief.update(data, jax.random.key(number))
        posterior = belief.groups[0].posterior
        data = (posterior.inputs, belief.residuals, belief.count)
        assert likelihood(belief.model, *data) >= likelihood(before, *data) - 1e-9
        assert np.all(np.isfinite(posterior.factor))
        assert belief.model.noise >= LEAST_NOISE * (1 - 1e-9)
    x, a = jnp.array([[1.33]], jnp.float32), jnp.array([[-0.665]], jnp.float32)
    got = eqx.filter_jit(lambda f, x, a: f.many(x, a))(belief.nominal(), x, a)
    np.testing.assert_allclose(got, np.sin(2.66) + 3, atol=0.01)
