"""Clopper and Pearson's bound, against its definition, a confidence interval of scipy, and simulation."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from sbsrl import UserError
from sbsrl.theory.binomial import admitted, draws_for, planning_samples, share_of_error, upper_bound

CASES = [(0, 10), (3, 10), (9, 10), (0, 3000), (17, 3400)]


@pytest.mark.parametrize(("k", "n"), CASES)
@pytest.mark.parametrize("alpha", [0.05, 1e-3])
def test_at_the_bound_so_few_violations_have_the_probability_alpha(k, n, alpha):
    """To 1e-8 of alpha; and it is scipy's one-sided interval to 1e-8."""
    bound = upper_bound(k, n, alpha)
    assert binom.cdf(k, n, bound) == pytest.approx(alpha, rel=1e-8)
    exact = binomtest(k, n, alternative="less").proportion_ci(1 - alpha, "exact").high
    assert bound == pytest.approx(exact, rel=1e-8)


def test_without_a_violation_it_is_the_rule_of_three_and_with_nothing_else_it_is_one():
    assert upper_bound(0, 1000, 0.05) == pytest.approx(1 - 0.05 ** (1 / 1000), rel=1e-10)
    assert upper_bound(5, 5, 0.05) == 1


@pytest.mark.parametrize("risk", [0.2, 0.05, 0.01])
@pytest.mark.parametrize("alpha", [0.05, 1e-3])
def test_a_policy_passes_with_what_is_admitted_and_with_no_more(risk, alpha):
    draws = draws_for(risk, alpha)
    k = admitted(draws, risk, alpha)
    assert upper_bound(k, draws, alpha) <= risk < upper_bound(k + 1, draws, alpha)


@pytest.mark.parametrize("risk", [0.2, 0.05, 0.01])
def test_half_the_risk_passes_with_so_many_draws_and_hardly_with_fewer(risk):
    draws = draws_for(risk, 1e-3)
    assert admitted(draws, risk, 1e-3) >= risk / 2 * draws
    fewer = draws * 9 // 10
    assert admitted(fewer, risk, 1e-3) < risk / 2 * fewer


def test_too_few_draws_admit_nothing():
    """0.99^100 = 0.37."""
    assert admitted(100, 0.01, 0.05) == -1
    assert admitted(300, 0.01, 0.05) == 0


def test_policies_that_are_too_dangerous_seldom_pass():
    """Five attempts on fresh draws, each a little safer than the last, all above the risk; 20000 times.

    One of them passes with a probability of 0.05 at most, + 3 standard errors.
    """
    risk, attempts, times = 0.05, 5, 20_000
    alpha = share_of_error(0.95, attempts)
    draws = draws_for(risk, alpha)
    rng = np.random.default_rng(0)
    true = risk * np.array([1.4, 1.3, 1.2, 1.1, 1.0])
    passed = np.any(rng.binomial(draws, true, (times, attempts)) <= admitted(draws, risk, alpha), axis=1)
    assert np.mean(passed) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / times)


def test_safe_policies_mostly_pass():
    """At a third of the risk in nine cases of ten: of 2000, less 3 standard errors."""
    draws = draws_for(0.01, 1e-3)
    found = np.random.default_rng(1).binomial(draws, 0.01 / 3, 2000) <= admitted(draws, 0.01, 1e-3)
    assert np.mean(found) >= 0.9 - 3 * np.sqrt(0.09 / 2000)


def test_the_shares_of_all_tests_make_up_the_error():
    assert 40 * share_of_error(0.95, 40) == pytest.approx(0.05)


def test_the_less_is_risked_the_more_samples_are_planned_on():
    assert [planning_samples(risk) for risk in (0.2, 0.05, 0.01, 0.001)] == [15, 60, 300, 300]


@pytest.mark.parametrize(("k", "n", "alpha"), [(3, 2, 0.05), (-1, 2, 0.05), (0, 0, 0.05), (0, 2, 0.0), (0, 2, 1.0)])
def test_what_says_nothing_is_refused(k, n, alpha):
    with pytest.raises(UserError, match="say nothing"):
        upper_bound(k, n, alpha)


@pytest.mark.parametrize(("risk", "alpha"), [(0.0, 0.05), (1.0, 0.05), (0.1, 0.0)])
def test_no_draws_show_the_impossible(risk, alpha):
    with pytest.raises(UserError, match="between 0 and 1"):
        draws_for(risk, alpha)
