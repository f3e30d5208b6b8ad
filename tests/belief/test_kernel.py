import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.kernel import (
    BLOCK,
    augment,
    fourier_features,
    fourier_frequencies,
    gram,
    padded_size,
    weighted_sum,
)


def naive(u, v):
    return np.array([[np.exp(-0.5 * np.sum((a - b) ** 2)) for b in v] for a in u])


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(40, 3))


def test_gram_is_the_squared_exponential(points):
    np.testing.assert_allclose(gram(jnp.asarray(points), jnp.asarray(points)), naive(points, points), rtol=1e-14)


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_weighted_sum_is_the_plain_sum_over_the_first_points(count):
    rng = np.random.default_rng(count)
    inputs = rng.normal(size=(3 * BLOCK, 4))
    weights = rng.normal(size=(3 * BLOCK, 2)) * (np.arange(3 * BLOCK) < count)[:, None]
    z = rng.normal(size=4)
    found = weighted_sum(jnp.asarray(z), augment(jnp.asarray(inputs)), jnp.asarray(weights), jnp.int32(count))
    np.testing.assert_allclose(found, naive([z], inputs)[0] @ weights, atol=1e-12)


@pytest.mark.parametrize(("points", "size"), [(0, BLOCK), (1, BLOCK), (BLOCK, BLOCK), (BLOCK + 1, 2 * BLOCK)])
def test_padded_size(points, size):
    assert padded_size(points) == size


def test_fourier_features_reproduce_the_kernel_on_average(points, getkey):
    """The mean over 4000 draws of 8 frequencies: standard error below 0.006, tolerance four of them."""
    u, v = jnp.asarray(points[:5]), jnp.asarray(points[5:10])

    def product(key):
        omega = fourier_frequencies(key, 3, 16, jnp.float64)
        features = lambda z: fourier_features(z, omega)  # noqa: E731
        return jax.vmap(features)(u) @ jax.vmap(features)(v).T

    mean = np.mean(jax.vmap(product)(jax.random.split(getkey(), 4000)), axis=0)
    np.testing.assert_allclose(mean, naive(points[:5], points[5:10]), atol=0.024)


def test_fourier_features_have_unit_length(points, getkey):
    omega = fourier_frequencies(getkey(), 3, 64, jnp.float64)
    for z in points[:5]:
        np.testing.assert_allclose(np.sum(np.square(fourier_features(jnp.asarray(z), omega))), 1, rtol=1e-12)
