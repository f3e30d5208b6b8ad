"""How much uncertainty is left, and how many episodes there can be."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbsrl import UserError
from sbsrl.kernels import Matern
from sbsrl.theory import (
    VARIANCE_SUM_FACTORS,
    EpisodeShape,
    confidence_width,
    episode_bound,
    exploration_threshold,
    information_gain,
    rank_gain,
    return_factor,
    uncertainty_factor,
    variance_sum,
)

seeds = st.integers(0, 10**6)


def variances(points, scale, noise, size, batch=1):
    """sigma_i^2(z_i) given all points of the batches before, of a squared exponential of variance `size`."""
    K = size * np.exp(-((points[:, None] - points) ** 2) / (2 * scale**2))
    found = []
    for i in range(len(points)):
        n = i // batch * batch
        solved = np.linalg.solve(K[:n, :n] + noise**2 * np.eye(n), K[:n, i])
        found.append(K[i, i] - K[i, :n] @ solved)
    gain = np.linalg.slogdet(np.eye(len(points)) + K / noise**2)[1] / 2
    return np.array(found), gain


@given(seed=seeds, noise=st.floats(0.05, 3), size=st.floats(0.01, 10), scale=st.floats(0.05, 2))
@settings(max_examples=60, deadline=None)
def test_the_variances_never_sum_to_more_than_the_bound(seed, noise, size, scale):
    """25 random points, each given those before; gamma is the gain of these points."""
    found, gain = variances(np.random.default_rng(seed).uniform(-1, 1, 25), scale, noise, size)
    assert found.sum() <= variance_sum(gain, size, noise) * (1 + 1e-9)


@given(seed=seeds, noise=st.floats(0.05, 3), batch=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_given_only_the_episodes_before_they_sum_to_no_more_than_the_bound_times_the_horizon(seed, noise, batch):
    found, gain = variances(np.random.default_rng(seed).uniform(-1, 1, 20), 0.5, noise, 1.0, batch)
    assert found.sum() <= batch * variance_sum(gain, 1.0, noise) * (1 + 1e-9)


@pytest.mark.parametrize("noise", [0.1, 1.0, 10.0])
def test_the_factor_of_2_is_needed(noise):
    """Independent points: the sum is N and the bound is attained with the factor 2, so half of it is too small."""
    found, gain = variances(100.0 * np.arange(10), 1.0, noise, 1.0)
    assert found.sum() == pytest.approx(variance_sum(gain, 1.0, noise), rel=1e-9)
    assert variance_sum(gain, 1.0, noise, VARIANCE_SUM_FACTORS["paper"]) == pytest.approx(found.sum() / 2, rel=1e-9)
    assert VARIANCE_SUM_FACTORS["derived"] == 2


TASK = EpisodeShape(10, 3, 0.1, 1.0, delay=0)


def test_the_threshold_in_closed_form():
    """epsilon sigma_w / (2 G_max T beta_n) in the paper; sqrt(2 pi) T / (T - 1) times as much by coupling."""
    paper = exploration_threshold(0.5, 4.0, TASK, "paper")
    assert paper == pytest.approx(0.5 * 0.1 / (2 * 10 * 4), rel=1e-12)
    assert exploration_threshold(0.5, 4.0, TASK) == pytest.approx(paper * math.sqrt(2 * math.pi) * 10 / 9, rel=1e-12)


@pytest.mark.parametrize("form", ["sharp", "paper"])
def test_the_threshold_leaves_returns_known_to_epsilon(form):
    """2 lambda d = epsilon for costs and half of it for rewards, which are summed however costs are aggregated."""
    for task in (TASK, TASK._replace(aggregation="statewise"), TASK._replace(delay=1)):
        threshold = exploration_threshold(0.5, 4.0, task, form)
        summed = return_factor(4.0, task._replace(aggregation="sum"), form)
        assert 2 * summed * threshold == pytest.approx(0.5, rel=1e-12)
        assert 2 * return_factor(4.0, task, form) * threshold <= 0.5 * (1 + 1e-12)


def test_where_nothing_depends_on_the_model_nothing_need_be_explored():
    """T = 1 and costs c(x_0, a_0)."""
    once = TASK._replace(horizon=1)
    assert exploration_threshold(0.5, 4.0, once) == math.inf
    assert episode_bound(0.5, 0.05, lambda n: 4.0, lambda N: 1.0, 1.0, once) == 1


def test_the_uncertainty_is_a_return_with_its_own_largest_value():
    """sqrt(d_x sigma_max) T beta / sigma_w in the paper; counted before the step, and summed."""
    assert uncertainty_factor(4.0, 0.25, TASK, "paper") == pytest.approx(math.sqrt(0.75) * 10 * 4 / 0.1, rel=1e-12)
    sharp = math.sqrt(0.75) * 9 * 4 / (0.1 * math.sqrt(2 * math.pi))
    for task in (TASK, TASK._replace(delay=1), TASK._replace(aggregation="statewise"), TASK._replace(most=7.0)):
        assert uncertainty_factor(4.0, 0.25, task) == pytest.approx(sharp, rel=1e-12)


@pytest.mark.parametrize(
    ("T", "noise", "convention", "factor", "expected"),
    [
        (10, 0.1, "paper", 1.0, 8.7e10),
        (10, 0.1, "corrected", 2.0, 2.9e14),
        (50, 0.01, "paper", 1.0, 4.7e17),
        (50, 0.01, "corrected", 2.0, 4.1e22),
    ],
)
def test_the_numbers_of_episodes_of_the_notes(T, noise, convention, factor, expected):
    """Linear in 4 inputs, d_x = 3, G = B = epsilon = 1, delta = 0.05, sigma_max = 0.01; to two digits."""
    task = EpisodeShape(T, 3, noise, 1.0, delay=0)

    def gain(points):
        return rank_gain(4, 0.01, noise, points)

    def width(n):
        return float(confidence_width(jnp.asarray(gain(n * T)), 1.0, jnp.asarray(noise), 3, 0.05, convention))

    found = episode_bound(1.0, 0.05, width, gain, 0.01, task, "paper", factor)
    assert found == pytest.approx(expected, rel=0.02)
    assert episode_bound(1.0, 0.05, width, gain, 0.01, task, "sharp", factor) < found


def bound_by_hand(n, epsilon, delta, beta, gamma, supremum, task, factor):
    """4 T^4 (1 + lambda)^2 G^2 beta^2 / (epsilon^2 sigma_w^2) (sqrt(kappa ..) + sqrt(..))^2, as the notes have it."""
    lam = math.sqrt(task.outputs * supremum) * task.horizon * beta / task.noise
    spread = math.sqrt(factor * task.outputs * supremum * gamma / math.log(1 + supremum / task.noise**2)) + math.sqrt(
        2 * task.outputs * supremum * math.log(1 / delta)
    )
    scale = 2 * task.horizon**2 * (1 + lam) * task.most * beta / (epsilon * task.noise)
    return (scale * spread) ** 2


@pytest.mark.parametrize("epsilon", [3.0, 30.0, 300.0, 1e4])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_bound_is_the_smallest_number_that_violates_the_inequality(epsilon, factor):
    """Of the notes, squared; found by trying n and n - 1, from 1 to thousands of episodes."""
    task = EpisodeShape(2, 1, 1.0, 1.0, delay=0)

    def gain(points):
        return rank_gain(2, 1.0, 1.0, points)

    def goes_on(n):
        return n <= bound_by_hand(n, epsilon, 0.1, 1 + 0.1 * math.log(n), gain(n * 2), 1.0, task, factor)

    found = episode_bound(epsilon, 0.1, lambda n: 1 + 0.1 * math.log(n), gain, 1.0, task, "paper", factor)
    assert not goes_on(found)
    assert found == 1 or goes_on(found - 1)


@given(epsilon=st.floats(0.1, 10), less=st.floats(0.1, 1), delta=st.floats(0.01, 0.4))
@settings(max_examples=10, deadline=None)
def test_more_accuracy_and_more_confidence_take_more_episodes(epsilon, less, delta):
    def bound(epsilon, delta):
        return episode_bound(epsilon, delta, lambda n: 2.0, lambda N: rank_gain(2, 1.0, 0.1, N), 1.0, TASK)

    assert bound(epsilon, delta) <= bound(epsilon * less, delta) * (1 + 1e-9)
    assert bound(epsilon, delta) <= bound(epsilon, delta * less) * (1 + 1e-9)


def test_information_that_grows_too_fast_is_reported():
    gain = information_gain(Matern((1.0, 1.0), 0.5), (1.0, 1.0), 0.1)
    with pytest.raises(UserError, match=r"the information gain grows too fast for this kernel .* use a smoother one"):
        episode_bound(1.0, 0.05, lambda n: math.sqrt(gain(10 * n)), gain, 1.0, TASK)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": 0.0}, "epsilon=0 must be positive"),
        ({"delta": 1.0}, "delta=1 is a probability"),
        ({"supremum": -1.0}, "sigma_max=-1 must be positive"),
        ({"shape": TASK._replace(horizon=0)}, "the horizon T=0 must be a whole number"),
        ({"shape": TASK._replace(noise=0.0)}, "sigma_w=0 must be positive"),
        ({"form": "papers"}, "there is no tightening 'papers'; did you mean 'paper'"),
        ({"gain": lambda N: -1.0}, "gamma=-1 must be finite and at least 0"),
        ({"width": lambda n: 0.0}, "the confidence width beta_n=0 must be positive"),
    ],
)
def test_what_makes_no_sense_is_explained(changes, said):
    arguments = {
        "epsilon": 1.0,
        "delta": 0.1,
        "width": lambda n: 1.0,
        "gain": lambda N: 1.0,
        "supremum": 1.0,
        "shape": TASK,
        **changes,
    }
    with pytest.raises(UserError, match=said) as error:
        episode_bound(**arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: variance_sum(-1.0, 1.0, 0.1),
        lambda: variance_sum(1.0, 0.0, 0.1),
        lambda: variance_sum(1.0, 1.0, 0.0),
        lambda: uncertainty_factor(1.0, 0.0, TASK),
        lambda: uncertainty_factor(1.0, 1.0, TASK._replace(outputs=-1)),
        lambda: exploration_threshold(0.0, 1.0, TASK),
        lambda: exploration_threshold(1.0, 0.0, TASK),
    ],
)
def test_negative_and_vanishing_numbers_are_refused(call):
    with pytest.raises(UserError, match="must be"):
        call()
