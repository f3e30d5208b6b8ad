import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.numerics import cos, exp, products, sin, squared_distances


@pytest.mark.parametrize(("fast", "exact"), [(cos, np.cos), (sin, np.sin)])
def test_float32_is_accurate_to_1e_6_up_to_a_thousand(fast, exact):
    x = np.linspace(-1000, 1000, 200_001, dtype=np.float32)
    error = np.abs(np.asarray(fast(jnp.asarray(x))) - exact(x.astype(np.float64)))
    assert error.max() < 1e-6


@pytest.mark.parametrize(("fast", "exact"), [(cos, jnp.cos), (sin, jnp.sin)])
def test_float64_is_exact(fast, exact):
    x = jnp.linspace(-10, 10, 1001)
    assert np.array_equal(fast(x), exact(x))


@pytest.mark.parametrize(("fast", "slope"), [(cos, lambda x: -np.sin(x)), (sin, np.cos)])
def test_the_gradient_is_right_also_at_zero(fast, slope):
    x = jnp.arange(-50, 51).astype(jnp.float32) * 0.12
    found = jax.vmap(jax.grad(lambda v: fast(v[None])[0]))(x)
    np.testing.assert_allclose(found, slope(np.asarray(x, np.float64)), atol=3e-5)


@pytest.mark.parametrize("fast", [cos, sin])
def test_beyond_all_digits_the_result_is_still_bounded(fast):
    x = jnp.asarray([1e8, -1e10, 1e20, 3e38], jnp.float32)
    assert np.all(np.abs(fast(x)) <= 1 + 1e-6)


def test_exp_is_accurate_to_1e_7_down_to_the_smallest_numbers():
    """Relative, in float32; exactly 1 at 0, and exactly 0 where float32 ends. What is no number stays none."""
    x = np.linspace(-87, 0, 1_000_001, dtype=np.float32)
    error = np.asarray(exp(jnp.asarray(x))) / np.exp(x.astype(np.float64)) - 1
    assert np.abs(error).max() < 1e-7
    assert np.array_equal(exp(jnp.asarray([0.0, -0.0, -89.0, -1e30, -np.inf], jnp.float32)), [1, 1, 0, 0, 0])
    assert np.isnan(exp(jnp.asarray([np.nan], jnp.float32))[0])


def test_exp_is_its_own_slope():
    """To the last bit, both ways, also where it is 0."""
    x = jnp.asarray([0.0, -0.3, -5.0, -80.0, -1e30], jnp.float32)
    for slope in (jax.vmap(jax.grad(exp)), lambda x: jax.jvp(exp, (x,), (jnp.ones_like(x),))[1]):
        assert np.array_equal(slope(x), exp(x))


@pytest.mark.parametrize("shape", [(3,), (3, 7)])
def test_sums_over_the_numbers_of_an_input_are_those_of_numpy(shape):
    """One query, or several as columns; to 1e-12 in double precision."""
    rng = np.random.default_rng(0)
    rows, query = rng.normal(size=(5, 3)), rng.normal(size=shape)
    apart = rows.reshape(5, 3, *(1,) * (len(shape) - 1)) - query[None]
    for found, expected in ((products, rows @ query), (squared_distances, (apart**2).sum(1))):
        np.testing.assert_allclose(found(jnp.asarray(rows), jnp.asarray(query)), expected, atol=1e-12)


@pytest.mark.parametrize("mode", [jax.jacrev, jax.jacfwd])
def test_slopes_of_those_sums_in_rows_and_query(mode):
    """To 1e-12, in both modes."""
    rng = np.random.default_rng(0)
    rows, query = rng.normal(size=(5, 3)), rng.normal(size=3)
    same = np.eye(5)[:, :, None]
    in_rows, in_query = mode(products, argnums=(0, 1))(jnp.asarray(rows), jnp.asarray(query))
    np.testing.assert_allclose(in_rows, same * query, atol=1e-12)
    np.testing.assert_allclose(in_query, rows, atol=1e-12)
    in_rows, in_query = mode(squared_distances, argnums=(0, 1))(jnp.asarray(rows), jnp.asarray(query))
    np.testing.assert_allclose(in_rows, same * 2 * (rows - query)[:, None], atol=1e-12)
    np.testing.assert_allclose(in_query, -2 * (rows - query), atol=1e-12)


def test_squared_distances_of_close_points_keep_their_digits():
    """1e-3 apart and 100 away from the origin: 1e-6 in single precision to one part in 100; a product would lose it."""
    one = jnp.full((1, 2), 100.0, jnp.float32)
    other = jnp.asarray([100.0, 100.0 + 2.0**-10], jnp.float32)
    np.testing.assert_allclose(squared_distances(one, other), [2.0**-20], rtol=1e-2)
