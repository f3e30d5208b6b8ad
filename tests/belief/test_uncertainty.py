"""Both measures of uncertainty against numpy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.centres import SHARE, Centres, LowRankVariance
from sbsrl.belief.gp import GPBelief
from sbsrl.belief.posterior import Moments, Posterior, Variance
from sbsrl.belief.settings import GPSettings
from sbsrl.belief.uncertainty import Deviation, Information, largest_uncertainty
from sbsrl.kernels import Linear, Matern, SquaredExponential
from sbsrl.prior import GPPrior

SCALE = np.array([0.5, 2.0])
LENGTHS = ((1.0, 2.0, 0.7), (0.8, 0.8, 0.8))
INPUTS = np.random.default_rng(0).normal(size=(25, 3))
QUERIES = np.array([[0.2, -0.4, 0.5], [3.0, 3.0, -1.0], INPUTS[4]])


@eqx.filter_jit
def variance_of(kernel, noise):
    posterior = Posterior.empty(kernel, noise, 64, 3, 1).append(jnp.asarray(INPUTS), jnp.zeros((25, 1)))
    tolerance = SHARE * noise**2
    centres = Centres.empty(64, 3).grow(kernel, posterior.inputs, tolerance, posterior.valid)
    return LowRankVariance.of(posterior, centres)


def both(parts, noise):
    """Information and deviation from the same variances."""
    return tuple(kind(parts, jnp.asarray(SCALE), jnp.asarray(noise)) for kind in (Information, Deviation))


@eqx.filter_jit
def many(measures, z):
    """Each measure at the rows of z."""
    return [measure.many(z.T[:2], z.T[2:]) for measure in measures]


@eqx.filter_jit
def alone(measures, x, a):
    """Value and both gradients in x of each measure."""
    return [(*jax.value_and_grad(measure)(x, a), jax.jacfwd(measure)(x, a)) for measure in measures]


def textbook(lengths, noise):
    kernel = lambda u, v: np.exp(-0.5 * (((u[:, None] - v[None]) / np.array(lengths)) ** 2).sum(-1))  # noqa: E731
    k = kernel(INPUTS, QUERIES)
    return 1 - np.sum(k * np.linalg.solve(kernel(INPUTS, INPUTS) + noise**2 * np.eye(25), k), axis=0)


@pytest.fixture(scope="module")
def shared():
    """Of one kernel for both outputs."""
    return both((variance_of(SquaredExponential(LENGTHS[0]), jnp.asarray(0.05)),), [0.05, 0.05])


@pytest.fixture(scope="module")
def separate():
    """Of a kernel and a noise for each output."""
    noise = (0.05, 0.3)
    parts = (variance_of(SquaredExponential(LENGTHS[i]), jnp.asarray(noise[i])) for i in range(2))
    return both(tuple(parts), noise)


@pytest.fixture(scope="module")
def solved():
    """Of one kernel, solved for with all data, as where the noise is delicate."""
    posterior = Posterior.empty(SquaredExponential(LENGTHS[0]), jnp.asarray(0.05), 64, 3, 1)
    posterior = posterior.append(jnp.asarray(INPUTS), jnp.zeros((25, 1)))
    return both((Variance(Moments.of(posterior, delicate=True)),), [0.05, 0.05])


@pytest.mark.parametrize(
    ("name", "second", "noise"),
    [("shared", 0, [0.05, 0.05]), ("separate", 1, [0.05, 0.3]), ("solved", 0, [0.05, 0.05])],
)
def test_measures_are_those_of_the_textbook(name, second, noise, request):
    """Near, far from and at the data, to 1e-8: information is the sum over outputs of ln(1 + sigma^2 / sigma_w^2),

    deviation the norm of sigma in units of the state.
    """
    variance = np.stack([textbook(LENGTHS[0], noise[0]), textbook(LENGTHS[second], noise[1])])
    information, deviation = many(request.getfixturevalue(name), jnp.asarray(QUERIES))
    np.testing.assert_allclose(information, np.log1p(variance / np.square(noise)[:, None]).sum(0), rtol=1e-8)
    np.testing.assert_allclose(deviation, np.sqrt(np.sum(variance * SCALE[:, None] ** 2, axis=0)), rtol=1e-8)


def test_answers_have_the_precision_of_the_question_and_lose_nothing_in_single(shared):
    """The variance is a small difference: it is computed in double precision. To 1e-6 of the measure."""
    rounded = jnp.asarray(QUERIES, jnp.float32)
    for single, double in zip(many(shared, rounded), many(shared, rounded.astype(jnp.float64)), strict=True):
        assert single.dtype == jnp.float32
        np.testing.assert_allclose(single, double, rtol=1e-6)


@pytest.mark.parametrize("name", ["shared", "solved"])
def test_gradients_are_finite_and_agree_at_and_away_from_data(name, request):
    """Reverse and forward mode to 1e-9, central differences of 1e-5 to 1e-6; the value is that of `many`, to 1e-10."""
    shared = request.getfixturevalue(name)
    together = many(shared, jnp.asarray(QUERIES))
    for row, z in enumerate(QUERIES):
        moved = [z + step * unit for step in (1e-5, -1e-5) for unit in np.eye(3)[:2]]
        up, down = (many(shared, jnp.asarray([*pair, z])) for pair in (moved[:2], moved[2:]))
        for i, (value, reverse, forward) in enumerate(alone(shared, jnp.asarray(z[:2]), jnp.asarray(z[2:]))):
            np.testing.assert_allclose(value, together[i][row], rtol=1e-10)
            np.testing.assert_allclose(reverse, forward, atol=1e-9)
            np.testing.assert_allclose(reverse, (up[i] - down[i])[:2] / 2e-5, atol=1e-6)


def test_gradients_are_finite_where_nothing_is_unknown():
    """A linear kernel knows that the function is 0 at the origin."""
    linear = Linear((1.0, 1.0, 1.0))
    prior = LowRankVariance(linear, linear.rows(jnp.zeros((64, 3))), jnp.int32(0), jnp.eye(64))
    for value, reverse, forward in alone(both((prior,), [0.1, 0.1]), jnp.zeros(2), jnp.zeros(1)):
        assert value == 0
        assert np.all(np.isfinite(reverse))
        assert np.all(np.isfinite(forward))


LIMITS = (1.0, 2.0, 0.5)
SE, ROUGH, LINE = SquaredExponential(LENGTHS[0]), Matern(LENGTHS[1], 1.5), Linear((1.0, 3.0, 1.0))


def prior_with(kernel, noise):
    return GPPrior(
        mean=lambda x, a: x,
        scale=(0.5, 2.0),
        kernel=kernel,
        noise=noise,
        bound=None,
        bound_source="",
    )


@pytest.mark.parametrize("measure", ["information", "deviation"])
@pytest.mark.parametrize(
    ("kernel", "noise", "stationary"),
    [(SE, 0.05, True), ((SE, ROUGH), (0.05, 0.3), True), (SE, (0.05, 0.3), True), (LINE, 0.1, False)],
    ids=["shared", "separate", "noises", "linear"],
)
def test_nothing_is_more_uncertain_than_the_largest_uncertainty(kernel, noise, stationary, measure):
    """At 200 inputs of the box, before any data, to 1e-9; for stationary kernels it is that everywhere."""
    prior = prior_with(kernel, noise)
    largest = largest_uncertainty(prior, LIMITS, measure)
    belief = GPBelief.create(prior, 3, 8, 1, GPSettings(features=2, uncertainty=measure))
    z = np.random.default_rng(1).uniform(-1, 1, (200, 3)) * np.array(LIMITS)
    corner = np.array([LIMITS])
    (found,) = many((belief.uncertainty(),), jnp.asarray(np.concatenate([z, corner])))
    assert np.all(found <= largest * (1 + 1e-9))
    np.testing.assert_allclose(found[-1], largest, rtol=1e-9)
    if stationary:
        np.testing.assert_allclose(found, largest, rtol=1e-9)
    else:
        assert found[:-1].max() < largest


@pytest.mark.parametrize("measure", ["information", "deviation"])
def test_where_the_kernel_has_no_bound_neither_has_the_uncertainty(measure):
    assert largest_uncertainty(prior_with(LINE, 0.1), (1.0, np.inf, 1.0), measure) == np.inf
