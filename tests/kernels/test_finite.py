import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.kernels import Clip, FiniteRank, Linear, gram

SCALES = np.array([0.5, 2.0, 1.3])
LINEAR = Linear(SCALES)


def waves(z):
    return jnp.concatenate([jnp.cos(z), jnp.sin(2 * z)])


WAVES = FiniteRank(waves, size=6, bound=6.0)
COMPOSITES = {
    "linear": (LINEAR, 3),
    "waves": (WAVES, 6),
    "sum": (LINEAR + WAVES, 9),
    "product": (LINEAR * WAVES, 18),
    "scaled": (2.5 * LINEAR, 3),
    "on": (WAVES.on(Clip((1.0, 1.0, 1.0))), 6),
    "nested": ((LINEAR + 0.3 * WAVES).on(Clip((1.0, 2.0, 3.0))) * LINEAR, 27),
}


jitted_gram = eqx.filter_jit(gram)


@pytest.fixture
def points():
    return 2 * np.random.default_rng(0).normal(size=(20, 3))


def test_linear(points):
    found = jitted_gram(LINEAR, jnp.asarray(points), jnp.asarray(points))
    np.testing.assert_allclose(found, points / SCALES**2 @ points.T, rtol=1e-12, atol=1e-12)


def test_finite_rank_is_the_product_of_the_users_features(points):
    features = np.hstack([np.cos(points), np.sin(2 * points)])
    found = jitted_gram(WAVES, jnp.asarray(points), jnp.asarray(points))
    np.testing.assert_allclose(found, features @ features.T, atol=1e-13)


@pytest.mark.parametrize(("kernel", "rank"), COMPOSITES.values(), ids=COMPOSITES)
def test_exact_features_reproduce_the_kernel_and_are_as_many_as_its_rank(kernel, rank, points):
    """Relative to the largest value, 1e-12. The key, the size and the estimator do not matter."""
    u = jnp.asarray(points)
    phi = jax.jit(jax.vmap(kernel.features(jax.random.key(0), 0, "phased")))(u)
    exact = jitted_gram(kernel, u, u)
    assert phi.shape == (20, kernel.rank) == (20, rank)
    assert np.abs(phi @ phi.T - exact).max() < 1e-12 * np.abs(exact).max()


def test_exact_features_follow_the_precision_of_the_input():
    assert WAVES.features(jax.random.key(0), 0)(jnp.ones(3, jnp.float32)).dtype == jnp.float32


def test_the_supremum_of_a_linear_kernel_is_attained_in_a_corner(points):
    limits = (1.0, 2.0, 3.0)
    inside = np.clip(points, -np.array(limits), limits)
    corner = jnp.asarray(limits)
    np.testing.assert_allclose(LINEAR.supremum(limits), LINEAR(corner, corner), rtol=1e-14)
    assert np.diag(jitted_gram(LINEAR, jnp.asarray(inside), jnp.asarray(inside))).max() <= LINEAR.supremum(limits)


@pytest.mark.parametrize("limits", [None, (1.0, np.inf, 1.0)])
def test_the_supremum_of_a_linear_kernel_is_infinite_if_an_input_is_unbounded(limits):
    assert LINEAR.supremum(limits) == np.inf


def test_the_supremum_of_the_users_features_is_the_users():
    assert WAVES.supremum() == 6
    assert FiniteRank(waves, 6).supremum((1.0, 1.0, 1.0)) == np.inf


def test_length_scales_that_are_not_positive_are_refused():
    with pytest.raises(UserError, match="length scales must be positive and finite"):
        Linear((1.0, -1.0))


def test_a_kernel_of_finite_rank_has_no_phases():
    with pytest.raises(UserError, match=r"Linear\(.*has no spectral density"):
        LINEAR.phases(jax.random.key(0), 4, "paired")


def test_descriptions_name_the_parameters():
    assert Linear((1.0, 0.25)).describe() == "Linear([1, 0.25])"
    assert WAVES.describe() == "FiniteRank(waves, 6)"


def test_features_of_another_number_than_promised_are_refused():
    kernel = FiniteRank(lambda z: z, 5)
    with pytest.raises(UserError, match="promises 5 features and gives the shape"):
        kernel(jnp.ones(2), jnp.ones(2))
