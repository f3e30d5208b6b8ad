import numpy as np
import pytest

from sbsrl.report.statistics import summarise

VALUES = [0.2, 0.9, 0.4, 0.7, 0.3]


def test_mean_deviation_and_percentiles_are_those_computed_by_hand():
    """The deviation is divided by n = 4; 2.5 % of the way from the first to the last of four is 0.075 of a step."""
    found = summarise([1.0, 2.0, 3.0, 6.0])
    assert found.mean == 3
    np.testing.assert_allclose(found.deviation, np.sqrt((4 + 1 + 0 + 9) / 4))
    np.testing.assert_allclose((found.low, found.high), (1 + 0.075, 6 - 0.075 * 3))


def test_the_interval_of_the_mean_is_that_of_resampling():
    """200,000 resamples drawn here, against 10,000: both ends to 0.01, which is a twentieth of the interval."""
    draws = np.random.default_rng(1).choice(VALUES, (200_000, len(VALUES))).mean(axis=1)
    found = summarise(VALUES)
    np.testing.assert_allclose((found.mean_low, found.mean_high), np.percentile(draws, [2.5, 97.5]), atol=0.01)
    assert found.low < found.mean_low < found.mean < found.mean_high < found.high


def test_the_same_numbers_give_the_same_interval():
    assert summarise(VALUES) == summarise(list(VALUES))


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5, 0.5]])
def test_numbers_that_do_not_differ_have_no_spread(values):
    found = summarise(values)
    assert (found.mean, found.low, found.high, found.mean_low, found.mean_high) == (0.5,) * 5
    assert found.deviation == 0


def test_it_reads_as_mean_deviation_and_interval():
    assert str(summarise([0.5, 0.5])) == "0.500 ± 0.000 (0.500 to 0.500)"


def test_one_seed_is_not_said_to_be_sure():
    assert str(summarise([0.5])) == "0.500 (one seed)"
