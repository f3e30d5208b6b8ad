"""The numbers behind the figure: what the paper says of truncated samples holds for every one of them."""

import io

import matplotlib.image
import numpy as np
import pytest

from sbsrl.report.figures import Request
from sbsrl.report.gp_samples import BOUND, KERNEL, NOISE, SAMPLES, files, simulate

SLACK = 1e-9
"""For rounding."""


@pytest.fixture(params=[0, 1, 2], scope="module")
def numbers(request):
    return simulate(request.param)


def test_truncated_samples_lie_within_the_prior_bound_and_the_envelope(numbers):
    assert np.all(np.abs(numbers.truncated) <= BOUND + SLACK)
    for kept, low, high in zip(numbers.truncated, numbers.low, numbers.high, strict=True):
        assert np.all((low - SLACK <= kept) & (kept <= high + SLACK))


def test_envelopes_are_nested(numbers):
    np.testing.assert_allclose(numbers.high[0], BOUND)
    np.testing.assert_allclose(numbers.low[0], -BOUND)
    assert np.all(numbers.low[1] >= numbers.low[0])
    assert np.all(numbers.high[1] <= numbers.high[0])


def test_the_envelope_is_that_of_the_textbook(numbers):
    """mu_1 and sigma_1 by solving with the Gram matrix; beta_1 from the information of the data, delta = 0.1."""
    scale = np.asarray(KERNEL.lengthscales)
    k = lambda u, v: np.exp(-0.5 * ((u[:, None] - v[None]) / scale) ** 2)  # noqa: E731
    noisy = k(numbers.inputs, numbers.inputs) + NOISE**2 * np.eye(len(numbers.inputs))
    cross = k(numbers.grid, numbers.inputs)
    mean = cross @ np.linalg.solve(noisy, numbers.targets)
    deviation = np.sqrt(1 - np.sum(cross * np.linalg.solve(noisy, cross.T).T, axis=1))
    information = 0.5 * np.linalg.slogdet(noisy / NOISE**2)[1]
    beta = BOUND + np.sqrt(2 * (information + 1 + np.log(1 / 0.1)))
    np.testing.assert_allclose(numbers.beta, [BOUND, beta])
    np.testing.assert_allclose(numbers.high[1], np.minimum(BOUND, mean + beta * deviation), atol=1e-8)
    np.testing.assert_allclose(numbers.low[1], np.maximum(-BOUND, mean - beta * deviation), atol=1e-8)


def test_the_recursion_of_the_paper_gives_the_same_samples(numbers):
    """f_n = clip(f_{n-1}, mu_n -+ beta_n sigma_n): here the second clip to the first episode's survivors."""
    again = np.clip(numbers.truncated[0], numbers.low[1], numbers.high[1])
    np.testing.assert_allclose(again, numbers.truncated[1], atol=1e-12)


def test_truncation_never_moves_a_sample_away_from_a_truth_inside(numbers):
    """At every input and for every sample, wherever the truth is within the envelope."""
    before = np.abs(numbers.prior - numbers.truth)
    for kept, low, high in zip(numbers.truncated, numbers.low, numbers.high, strict=True):
        inside = (low <= numbers.truth) & (numbers.truth <= high)
        after = np.abs(kept - numbers.truth)
        assert np.all((after <= before + SLACK)[:, inside])
        before = after


def test_the_closest_sample_stays_as_close_or_comes_closer(numbers):
    assert numbers.calibrated  # of these seeds; then the lemma applies
    own = numbers.distances[:, numbers.closest]
    assert own[0] == numbers.distances[0].min()
    assert np.all(np.diff(own) <= SLACK)


def test_truncation_is_active_in_both_episodes(numbers):
    changed = [
        np.any(numbers.truncated[0] != numbers.prior, axis=1),
        np.any(np.diff(numbers.truncated, axis=0)[0], axis=1),
    ]
    assert all(np.sum(samples) >= 3 for samples in changed)
    assert len(numbers.prior) == SAMPLES


def test_the_samples_are_smooth(numbers):
    """Drawn along a fine grid in order, where careless conditioning breaks down: |f''| is about 1.7 / l^2 at most."""
    step = numbers.grid[1]
    curvature = np.diff(numbers.prior, 2, axis=1) / step**2
    assert np.abs(curvature).max() < 10 / float(KERNEL.lengthscales[0]) ** 2


def test_the_default_figure_tells_the_story():
    """The sample closest at first is the closest still, and has come closer."""
    distances = simulate(0).distances
    assert distances[0].argmin() == distances[2].argmin()
    assert distances[2].min() < 0.8 * distances[0].min()


def test_the_files_are_a_picture_its_numbers_and_an_explanation():
    made = files(Request("gp-samples"))
    picture = matplotlib.image.imread(io.BytesIO(made["gp-samples.png"]))
    height, width, _ = picture.shape
    assert width >= 1200
    assert height >= 500
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 100
    with np.load(io.BytesIO(made["gp-samples.npz"]), allow_pickle=False) as saved:
        np.testing.assert_array_equal(saved["prior"], simulate(0).prior)
        np.testing.assert_array_equal(saved["distances"], simulate(0).distances)
    text = made["README.md"].decode()
    assert "sbsrl reproduce gp-samples --seed 0" in text
    assert f"{simulate(0).distances[2].min():.4f}" in text
