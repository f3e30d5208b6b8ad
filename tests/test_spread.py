"""In which units networks see states."""

import numpy as np
import pytest

from sbsrl.spread import LEAST, SPREADS, middle, spread


@pytest.fixture
def normal():
    return np.random.default_rng(0).normal([0.0, 5.0], [1.0, 3.0], (20_000, 2))


@pytest.mark.parametrize("kind", SPREADS)
def test_of_normal_data_both_kinds_are_mean_and_standard_deviation(normal, kind):
    """20,000 rows: 3 % of the deviation, but for what is added to it."""
    np.testing.assert_allclose(middle(normal, kind), [0, 5], atol=0.09)
    np.testing.assert_allclose(spread(normal, kind), [1, 3], rtol=0.03, atol=LEAST)


def test_a_few_falls_hardly_change_the_quantiles_and_multiply_the_deviation(normal):
    """5 % of the rows lie 50 deviations away: 15 % of the one, ten times the other."""
    fallen = normal.copy()
    fallen[::20] += 50 * np.array([1.0, 3.0])
    np.testing.assert_allclose(spread(fallen, "quantiles"), spread(normal, "quantiles"), rtol=0.15)
    np.testing.assert_allclose(middle(fallen, "quantiles"), middle(normal, "quantiles"), atol=0.3)
    assert np.all(spread(fallen, "deviation") > 9 * spread(normal, "deviation"))


@pytest.mark.parametrize("kind", SPREADS)
def test_what_does_not_vary_is_not_divided_by_nothing(kind):
    assert np.all(spread(np.full((50, 3), 2.0), kind) > 0)
    np.testing.assert_array_equal(middle(np.full((50, 3), 2.0), kind), [2, 2, 2])
