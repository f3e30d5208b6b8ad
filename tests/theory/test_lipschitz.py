"""Continuity of a posterior that is computed here, and of what policies see on it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbsrl import UserError
from sbsrl.kernels import Matern, SquaredExponential
from sbsrl.theory import EpisodeShape, kernel_lipschitz, mean_lipschitz, perturbation_bound, uncertainty_holder


def rough(u, v):
    return np.exp(-np.linalg.norm(u[:, None] - v, axis=-1))


def smooth(u, v):
    return np.exp(-np.sum((u[:, None] - v) ** 2, axis=-1) / (2 * 0.5**2))


KERNELS = [(rough, Matern((1.0, 1.0), 0.5)), (smooth, SquaredExponential((0.5, 0.5)))]
seeds = st.integers(0, 10**6)


def posterior(k, inputs, targets, noise, z):
    solved = np.linalg.solve(k(inputs, inputs) + noise**2 * np.eye(len(inputs)), k(inputs, z))
    return solved.T @ targets, np.sqrt(np.maximum(1 - np.sum(solved * k(inputs, z), axis=0), 0))


def pairs(rng, near):
    z = rng.uniform(-1, 1, (200, 2))
    other = z + near * rng.normal(size=z.shape)
    return z, other, np.linalg.norm(z - other, axis=1)


@pytest.mark.parametrize(("k", "kernel"), KERNELS)
@given(seed=seeds, noise=st.floats(0.01, 1), near=st.floats(1e-4, 1), outputs=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_the_uncertainty_never_moves_by_more_than_the_root_of_the_distance(k, kernel, seed, noise, near, outputs):
    """s_n = sqrt(d_x) sigma_n with one kernel for all outputs; 20 points of data."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-1, 1, (20, 2))
    z, other, distance = pairs(rng, near)
    before, after = (math.sqrt(outputs) * posterior(k, inputs, np.zeros(20), noise, x)[1] for x in (z, other))
    constant = uncertainty_holder(kernel_lipschitz(kernel, (1.0, 1.0)), outputs)
    assert np.all(np.abs(before - after) <= constant * np.sqrt(distance) * (1 + 1e-9) + 1e-7)


def test_a_rough_posterior_comes_close_to_the_bound():
    """Matern 1/2 beside a point without noise: sigma(z) = sqrt(1 - exp(-2 r)), L_s = sqrt 2; to 1 % at r = 0.01."""
    point, beside = np.zeros((1, 2)), np.array([[0.01, 0.0]])
    sigma = posterior(rough, point, np.zeros(1), 1e-6, beside)[1][0]
    bound = uncertainty_holder(kernel_lipschitz(KERNELS[0][1], (1.0, 1.0)), 1) * math.sqrt(0.01)
    assert 0.99 * bound <= sigma <= bound


@pytest.mark.parametrize(("k", "kernel"), KERNELS)
@given(seed=seeds, noise=st.floats(0.05, 1), near=st.floats(1e-4, 1), slope=st.floats(0, 3))
@settings(max_examples=30, deadline=None)
def test_the_mean_is_never_steeper_than_its_constant(k, kernel, seed, noise, near, slope):
    """Prior mean slope |z|, 15 points, 2 outputs."""
    rng = np.random.default_rng(seed)
    inputs, residuals = rng.uniform(-1, 1, (15, 2)), rng.normal(size=(15, 2))
    z, other, distance = pairs(rng, near)
    means = [
        posterior(k, inputs, residuals, noise, x)[0] + slope * np.linalg.norm(x, axis=1)[:, None] for x in (z, other)
    ]
    constant = mean_lipschitz(slope, kernel_lipschitz(kernel, (1.0, 1.0)), residuals, noise)
    assert np.all(np.linalg.norm(means[0] - means[1], axis=1) <= constant * distance * (1 + 1e-9))


def test_the_constant_of_the_mean_in_closed_form():
    """Outputs 3, 4 and 12, 5 of 2 points: sqrt((1 + sqrt 2 0.5 5 / 0.04)^2 + (1 + sqrt 2 0.5 13 / 0.04)^2)."""
    residuals = np.array([[3.0, 12.0], [4.0, 5.0]])
    each = [1 + math.sqrt(2) * 0.5 * length / 0.04 for length in (5, 13)]
    assert mean_lipschitz(1.0, 0.5, residuals, 0.2) == pytest.approx(math.hypot(*each), rel=1e-12)
    assert mean_lipschitz(1.0, 0.5, np.zeros((0, 3)), 0.2) == pytest.approx(math.sqrt(3))


def test_a_policy_beside_another_never_sees_more_than_the_bound():
    """x' = mu(x, a) + w, a constant action against one that is e larger: 20000 common draws; 4 standard errors."""
    rng = np.random.default_rng(0)
    inputs, residuals, noise, horizon = rng.uniform(-1, 1, (10, 2)), rng.normal(size=(10, 1)), 0.5, 4
    draws = noise * rng.normal(size=(horizon, 20_000))
    kernel = KERNELS[0][1]
    constants = (
        uncertainty_holder(kernel_lipschitz(kernel, (1.0, 1.0)), 1),
        mean_lipschitz(0.0, kernel_lipschitz(kernel, (1.0, 1.0)), residuals, noise),
    )

    def seen(action):
        x, total = np.zeros(draws.shape[1]), np.zeros(draws.shape[1])
        for w in draws:
            mean, sigma = posterior(rough, inputs, residuals, noise, np.stack([x, np.full_like(x, action)], axis=1))
            x, total = mean[:, 0] + w, total + sigma
        return total

    for distance in (0.01, 0.5):
        gap = seen(0.2 + distance) - seen(0.2)
        bound = perturbation_bound(distance, *constants, 1.0, EpisodeShape(horizon, 1, noise, 1.0))
        assert abs(gap.mean()) + 4 * gap.std() / math.sqrt(len(gap)) <= bound


def test_the_perturbation_in_closed_form():
    """sqrt(e) T (L_s + T L_mu sqrt(d_x sigma_max e) / sigma_w)."""
    found = perturbation_bound(0.04, 3.0, 5.0, 0.25, EpisodeShape(10, 4, 0.1, 1.0))
    assert found == pytest.approx(0.2 * 10 * (3 + 10 * 5 * math.sqrt(4 * 0.25 * 0.04) / 0.1), rel=1e-12)
    assert perturbation_bound(0.0, 3.0, 5.0, 0.25, EpisodeShape(10, 4, 0.1, 1.0)) == 0


TASK = EpisodeShape(10, 1, 0.1, 1.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: uncertainty_holder(-1.0, 1), "L_k=-1 must be finite and at least 0"),
        (lambda: uncertainty_holder(1.0, 0), "the number of outputs=0 must be a whole number"),
        (lambda: mean_lipschitz(-1.0, 1.0, np.zeros((1, 1)), 0.1), "L_mu=-1 must be finite"),
        (lambda: mean_lipschitz(1.0, -1.0, np.zeros((1, 1)), 0.1), "L_k=-1 must be finite"),
        (lambda: mean_lipschitz(1.0, 1.0, np.zeros((1, 1)), 0.0), "sigma_w=0 must be positive"),
        (lambda: perturbation_bound(-1.0, 1.0, 1.0, 1.0, TASK), "the distance of the policies=-1 must be finite"),
        (lambda: perturbation_bound(1.0, -1.0, 1.0, 1.0, TASK), "L_s=-1 must be finite"),
        (lambda: perturbation_bound(1.0, 1.0, -1.0, 1.0, TASK), "L_mu=-1 must be finite"),
        (lambda: perturbation_bound(1.0, 1.0, 1.0, -1.0, TASK), "sigma_max=-1 must be finite"),
        (lambda: perturbation_bound(1.0, 1.0, 1.0, 1.0, TASK._replace(noise=0.0)), "sigma_w=0 must be positive"),
    ],
)
def test_what_makes_no_sense_is_explained(call, said):
    with pytest.raises(UserError, match=said) as error:
        call()
    assert "\n" not in str(error.value)
