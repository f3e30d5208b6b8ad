"""The corrected width covers, the paper's does not."""

import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.kernels import Linear, SquaredExponential
from sbsrl.kernels.base import gram
from sbsrl.laboratory.coverage import _function_of_norm, coverage


@pytest.mark.parametrize(("kernel", "bound"), [(Linear((1.0,)), 0.0), (SquaredExponential((0.5,)), 1.0)])
def test_with_little_noise_only_the_corrected_width_covers(kernel, bound):
    """delta = 0.1 in 60 runs: the corrected sets hold in nearly all, the paper's in almost none."""
    corrected, paper = coverage(kernel, 0.1, bound, 60, 0)
    assert (corrected.convention, paper.convention) == ("corrected", "paper")
    assert corrected.covered.trials == paper.covered.trials == 60
    assert corrected.covered.rate >= 0.95
    assert paper.covered.interval()[1] < 1 - paper.delta
    assert paper.covered.rate < 0.3
    assert corrected.width - bound == pytest.approx(10 * (paper.width - bound))


def test_with_unit_noise_the_two_are_the_same():
    corrected, paper = coverage(Linear((1.0,)), 1.0, 1.0, 20, 0)
    assert corrected._replace(convention="paper") == paper
    assert corrected.covered.hits == 20


def test_the_truth_has_the_norm_that_it_should_have():
    """f = K a: a^T K a = f^T K^-1 f, on inputs far enough apart for K to be inverted."""
    inputs = jnp.linspace(-1, 1, 6)[:, None]
    prior = np.asarray(gram(SquaredExponential((0.3,)), inputs, inputs))
    f = _function_of_norm(prior, 0.7, np.random.default_rng(0))
    assert f @ np.linalg.solve(prior, f) == pytest.approx(0.49, rel=1e-9)
    assert not np.any(_function_of_norm(prior, 0.0, np.random.default_rng(0)))
