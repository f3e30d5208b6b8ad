"""How sure one can be of a frequency."""

import pytest
from scipy.stats import binomtest

from sbsrl.laboratory.intervals import Frequency


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(
    ("hits", "trials"), [(0, 1), (1, 1), (0, 80), (1, 80), (40, 80), (79, 80), (80, 80), (6059, 776000)]
)
def test_the_interval_is_that_of_clopper_and_pearson(hits, trials, level):
    """To 1e-9, against scipy."""
    exact = binomtest(hits, trials).proportion_ci(level, method="exact")
    assert Frequency(hits, trials).interval(level) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_of_nothing_nothing_is_known():
    assert Frequency(0, 0).interval() == (0.0, 1.0)


def test_in_words():
    assert Frequency(3, 60).rate == 0.05
    assert str(Frequency(0, 80)) == "0 of 80 (0.0 to 4.5 %)"
