"""By how much returns differ between close models: bounds against systems where the difference is known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

from sbsrl import UserError
from sbsrl.theory import (
    EpisodeShape,
    closeness_limit,
    largest_horizon,
    return_factor,
    tightening,
    total_variation,
)
from sbsrl.theory.tightening import MOST_STEPS, _summed

tasks = st.builds(
    EpisodeShape,
    horizon=st.integers(1, 60),
    outputs=st.integers(1, 5),
    noise=st.floats(1e-3, 10),
    most=st.floats(0.1, 10),
    aggregation=st.just("sum"),
    delay=st.integers(0, 1),
)
zetas = st.floats(1e-9, 20)


def returns(shift, shape, decay, threshold):
    """E sum_t C_max 1[mean of x > threshold] for x' = decay x + shift + w from x_0 = 0: x_t is normal.

    All outputs move alike, so the mean over outputs is normal with deviation sigma_w / sqrt(d_x) a step.
    """
    total, mean, variance = 0.0, 0.0, 0.0
    for t in range(shape.horizon + shape.delay):
        if t >= shape.delay:
            at_start = float(threshold < 0)
            total += norm.sf(threshold, mean, math.sqrt(variance)) if variance > 0 else at_start
        mean, variance = decay * mean + shift, decay**2 * variance + shape.noise**2 / shape.outputs
    return shape.most * total


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("zeta", [1e-3, 0.3, 2.0])
def test_the_total_variation_is_half_the_integral_of_the_difference(outputs, zeta):
    """Of two normal laws whose means are zeta sqrt(d_x) apart; to 1e-9."""
    shape, apart = EpisodeShape(5, outputs, 0.4, 1.0), zeta * math.sqrt(outputs)
    difference = lambda x: abs(norm.pdf(x, 0, 0.4) - norm.pdf(x, apart, 0.4)) / 2  # noqa: E731
    exact = integrate.quad(difference, -4, 4 + apart, points=[apart / 2], epsabs=1e-12, limit=500)[0]
    assert total_variation(zeta, shape) == pytest.approx(exact, abs=1e-9)


@given(shape=tasks, zeta=zetas)
@settings(max_examples=100, deadline=None)
def test_the_sharp_tightening_never_exceeds_the_papers_nor_what_an_episode_can_cost(shape, zeta):
    sharp, paper = (tightening(zeta, shape, form) for form in ("sharp", "paper"))
    assert sharp <= paper * (1 + 1e-12)
    assert sharp <= shape.most * shape.horizon * (1 + 1e-12)


@given(shape=tasks, zeta=zetas, decay=st.floats(-1, 1), threshold=st.floats(-3, 3), middle=st.floats(-1, 1))
@settings(max_examples=200, deadline=None)
def test_the_returns_of_close_models_never_differ_by_more(shape, zeta, decay, threshold, middle):
    """x' = a x + b + w against x' = a x + b + zeta + w, exactly; 1e-9 of the most for rounding."""
    low, high = (returns(middle + side * zeta / 2, shape, decay, threshold) for side in (-1, 1))
    slack = 1e-9 * shape.most * shape.horizon
    assert abs(high - low) <= tightening(zeta, shape) + slack
    assert abs(high - low) <= tightening(zeta, shape, "paper") + slack


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_sharp_tightening_is_attained_by_one_step(outputs):
    """A cost on the far side of the middle between both means; to 1e-9."""
    zeta = 0.3
    for horizon, delay in ((1, 1), (2, 0)):
        shape = EpisodeShape(horizon, outputs, 0.5, 2.0, delay=delay)
        low, high = (returns(shift, shape, 0.0, 0.0) for shift in (-zeta / 2, zeta / 2))
        assert high - low == pytest.approx(tightening(zeta, shape), rel=1e-9)


def test_the_largest_cost_of_an_episode_differs_by_no_more_either():
    """E max_t 1[x_t > 1] over 5 steps, 200000 common draws; 4 standard errors. And it is attained by one step."""
    zeta, shape = 0.4, EpisodeShape(5, 1, 0.5, 1.0, "statewise")
    noise = 0.5 * np.random.default_rng(0).standard_normal((200_000, 5))
    exceeded = []
    for shift in (0.0, zeta):
        x, worst = np.zeros(len(noise)), np.zeros(len(noise))
        for w in noise.T:
            x = 0.7 * x + shift + w
            worst = np.maximum(worst, x > 1)
        exceeded.append(worst)
    gap = exceeded[1] - exceeded[0]
    difference, error = gap.mean(), gap.std() / math.sqrt(len(gap))
    bound = tightening(zeta, shape)
    assert 0.2 < difference - 4 * error <= bound < 1
    assert bound == pytest.approx(1 - (1 - total_variation(zeta, shape)) ** 5, rel=1e-12)
    one = shape._replace(horizon=1)
    assert tightening(zeta, one) == total_variation(zeta, one)
    assert tightening(zeta, shape._replace(horizon=1, delay=0)) == 0
    assert tightening(1e9, shape._replace(horizon=1, delay=0)) == 0


@given(shape=tasks, zeta=zetas)
@settings(max_examples=100, deadline=None)
def test_the_sum_is_geometric(shape, zeta):
    """C_max (n - q^a (1 - q^n) / (1 - q)), q = 1 - tv, over n costs from the a-th step on; 1e-9 where it cancels."""
    tv = total_variation(zeta, shape)
    q, n, a = 1 - tv, shape.horizon, shape.delay
    closed = n - q**a * (1 - q**n) / tv if tv > 1e-4 else tv * sum(range(a, a + n))
    assert tightening(zeta, shape) == pytest.approx(shape.most * closed, rel=1e-2 if tv <= 1e-4 else 1e-9, abs=1e-9)


def test_for_small_zeta_the_sharp_tightening_is_a_fifth_of_the_papers():
    """sqrt(2 pi) T^2 / (T (T - 1) / 2) = 5.12 for T = 50 and costs c(x_t, a_t)."""
    shape = EpisodeShape(50, 3, 0.01, 6.0, delay=0)
    assert tightening(1e-9, shape, "paper") / tightening(1e-9, shape) == pytest.approx(5.12, abs=0.005)


@pytest.mark.parametrize(
    ("noise", "form", "expected"), [(1e-3, "paper", 1.9e-7), (0.01, "paper", 1.9e-6), (0.01, "sharp", 9.8e-6)]
)
def test_the_largest_zeta_of_the_pendulum(noise, form, expected):
    """T = 50, d_x = 3, C_max = 6, Delta = 5; to two digits."""
    assert closeness_limit(5.0, EpisodeShape(50, 3, noise, 6.0, delay=0), form) == pytest.approx(expected, rel=0.02)


@given(shape=tasks, share=st.floats(1e-6, 0.99), form=st.sampled_from(["sharp", "paper"]), how=st.booleans())
@settings(max_examples=100, deadline=None)
def test_the_largest_zeta_uses_up_the_margin(shape, share, form, how):
    """Below it the tightening is below the margin, at it equal; to 1e-6."""
    if how and form == "sharp":
        shape = shape._replace(aggregation="statewise")
    steps = shape.horizon - 1 + shape.delay
    margin = share * shape.most * (min(steps, 1) if shape.aggregation == "statewise" else steps)
    if margin == 0:
        assert closeness_limit(1e-9, shape) == math.inf
        return
    zeta = closeness_limit(margin, shape, form)
    assert tightening(zeta, shape, form) == pytest.approx(margin, rel=1e-6)
    assert tightening(zeta * (1 - 1e-6), shape, form) < margin


def test_a_margin_that_no_episode_can_use_up_allows_any_zeta():
    shape = EpisodeShape(10, 1, 0.1, 2.0)
    assert closeness_limit(20.0, shape) == math.inf
    assert closeness_limit(2.0, shape._replace(aggregation="statewise")) == math.inf
    assert tightening(1e12, shape) == 20.0


@given(shape=tasks, zeta=st.floats(1e-3, 1.0), margin=st.floats(0.01, 20), form=st.sampled_from(["sharp", "paper"]))
@settings(max_examples=60, deadline=None)
def test_the_largest_horizon_is_found_by_trying_all(shape, zeta, margin, form):
    found = largest_horizon(zeta, margin, shape, form)
    fits = [tightening(zeta, shape._replace(horizon=T), form) < margin for T in range(1, min(found, 500) + 2)]
    assert all(fits[:-1])
    assert not fits[-1] or found > 500


@given(shape=tasks, gap=st.floats(1e-6, 5), decay=st.floats(-1, 1), threshold=st.floats(-2, 2))
@settings(max_examples=100, deadline=None)
def test_what_an_uncertain_model_earns_is_known_to_the_return_factor_times_its_uncertainty(
    shape, gap, decay, threshold
):
    """f - mu = beta sigma everywhere, so J_s = T s_n with s_n = sqrt(d_x) gap / beta; sharp <= paper."""
    beta = 2.5
    low, high = (returns(shift, shape, decay, threshold) for shift in (0.0, gap))
    seen = shape.horizon * math.sqrt(shape.outputs) * gap / beta
    sharp, paper = (return_factor(beta, shape, form) for form in ("sharp", "paper"))
    assert abs(high - low) <= sharp * seen + 1e-9 * shape.most * shape.horizon
    assert sharp <= paper * (1 + 1e-12)


def test_the_return_factors_in_closed_form():
    shape = EpisodeShape(10, 3, 0.1, 2.0)
    assert return_factor(4.0, shape, "paper") == pytest.approx(2 * 10 * 4 / 0.1)
    assert return_factor(4.0, shape) == pytest.approx(2 * 10 * 4 / (0.1 * math.sqrt(2 * math.pi)))
    assert return_factor(4.0, shape._replace(delay=0)) == pytest.approx(0.9 * return_factor(4.0, shape))
    assert return_factor(4.0, shape._replace(aggregation="statewise")) == pytest.approx(return_factor(4.0, shape) / 10)


TASK = EpisodeShape(10, 3, 0.1, 2.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"horizon": 0}, "the horizon T=0 must be a whole number, at least 1"),
        ({"outputs": 0}, "the number of outputs d_x=0 must be a whole number"),
        ({"noise": 0.0}, "sigma_w=0 must be positive and finite"),
        ({"noise": math.nan}, "sigma_w=nan must be positive"),
        ({"most": 0.0}, "the largest cost of a step=0 must be positive"),
        ({"most": math.inf}, "the largest cost of a step=inf must be positive and finite"),
    ],
)
def test_what_is_no_task_is_refused_everywhere(changes, said):
    bad = TASK._replace(**changes)
    for call in (
        lambda: total_variation(0.1, bad),
        lambda: tightening(0.1, bad),
        lambda: tightening(0.1, bad, "paper"),
        lambda: closeness_limit(1.0, bad),
        lambda: return_factor(1.0, bad),
    ):
        with pytest.raises(UserError, match=said):
            call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tightening(-0.1, TASK), "zeta=-0.1 must be finite and at least 0"),
        (lambda: total_variation(-0.1, TASK), "zeta=-0.1 must be finite"),
        (lambda: tightening(0.1, TASK, "sharpe"), "there is no tightening 'sharpe'; did you mean 'sharp'"),
        (lambda: closeness_limit(1.0, TASK, "x"), "there is no tightening 'x'; choose one of: paper, sharp"),
        (
            lambda: tightening(0.1, TASK._replace(aggregation="statewise"), "paper"),
            "use form='sharp' for a bound on every",
        ),
        (lambda: closeness_limit(0.0, TASK), "the margin Delta=0 must be positive"),
        (lambda: largest_horizon(0.1, -1.0, TASK), "the margin Delta=-1 must be positive"),
        (
            lambda: largest_horizon(0.1, 3.0, TASK._replace(aggregation="statewise")),
            "the margin Delta=3 leaves the horizon unlimited at zeta=0.1",
        ),
        (lambda: return_factor(-1.0, TASK), "the confidence width beta_n=-1 must be finite"),
    ],
)
def test_what_makes_no_sense_is_explained(call, said):
    with pytest.raises(UserError, match=said) as error:
        call()
    assert "\n" not in str(error.value)


@given(log_q=st.floats(-12, 2).map(lambda e: -(10.0**e)), steps=st.integers(0, 3000))
@settings(max_examples=100, deadline=None)
def test_the_closed_form_of_the_sum_is_the_sum(log_q, steps):
    """To 1e-12, also where all terms are tiny: added one by one, exactly rounded."""
    expected = math.fsum(-math.expm1(t * log_q) for t in range(1, steps + 1))
    assert _summed(log_q, steps) == pytest.approx(expected, rel=1e-12, abs=0)


def test_endless_episodes_take_no_longer():
    """T = 10^15. For tiny tv the sum is tv T (T + 1) / 2; for large ones T."""
    endless = EpisodeShape(MOST_STEPS, 1, 1.0, 1.0)
    tv = 1e-40
    zeta = tv * math.sqrt(2 * math.pi)
    assert tightening(zeta, endless) == pytest.approx(tv * MOST_STEPS**2 / 2, rel=1e-9)
    assert tightening(1.0, endless) == pytest.approx(MOST_STEPS, rel=1e-9)
    assert closeness_limit(tightening(zeta, endless), endless) == pytest.approx(zeta, rel=1e-9)
    with pytest.raises(UserError, match="the horizon T=1000000000000001 is more than can be computed with"):
        tightening(1.0, endless._replace(horizon=MOST_STEPS + 1))


def test_a_tiny_margin_has_a_tiny_zeta():
    """One step: Delta_zeta = erf(zeta / sqrt 8), about zeta / sqrt(2 pi) for small zeta; to 1e-9."""
    assert closeness_limit(1e-80, EpisodeShape(1, 1, 1.0, 1.0)) == pytest.approx(
        1e-80 * math.sqrt(2 * math.pi), rel=1e-9
    )
