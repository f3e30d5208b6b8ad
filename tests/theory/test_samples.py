"""How many samples, in logarithms; against exact arithmetic, and against draws."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbsrl import UserError
from sbsrl.theory import (
    affordable_exponent,
    ball_exponent,
    box_exponent,
    closeness_exponent,
    failure_probability,
    log_sample_count,
    posterior_exponent,
    resampling_delta,
    sample_count,
    smallest_closeness,
)

deltas = st.floats(1e-12, 0.999)


def exact_count(x, delta):
    """ln delta / ln(1 - e^-x) with 80 digits."""
    with localcontext() as context:
        context.prec = 80
        return Decimal(delta).ln() / (1 - (-Decimal(x)).exp()).ln()


@given(x=st.floats(1e-6, 60), delta=deltas)
@settings(max_examples=200, deadline=None)
def test_the_logarithm_of_the_count_is_exact(x, delta):
    """To 1e-12, against 80 digits; one sample at least."""
    expected = max(float(exact_count(x, delta).ln()), 0.0)
    assert log_sample_count(x, delta) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(x=st.floats(1e-3, 33), delta=deltas)
@settings(max_examples=200, deadline=None)
def test_the_count_is_the_smallest_whole_number_that_suffices(x, delta):
    """In 80 digits; 1e-14 of the count for its rounding to a float."""
    count, exact = sample_count(x, delta), exact_count(x, delta)
    slack = exact * Decimal("1e-14") + Decimal("2e-12")
    assert count >= 1
    assert count >= exact - slack
    assert count == 1 or count - 1 < exact + slack


@pytest.mark.parametrize(
    ("bound", "phi", "log10"), [(1.0, 1.0, 2.4), (1.0, 4.0, 6.3), (1.0, 8.0, 11.6), (0.1, 1.0, 1.8)]
)
def test_the_examples_of_the_notes(bound, phi, log10):
    """delta = 0.05, 3 outputs; to the digit that is given."""
    found = log_sample_count(closeness_exponent(bound, phi, 3), 0.05) / math.log(10)
    assert found == pytest.approx(log10, abs=0.05)


def test_the_papers_30_samples_buy_an_exponent_of_a_little_more_than_2():
    assert affordable_exponent(math.log(30), 0.05) == pytest.approx(2.35, abs=0.01)


def test_counts_with_a_million_digits_do_not_overflow():
    x = 1e6 * math.log(10)
    assert log_sample_count(x, 0.05) == pytest.approx(x + math.log(math.log(20)), rel=1e-15)
    assert affordable_exponent(log_sample_count(x, 0.05), 0.05) == pytest.approx(x, rel=1e-15)
    assert failure_probability(x, log_sample_count(x, 0.05)) == pytest.approx(0.05, rel=1e-6)
    assert failure_probability(1.0, 1e6) == 0
    assert failure_probability(1e6, 1.0) == 1


@given(x=st.floats(1e-3, 1e4), delta=st.floats(1e-6, 0.9))
@settings(max_examples=100, deadline=None)
def test_the_inverses_invert(x, delta):
    """Where more than one sample is needed; to 1e-9."""
    log_m = log_sample_count(x, delta)
    if log_m > 0:
        assert affordable_exponent(log_m, delta) == pytest.approx(x, rel=1e-9)
        assert failure_probability(x, log_m) == pytest.approx(delta, rel=1e-6)
    else:
        assert affordable_exponent(0.0, delta) >= x * (1 - 1e-9)
        assert failure_probability(x, 0.0) <= delta * (1 + 1e-9)


@given(x=st.floats(1e-3, 1e3), more=st.floats(1e-3, 10), delta=st.floats(1e-6, 0.5))
@settings(max_examples=50, deadline=None)
def test_more_exponent_and_more_confidence_take_more_samples(x, more, delta):
    assert log_sample_count(x + more, delta) >= log_sample_count(x, delta)
    assert log_sample_count(x, delta / 2) >= log_sample_count(x, delta)
    assert failure_probability(x + more, 3.0) >= failure_probability(x, 3.0)
    assert failure_probability(x, 3.0 + more) <= failure_probability(x, 3.0)


def test_a_sample_that_is_surely_close_is_enough():
    assert log_sample_count(0.0, 0.05) == 0
    assert sample_count(0.0, 0.05) == 1
    assert failure_probability(0.0, 0.0) == 0


def test_the_exponent_adds_up_over_outputs():
    assert closeness_exponent(2.0, 5.0, 3) == 3 * (2 + 5)
    assert posterior_exponent(2.0, 5.0, 3) == closeness_exponent(2.0, 5.0, 3)


@pytest.mark.parametrize("zeta", [0.5, 1.5])
@pytest.mark.parametrize("bound", [0.0, 1.0, 2.0])
def test_one_draw_is_close_at_least_as_often_as_promised(bound, zeta):
    """f = w . z on the box, f* = B (0.6, 0.8) . z: P(|w_1 - .6 B| + |w_2 - .8 B| < zeta) >= e^-x; 4 standard errors."""
    w = np.random.default_rng(0).standard_normal((400_000, 2)) - bound * np.array([0.6, 0.8])
    close = np.mean(np.abs(w).sum(axis=1) < zeta)
    promised = math.exp(-closeness_exponent(bound, box_exponent([1.0, 1.0], zeta), 1))
    error = math.sqrt(promised / len(w))
    assert close >= promised - 4 * error
    if bound == 0:
        assert close == pytest.approx(promised, abs=4 * error)


def test_among_as_many_draws_as_promised_one_is_close():
    """2 outputs, B = 1, zeta = 1.2, delta = 0.2: 500 sets of M draws, a failure in at most 20 % of them.

    Two standard errors, 3.6 %, on top; f* of norm exactly B.
    """
    bound, zeta, delta = 1.0, 1.2, 0.2
    count = sample_count(closeness_exponent(bound, box_exponent([1.0, 1.0], zeta), 2), delta)
    rng = np.random.default_rng(0)
    truth = bound * np.array([0.6, 0.8])
    failures = 0
    for _ in range(500):
        distance = np.abs(rng.standard_normal((count, 2, 2)) - truth).sum(axis=-1)
        failures += not np.any(np.all(distance < zeta, axis=-1))
    assert 10 < count < 1000
    assert failures / 500 <= delta + 0.036


def test_the_posterior_is_close_at_least_as_often_as_promised():
    """Linear, 20 points in [-1, 1]^2, sigma_w = 0.1: f* at the edge of the ellipsoid |w - m|_V <= beta.

    P(|f - f*| < zeta on the ball |z| <= 1) >= exp(-(beta^2 / 2 + phi_n)), phi_n <= phi; 4 standard errors.
    """
    rng = np.random.default_rng(0)
    design, noise, beta, zeta = rng.uniform(-1, 1, (20, 2)), 0.1, 1.5, 0.1
    root = np.linalg.cholesky(np.linalg.inv(np.eye(2) + design.T @ design / noise**2))
    draws = rng.standard_normal((200_000, 2)) @ root.T
    truth = root @ (beta * np.array([0.6, 0.8]))
    centred, shifted = (np.mean(np.linalg.norm(w, axis=1) < zeta) for w in (draws, draws - truth))
    phi = -math.log(centred)
    assert phi <= ball_exponent(2, zeta)
    assert shifted >= math.exp(-posterior_exponent(beta, phi, 1)) - 4 * math.sqrt(shifted / len(draws))


def small_ball(zeta):
    return ball_exponent(2, zeta)


@given(log_m=st.floats(2.0, 500.0), delta=st.floats(0.001, 0.5), bound=st.floats(0.0, 1.0), outputs=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_the_smallest_closeness_uses_up_the_samples(log_m, delta, bound, outputs):
    """M(zeta) = M to 1e-6 of ln M; None where even the largest zeta needs more."""
    zeta = smallest_closeness(small_ball, bound, outputs, log_m, delta, most=3.0)
    if zeta is None:
        assert log_sample_count(closeness_exponent(bound, small_ball(3.0), outputs), delta) > log_m
    else:
        needed = log_sample_count(closeness_exponent(bound, small_ball(zeta), outputs), delta)
        assert needed <= log_m * (1 + 1e-9)
        assert zeta == 3.0 or needed == pytest.approx(log_m, rel=1e-6)


def test_where_every_zeta_is_affordable_the_search_ends():
    """A function that is 0 everywhere; and an infinite exponent is never affordable."""
    assert 0 < smallest_closeness(lambda zeta: 0.0, 0.0, 1, 1.0, 0.05, most=1.0) < 1e-250
    assert smallest_closeness(lambda zeta: math.inf, 0.0, 1, 1.0, 0.05, most=1.0) is None
    stepped = smallest_closeness(lambda zeta: 0.0 if zeta >= 0.1 else math.inf, 0.0, 1, 1.0, 0.05, most=1.0)
    assert stepped == pytest.approx(0.1, rel=1e-9)


def test_the_shares_of_delta_add_up_to_delta():
    """Over all episodes 6 / (pi^2 (n + 1)^2) sums to 1: after n of them 6 / (pi^2 n) is left, to 0.1 %."""
    shares = [resampling_delta(0.1, n) for n in range(2000)]
    assert sum(shares) < 0.1
    assert 0.1 - sum(shares) == pytest.approx(0.1 * 6 / (math.pi**2 * 2000), rel=1e-3)
    assert sum(resampling_delta(0.1, n, 7) for n in range(7)) == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: log_sample_count(1.0, 0.0), "delta=0 is a probability; it must lie strictly between 0 and 1"),
        (lambda: log_sample_count(1.0, 1.0), "delta=1 is a probability"),
        (lambda: log_sample_count(-1.0, 0.1), "the exponent=-1 must be finite and at least 0"),
        (lambda: affordable_exponent(1.0, 2.0), "delta=2 is a probability"),
        (lambda: affordable_exponent(-1.0, 0.1), "ln M=-1 must be finite"),
        (lambda: failure_probability(1.0, -1.0), "ln M=-1 must be finite"),
        (lambda: closeness_exponent(-1.0, 1.0, 1), "the RKHS bound B=-1 must be finite and at least 0"),
        (lambda: closeness_exponent(1.0, -1.0, 1), "phi=-1 must be finite"),
        (lambda: closeness_exponent(1.0, math.inf, 1), "phi=inf must be finite"),
        (lambda: closeness_exponent(1.0, 1.0, 0), "the number of outputs=0 must be a whole number"),
        (
            lambda: sample_count(40.0, 0.05),
            r"M = 10\^17.85 samples cannot be drawn; use a larger zeta, or fewer outputs",
        ),
        (lambda: smallest_closeness(small_ball, 1.0, 1, 1.0, 0.1, 0.0), "the largest zeta=0 must be positive"),
        (lambda: resampling_delta(0.0, 1), "delta=0 is a probability"),
        (lambda: resampling_delta(0.1, -1), "the episode=-1 must be a whole number, at least 0"),
        (lambda: resampling_delta(0.1, 5, 5), "episode 5 is beyond the 5 episodes that the union bound was made for"),
        (lambda: resampling_delta(0.1, 0, 0), "the number of episodes=0 must be a whole number"),
    ],
)
def test_what_makes_no_sense_is_explained(call, said):
    with pytest.raises(UserError, match=said) as error:
        call()
    assert "\n" not in str(error.value)
