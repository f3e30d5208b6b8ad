"""The same Gaussian process in a second library, tinygp, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tinygp

from sbsrl.belief.fit import log_likelihood
from sbsrl.belief.functions import Frame
from sbsrl.belief.gp_model import GPModel
from sbsrl.belief.posterior import Moments, Posterior
from sbsrl.kernels import Linear, Matern, SquaredExponential, gram

LENGTHS = np.array([0.5, 2.0, 1.3])


def scaled(kernel, lengths=LENGTHS):
    return tinygp.transforms.Linear(1 / lengths, kernel)


EUCLIDEAN = tinygp.kernels.L2Distance()
THEIR_SE = scaled(tinygp.kernels.ExpSquared())
THEIR_52 = scaled(tinygp.kernels.Matern52(distance=EUCLIDEAN))
THEIR_LINEAR = scaled(tinygp.kernels.DotProduct())
SE, MATERN52, LINEAR = SquaredExponential(LENGTHS), Matern(LENGTHS, nu=2.5), Linear(LENGTHS)

PAIRS = {
    "squared exponential": (SE, THEIR_SE),
    "Matern 1/2": (Matern(LENGTHS, nu=0.5), scaled(tinygp.kernels.Exp(distance=EUCLIDEAN))),
    "Matern 3/2": (Matern(LENGTHS), scaled(tinygp.kernels.Matern32(distance=EUCLIDEAN))),
    "Matern 5/2": (MATERN52, THEIR_52),
    "linear": (LINEAR, THEIR_LINEAR),
    "sum": (SE + 0.3 * LINEAR, THEIR_SE + 0.3 * THEIR_LINEAR),
    "product": (SE * MATERN52, THEIR_SE * THEIR_52),
}
NOISE = 0.05
both = pytest.mark.parametrize(("ours", "theirs"), PAIRS.values(), ids=PAIRS.keys())


@pytest.fixture(autouse=True)
def _their_promotion():
    """tinygp adds ranks and types more freely than the tests of this package may."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def inputs(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 3))


@both
def test_kernels_agree(ours, theirs):
    u, v = jnp.asarray(inputs(6)), jnp.asarray(inputs(5, seed=1))
    np.testing.assert_allclose(gram(ours, u, v), theirs(u, v), atol=1e-12)


@both
@pytest.mark.parametrize("count", [1, 7, 60])
def test_mean_variance_and_likelihood_agree(ours, theirs, count):
    """1e-8; near the data the variance is the small difference of two numbers close to 1."""
    z, queries = inputs(count), jnp.asarray(inputs(9, seed=1))
    y = np.sin(z.sum(axis=1))
    posterior = Posterior.empty(ours, jnp.asarray(NOISE), 64, 3, 1).append(jnp.asarray(z), jnp.asarray(y)[:, None])
    mean, variance = Moments.of(posterior)(queries.T)
    process = tinygp.GaussianProcess(theirs, jnp.asarray(z), diag=NOISE**2)
    likelihood, conditioned = process.condition(jnp.asarray(y), queries, diag=0.0)
    np.testing.assert_allclose(mean[0], conditioned.mean, atol=1e-8)
    np.testing.assert_allclose(variance, conditioned.variance, atol=1e-8)

    frame = Frame(lambda x, a: x, jnp.zeros(1), jnp.ones(1))
    model = GPModel(frame, (ours,), jnp.asarray([NOISE]))
    padded = jnp.zeros((64, 3)).at[:count].set(z), jnp.zeros((64, 1)).at[:count, 0].set(y)
    np.testing.assert_allclose(log_likelihood(model, *padded, jnp.int32(count)), likelihood, rtol=1e-8)
