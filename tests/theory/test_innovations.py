"""Whether observations are as foretold, against draws from the Gaussian process itself."""

import numpy as np
import pytest
from scipy.stats import chi2

from sbsrl.theory.innovations import tails


def observed(rng, truth_scale=1.0):
    """Q_n of 30 observations of a draw, at inputs that depend on the answers before."""
    z, y = np.array([0.0]), np.array([])
    noise, key = 0.1, rng.normal(size=30)

    def gram(u, v):
        return np.exp(-0.5 * (u[:, None] - v[None]) ** 2)

    for e in key:
        past, now = z[:-1], z[-1:]
        k = gram(past, past) + noise**2 * np.eye(len(past))
        c = gram(past, now)[:, 0]
        mean = c @ np.linalg.solve(k, y) if len(past) else 0.0
        variance = 1 + noise**2 - (c @ np.linalg.solve(k, c) if len(past) else 0.0)
        y = np.append(y, mean + truth_scale * np.sqrt(variance) * e)
        z = np.append(z, np.tanh(y[-1]) + 0.1 * len(y))
    k = gram(z[:-1], z[:-1]) + noise**2 * np.eye(30)
    return y @ np.linalg.solve(k, y)


def test_of_draws_each_tail_is_as_frequent_as_it_says():
    """Uniform on [0, 1]: 1000 draws, each quarter to 3 standard errors."""
    rng = np.random.default_rng(0)
    found = np.array([tails(30, observed(rng)) for _ in range(1000)])
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    shares = np.histogram(found[:, 0], [0, 0.25, 0.5, 0.75, 1])[0] / 1000
    np.testing.assert_allclose(shares, 0.25, atol=3 * np.sqrt(0.1875 / 1000))


def test_a_belief_that_is_too_sure_or_too_careful_shows():
    rng = np.random.default_rng(1)
    assert tails(30, observed(rng, truth_scale=2.0)).farther < 1e-3
    assert tails(30, observed(rng, truth_scale=0.3)).nearer < 1e-3


def test_the_tails_are_those_of_chi_square():
    assert tails(50, chi2.isf(0.02, 50)).farther == pytest.approx(0.02, rel=1e-9)
