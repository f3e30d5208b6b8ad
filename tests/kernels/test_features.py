import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.kernels import ESTIMATORS, Clip, FiniteRank, Matern, SquaredExponential, Tanh, gram
from sbsrl.kernels.features import standard_frequencies

SCALES = (1.0, 0.7, 1.5, 1.2)
SE, MATERN32, MATERN52 = SquaredExponential(SCALES), Matern(SCALES), Matern(SCALES, nu=2.5)
RAMP = FiniteRank(lambda z: jnp.append(z[:2], jnp.ones(1, z.dtype)), 3)
BOX = Clip((0.5, 1.0, 1.0, np.inf))
KERNELS = {
    "se": SE,
    "matern32": MATERN32,
    "matern52": MATERN52,
    "product": SE * MATERN52,
    "product on maps": SE.on(BOX) * SE.on(Tanh((1.0, 1.0, 1.0, 1.0))),
    "finite product": RAMP * SE,
    "sum": SE + MATERN32,
    "scaled": 2.5 * SE,
    "on": SE.on(BOX),
}
NESTED = (2 * (SE + RAMP)).on(BOX) * (SE * RAMP)


def inputs(seed, count):
    return jnp.asarray(0.7 * np.random.default_rng(seed).normal(size=(count, 4)))


U, V = inputs(0, 5), inputs(1, 4)
DRAWS = 10_000
UNOPTIMISED = {"xla_backend_optimization_level": 0}  # for what runs once, and is slower to compile than to run


def keys(count=DRAWS):
    return jax.random.split(jax.random.key(0), count)


def product(kernel, size, estimator):
    """key -> phi(u_i) . phi(v_j), phi(u_i) . phi(u_i); the u one by one, the v as columns."""

    def draw(key):
        phi = kernel.features(key, size, estimator)
        each = jax.vmap(phi)(U)
        return each @ phi(V.T), jnp.sum(each**2, axis=1)

    return draw


def products(kernel, estimator):
    """All draws with 8 frequencies. Random numbers cost most, and as no more than they is compiled, they are shared."""
    return map(np.asarray, jax.vmap(product(kernel, 8 if estimator == "phased" else 16, estimator))(keys()))


def root_mean_square(errors):
    return np.sqrt(np.mean(errors**2))


@pytest.mark.parametrize(
    ("kernel", "estimator"),
    [pytest.param(k, e, id=f"{name}-{e}") for name, k in KERNELS.items() for e in ESTIMATORS]
    + [pytest.param(NESTED, "orthogonal", id="nested-orthogonal")],
)
def test_features_reproduce_the_kernel_on_average(kernel, estimator):
    """Within 5 standard errors, which are below 0.01 of max |k|; paired ones have its variance in every draw."""
    found, squares = products(kernel, estimator)
    exact, error = np.asarray(gram(kernel, U, V)), found.std(axis=0) / np.sqrt(DRAWS)
    assert error.max() < 0.01 * np.abs(exact).max()
    assert np.all(np.abs(found.mean(axis=0) - exact) < 5 * error)
    if estimator != "phased":
        variances = np.diag(gram(kernel, U, U))
        np.testing.assert_allclose(squares, np.broadcast_to(variances, squares.shape), rtol=1e-13)


@pytest.mark.parametrize("kernel", [SE, MATERN32], ids=["se", "matern32"])
def test_the_error_falls_with_the_root_of_the_number_of_features(kernel):
    """The slope of log error over log features is -1/2; 100 draws leave it open by about 0.01."""
    sizes, errors, exact = [16, 64, 256, 1024], [], np.asarray(gram(kernel, U, V))
    for size in sizes:
        draw = jax.jit(jax.vmap(product(kernel, size, "paired")), compiler_options=UNOPTIMISED)
        errors.append(root_mean_square(np.asarray(draw(keys(100))[0]) - exact))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


@pytest.mark.parametrize(("kernel", "factor"), [(SE, 0.8), (MATERN52, 0.9)], ids=["se", "matern52"])
def test_orthogonal_frequencies_have_a_smaller_error(kernel, factor):
    """In 4 dimensions, at these inputs: 0.75 of the error of independent ones (Matern: 0.84), measured to 1%."""
    exact = np.asarray(gram(kernel, U, V))
    orthogonal, paired = (root_mean_square(next(products(kernel, e)) - exact) for e in ("orthogonal", "paired"))
    assert orthogonal < factor * paired


@pytest.mark.parametrize("count", [5, 8])
def test_orthogonal_frequencies_are_standard_normal_and_at_right_angles_in_blocks(count):
    """Each on its own, not only all together: mean and covariance within 5 standard errors.

    A plain QR factor prefers a sign, which biases products of kernels, whose frequencies add.
    """
    omega = np.asarray(jax.vmap(lambda key: standard_frequencies(key, count, 4, "orthogonal"))(keys()))
    assert omega.shape == (DRAWS, count, 4)
    assert np.abs(omega.mean(axis=0)).max() < 5 / np.sqrt(DRAWS)
    for i in range(count):
        assert np.abs(np.cov(omega[:, i].T) - np.eye(4)).max() < 5 * np.sqrt(2 / DRAWS)
    angles = np.einsum("kid,kjd->kij", omega[:, :4], omega[:, :4]) * (1 - np.eye(4))
    assert np.abs(angles).max() < 1e-12


@pytest.mark.parametrize(("size", "estimator", "count"), [(16, "paired", 16), (17, "paired", 16), (17, "phased", 17)])
def test_there_are_as_many_features_as_asked_for_in_pairs(size, estimator, count):
    phi = jax.eval_shape(lambda key, z: SE.features(key, size, estimator)(z), jax.random.key(0), U[0])
    assert phi.shape == (count,)


@pytest.mark.parametrize("kernel", [SE, SE * MATERN32, 2 * SE, SE + MATERN32, RAMP * SE])
def test_an_unknown_estimator_is_refused(kernel):
    with pytest.raises(UserError, match="there is no estimator 'orthogonol'; did you mean 'orthogonal'"):
        kernel.features(jax.random.key(0), 16, "orthogonol")
