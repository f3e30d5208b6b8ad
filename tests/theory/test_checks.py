"""Arguments that make no sense are refused in one line that names them."""

import math

import pytest

from sbsrl import UserError
from sbsrl.theory.checks import at_least, moderate, positive, probability, whole

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (probability, [1e-300, 0.5, 1 - 1e-16]),
        (positive, [5e-324, 1, 1e308]),
        (at_least, [0, 0.0, 1e308]),
        (whole, [1, 2.0, 10**9]),
    ],
)
def test_what_makes_sense_is_returned_unchanged(check, good):
    assert [check("x", value) for value in good] == good


@pytest.mark.parametrize(
    ("check", "bad", "said"),
    [
        (probability, [0, 1, -0.1, 1.1, NAN, INF], "x={:g} is a probability; it must lie strictly between 0 and 1."),
        (positive, [0, -1, INF, NAN], "x={:g} must be positive and finite."),
        (at_least, [-1e-9, INF, NAN], "x={:g} must be finite and at least 0."),
        (whole, [0, -1, 1.5, NAN, INF], "x={:g} must be a whole number, at least 1."),
    ],
)
def test_what_does_not_is_named_with_its_value(check, bad, said):
    for value in bad:
        with pytest.raises(UserError) as error:
            check("x", value)
        assert str(error.value) == said.format(value)


def test_the_least_value_can_be_chosen():
    assert at_least("x", 2.0, 2.0) == 2.0
    assert whole("x", 0, 0) == 0
    with pytest.raises(UserError, match="at least 2"):
        at_least("x", 1.9, 2.0)
    with pytest.raises(UserError, match="at least 3"):
        whole("x", 2, 3)


def test_the_largest_whole_number_can_be_chosen_and_numbers_without_a_float_are_named():
    assert whole("x", 10**300, most=1e300) == 10**300
    with pytest.raises(UserError, match="x=101 is more than can be computed with, 100"):
        whole("x", 101, most=100)
    with pytest.raises(UserError, match="x=1e308 or more is more than can be computed with"):
        whole("x", 10**400)


def test_moderate_numbers_have_squares_and_products():
    assert [moderate("x", value) for value in (0, -1e30, 1e-30, 1.5)] == [0, -1e30, 1e-30, 1.5]
    for value in (1.1e30, 0.9e-30, -INF, INF, 10**400):
        with pytest.raises(UserError, match=r"cannot be computed with: its size must lie between 1e-30 and 1e\+30"):
            moderate("x", value)
