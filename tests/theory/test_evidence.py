"""The tests of a guarantee: against enumeration and simulation; how often they are wrong, and what they see."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from sbsrl.theory.evidence import STAKES, Misfit, contradicted, cost_evidence, share_of_look


def by_hand(costs, budget, least):
    """K_n after every episode, one factor after the other."""
    fortunes, means = [1.0] * len(STAKES), [1.0]
    for cost in costs:
        fortunes = [k * (1 + s * (cost - budget) / (budget - least)) for k, s in zip(fortunes, STAKES, strict=True)]
        means.append(sum(fortunes) / len(fortunes))
    return max(means)


def test_the_evidence_is_the_largest_mean_of_the_fortunes():
    """To 1e-12."""
    costs = np.random.default_rng(0).uniform(0.0, 3.0, 40).tolist()
    assert cost_evidence(costs, 1.6, 0.0) == pytest.approx(by_hand(costs, 1.6, 0.0), rel=1e-12)
    assert cost_evidence(costs, -0.2, -0.5) == pytest.approx(by_hand(costs, -0.2, -0.5), rel=1e-12)
    assert cost_evidence([], 1.6, 0.0) == 1
    assert cost_evidence([0.0] * 5, 1.6, 0.0) == 1


def test_fortunes_keep_their_mean_where_the_mean_cost_is_the_budget():
    """Over all 2^8 equally likely sequences of costs 0 and 2 of a budget of 1, to 1e-12."""
    sequences = itertools.product((0.0, 2.0), repeat=8)
    last = [np.mean([np.prod([1 + s * (c - 1) for c in costs]) for s in STAKES]) for costs in sequences]
    assert np.mean(last) == pytest.approx(1, rel=1e-12)


def test_honest_runs_are_seldom_doubted_and_dear_ones_soon():
    """2000 runs of 300 episodes: at most 0.05 + 3 standard errors at the budget, and 0.99 a third above it."""
    rng = np.random.default_rng(1)
    uniform = rng.uniform(0, 2, (2000, 300)).tolist()
    doubted = np.mean([cost_evidence(costs, 1.0, 0.0) >= 20 for costs in uniform])
    assert doubted <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
    assert np.mean([cost_evidence(costs, 0.75, 0.0) >= 20 for costs in uniform]) > 0.99


def test_the_shares_of_all_looks_are_one():
    """The first 10^5 of them to 1e-5."""
    assert sum(share_of_look(n) for n in range(1, 100_001)) == pytest.approx(1, abs=1e-5)


def test_a_misfit_contradicts_beyond_the_quantiles_and_not_within():
    low, high = chi2.ppf(0.005, 50), chi2.isf(0.005, 50)
    for squares, wrong in ((high + 0.99, False), (high + 1.01, True), (low - 8.99, False), (low - 9.01, True)):
        assert contradicted(Misfit(50, squares, least=1.0, most=9.0), 0.01) is wrong
    assert not contradicted(Misfit(0, 0.0, 1.0, 1.0), 0.01)
