import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gamma, kv

from sbsrl.errors import UserError
from sbsrl.kernels import Matern, SquaredExponential, gram
from sbsrl.kernels.base import cast

SCALES = np.array([0.5, 2.0, 1.3])


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(20, 3))


jitted_gram = eqx.filter_jit(gram)


def distances(points):
    return np.sqrt(np.sum(((points[:, None] - points) / SCALES) ** 2, axis=-1))


def bessel(r, nu):
    """The general Matern kernel: 2^(1-nu) / Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) r."""
    t = np.where(r > 0, np.sqrt(2 * nu) * r, 1)
    return np.where(r > 0, 2 ** (1 - nu) / gamma(nu) * t**nu * kv(nu, t), 1)


def test_squared_exponential(points):
    found = jitted_gram(SquaredExponential(SCALES), jnp.asarray(points), jnp.asarray(points))
    np.testing.assert_allclose(found, np.exp(-0.5 * distances(points) ** 2), rtol=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 3.5])
@pytest.mark.parametrize("spread", [1e-3, 1.0, 20.0])
def test_matern_is_the_bessel_formula(points, nu, spread):
    found = jitted_gram(Matern(SCALES, nu=nu), jnp.asarray(spread * points), jnp.asarray(spread * points))
    np.testing.assert_allclose(found, bessel(distances(spread * points), nu), rtol=1e-10)


def test_matern_approaches_the_squared_exponential(points):
    """The difference is below 1 / (4 nu) or so; the factorials of nu = 100.5 have 375 digits."""
    found = jitted_gram(Matern(SCALES, nu=100.5), jnp.asarray(points), jnp.asarray(points))
    np.testing.assert_allclose(found, np.exp(-0.5 * distances(points) ** 2), atol=4e-3)


@pytest.mark.parametrize("kernel", [SquaredExponential(SCALES), Matern(SCALES, nu=0.5), Matern(SCALES, nu=7.5)])
def test_far_away_values_and_gradients_are_0_in_float32(kernel):
    """Also where squares overflow."""
    kernel, origin = cast(kernel, jnp.float32), jnp.zeros((1, 3), jnp.float32)
    far = jnp.asarray([[distance] * 3 for distance in (1e4, 1e12, 1e25)], jnp.float32)
    views = [lambda z: kernel(z, origin[0]), lambda z: kernel.link(kernel.rows(origin), kernel.query(z))[0]]
    for view in views:
        values, slopes = jax.jit(jax.vmap(jax.value_and_grad(view)))(far)
        assert np.array_equal(values, np.zeros(3))
        assert np.array_equal(slopes, np.zeros((3, 3)))


@pytest.mark.parametrize("kernel", [SquaredExponential(SCALES), Matern(SCALES)])
def test_the_supremum_is_1_wherever_the_input_is(kernel, points):
    variances = np.diag(jitted_gram(kernel, jnp.asarray(points), jnp.asarray(points)))
    assert kernel.supremum() == kernel.supremum((1.0, 2.0, 3.0)) == variances.max() == variances.min() == 1


@pytest.mark.parametrize("kernel", [SquaredExponential, Matern])
@pytest.mark.parametrize("scales", [(1.0, 0.0), [1.0, -1.0], (np.nan, 1.0), np.array([np.inf, 1.0]), jnp.zeros(2)])
def test_length_scales_that_are_not_positive_and_finite_are_refused(kernel, scales):
    with pytest.raises(UserError, match="length scales must be positive and finite"):
        kernel(scales)


@pytest.mark.parametrize("nu", [1.0, 2, 0.0, -0.5, 1.7, np.inf, np.nan])
def test_nu_must_be_a_half_integer(nu):
    with pytest.raises(UserError, match=r"not a half-integer; use 0\.5, 1\.5"):
        Matern(SCALES, nu=nu)


def test_descriptions_name_the_parameters():
    assert SquaredExponential((1.0, 0.25)).describe() == "SquaredExponential([1, 0.25])"
    assert Matern((1.0, 0.25), nu=2.5).describe() == "Matern([1, 0.25], nu=2.5)"


@pytest.mark.parametrize("kernel", [SquaredExponential, Matern])
def test_length_scales_must_be_one_for_each_input(kernel):
    with pytest.raises(UserError, match="one for each input"):
        kernel(1.0)
    with pytest.raises(UserError, match="has 1 length scales and got an input of shape"):
        kernel((1.0,))(jnp.zeros(3), jnp.zeros(3))


def test_computed_about_their_centre_distant_inputs_lose_no_digits():
    """In float32, 1000 length scales from the origin: 1e-5 instead of an error of order 1."""
    inputs = jnp.asarray(1000 + np.random.default_rng(0).normal(size=(20, 2)))
    plain = SquaredExponential((1.0, 1.0))
    kernel = plain.about(inputs, jnp.ones(20))
    values = cast(kernel, jnp.float32).link(
        cast(kernel.rows(inputs), jnp.float32), cast(kernel.query(inputs[3]), jnp.float32)
    )
    np.testing.assert_allclose(values, jax.vmap(lambda z: plain(z, inputs[3]))(inputs), atol=1e-5)
