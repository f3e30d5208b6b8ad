"""The density of a squashed Gaussian is a density, and that of what is drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from sbsrl.solve.actor_critic.squashed import draw


def log_density(shares, mean, log_std):
    """Of given actions of one dimension: the noise that leads to them is put in."""
    noise = (np.arctanh(shares) - mean) / np.exp(log_std)
    column = lambda values: jnp.asarray(np.broadcast_to(values, shares.shape), jnp.float32)[:, None]  # noqa: E731
    return np.asarray(draw(column(mean), jnp.float32([log_std]), column(noise)).log_density, float)


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.8, -1.0), (-1.5, -0.5)])
def test_it_integrates_to_one(mean, log_std):
    """Trapezoids over (-1, 1): 2e-3."""
    shares = np.tanh(np.linspace(-9, 9, 20001))
    assert np.trapezoid(np.exp(log_density(shares, mean, log_std)), shares) == pytest.approx(1, abs=2e-3)


def test_the_entropy_of_what_is_drawn_is_that_of_the_gaussian_and_the_mean_log_slope():
    """E[-log pi] = H(Gaussian) + E[log(1 - tanh^2 u)], over 200,000 draws: 0.01."""
    noise = jax.random.normal(jax.random.key(0), (200_000, 1), jnp.float32)
    drawn = draw(jnp.full_like(noise, 0.3), jnp.float32([-0.7]), noise)
    u = 0.3 + np.exp(-0.7) * np.asarray(noise, float)
    wanted = norm(0.3, np.exp(-0.7)).entropy() + np.mean(np.log(1 - np.tanh(u) ** 2))
    assert float(-jnp.mean(drawn.log_density)) == pytest.approx(wanted, abs=0.01)


def test_dimensions_add_and_far_tails_are_finite():
    noise = jnp.float32([[0.5, -1.0], [0.0, 0.0]])
    mean, log_std = jnp.float32([[0.2, 0.4], [40.0, -40.0]]), jnp.float32([-1.0, 0.5])
    whole = draw(mean, log_std, noise).log_density
    parts = [draw(mean[:, i : i + 1], log_std[i : i + 1], noise[:, i : i + 1]).log_density for i in (0, 1)]
    np.testing.assert_allclose(whole, parts[0] + parts[1], rtol=1e-6)
    assert np.all(np.isfinite(whole))
