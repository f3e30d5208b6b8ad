import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.numerics import cos, sin


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
