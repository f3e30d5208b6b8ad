"""Transitions of any number as arrays of a fixed size."""

import numpy as np
import pytest

from sbsrl.belief.rows import padded_rows
from sbsrl.transitions import Transitions


def data(count):
    rng = np.random.default_rng(count)
    x, a, y = rng.normal(size=(count, 2)), rng.normal(size=(count, 1)), rng.normal(size=(count, 2))
    return Transitions(x, a, y, np.zeros(count), np.zeros((count, 1)), np.zeros(count, bool))


@pytest.mark.parametrize(("count", "size"), [(1, 5), (3, 5), (5, 5)])
def test_data_come_first_and_copies_of_the_last_fill_the_rest(count, size):
    rows, given = padded_rows(data(count), size), data(count)
    np.testing.assert_array_equal(rows.valid, [1.0] * count + [0.0] * (size - count))
    for part, known in zip(rows[:3], given[:3], strict=True):
        np.testing.assert_array_equal(part[:count], known)
        np.testing.assert_array_equal(part[count:], np.repeat(known[-1:], size - count, axis=0))


def test_more_data_stay_as_they_are():
    rows = padded_rows(data(7), 5)
    np.testing.assert_array_equal(rows.x, data(7).states)
    np.testing.assert_array_equal(rows.valid, np.ones(7))
