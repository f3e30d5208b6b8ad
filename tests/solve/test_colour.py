import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.solve.colour import coloured_basis, coloured_noise


@pytest.mark.parametrize("length", [2, 5, 20, 30])
@pytest.mark.parametrize("exponent", [0.0, 0.25, 1.0, 2.0, 3.5])
def test_every_step_has_unit_variance(length, exponent):
    basis = coloured_basis(length, exponent)
    assert basis.shape == (length, length)
    np.testing.assert_allclose(np.sum(basis**2, axis=1), 1, rtol=1e-12)


def test_exponent_0_is_nearly_white():
    """The Fourier vectors are orthogonal; only the constant and the highest one weigh differently."""
    covariance = coloured_basis(20, 0.0) @ coloured_basis(20, 0.0).T
    assert np.abs(covariance - np.eye(20)).max() < 0.1


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_the_power_spectrum_falls_with_the_exponent(exponent, getkey):
    """Slope of log power over log frequency, from 20000 sequences: standard error below 0.01."""
    noise = np.asarray(coloured_noise(getkey(), 20_000, coloured_basis(64, exponent), 1, jnp.float64))[:, :, 0]
    power = np.mean(np.abs(np.fft.rfft(noise, axis=1)) ** 2, axis=0)[1:-1]
    slope = np.polyfit(np.log(np.arange(1, 32)), np.log(power), 1)[0]
    assert abs(slope + exponent) < 0.05


def test_action_dimensions_and_sequences_are_independent(getkey):
    noise = np.asarray(coloured_noise(getkey(), 20_000, coloured_basis(8, 2.0), 2, jnp.float64))
    assert noise.shape == (20_000, 8, 2)
    assert abs(np.corrcoef(noise[:, 3, 0], noise[:, 3, 1])[0, 1]) < 0.03
    assert abs(np.corrcoef(noise[::2, 3, 0], noise[1::2, 3, 0])[0, 1]) < 0.03
