"""Reward and costs come from where the user says: functions, or what the system reports under a name."""

import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.own.names import name_of
from sbsrl.own.settings import OwnSettings
from sbsrl.own.signals import Answer, Sources, function
from sbsrl.systems.faults import Fault

X, A, Y = np.array([1.0, 2.0]), np.array([0.5]), np.array([3.0, 4.0])


def speed(x, a, y):
    return y[1] - x[1] + a[0]


def spoiling(x, a, y):
    """It works in the arrays that it is given, and returns an array of one number."""
    x += 7.0
    return y[:1]


def sources(cost="info", reward=""):
    words = tuple(each if isinstance(each, str) else name_of(each, "cost") for each in np.atleast_1d(cost))
    return Sources.of(OwnSettings(cost=words, reward=reward and name_of(reward, "reward")))


def charged(cost, answer):
    return sources(cost).charged(X, A, Y, answer).tolist()


@pytest.mark.parametrize(
    ("cost", "answer", "expected"),
    [
        ("info", Answer(0.0, {"cost": 2}), [2.0]),
        ("info", Answer(0.0, {"cost": np.array([2.0])}), [2.0]),
        ("info", Answer(0.0, {}, 5.0), [5.0]),  # the third of six values
        ("info", Answer(0.0, {"cost": 2.0}, 5.0), [5.0]),
        ("info:heat", Answer(0.0, {"heat": 3.0, "cost": 9.0}, 5.0), [3.0]),
        (speed, Answer(0.0, {}), [2.5]),
        (spoiling, Answer(0.0, {}), [3.0]),
        (["info:heat", "pace=info:speed", speed], Answer(0.0, {"heat": 1, "speed": True}), [1.0, 1.0, 2.5]),
    ],
)
def test_costs_are_those_of_the_source(cost, answer, expected):
    assert charged(cost, answer) == expected
    assert X.tolist() == [1.0, 2.0]


def test_the_reward_is_the_systems_own_unless_a_function_is_given():
    assert sources().earned(X, A, Y, Answer(7.0, {})) == 7.0
    assert sources(reward=speed).earned(X, A, Y, Answer(7.0, {})) == 2.5


def test_which_signals_are_functions_is_known():
    assert sources(["info", speed]).functions() == (None, None, speed)
    assert sources(reward=spoiling).functions() == (spoiling, None)


@pytest.mark.parametrize(
    ("cost", "info", "said"),
    [
        ("info", {}, r"has no 'cost' \(it has nothing\): say with cost=... where the cost is"),
        ("info:heat", {"speed": 1.0, "cost": 2.0}, r"has no 'heat' \(it has cost, speed\)"),
        ("info:heat", {"heat": "hot"}, r"info\['heat'\] is not a number: 'hot'"),
        ("info:heat", {"heat": [1.0, 2.0]}, r"info\['heat'\] is not a number: \[1.0, 2.0\]"),
        (lambda x, a, y: 1 / 0, {}, "the cost function raised ZeroDivisionError: division by zero"),
        (lambda x, a, y: y, {}, "the cost function raised ValueError: cannot reshape"),
        (lambda x: 0.0, {}, "the cost function raised TypeError: .*takes 1 positional argument"),
    ],
)
def test_a_cost_that_cannot_be_read_is_a_fault_that_says_why(cost, info, said):
    with pytest.raises(Fault, match=said):
        charged(cost, Answer(0.0, info))


def test_a_reward_function_that_fails_is_a_fault():
    with pytest.raises(Fault, match="the reward function raised KeyError: 'x'"):
        sources(reward=lambda x, a, y: {}["x"]).earned(X, A, Y, Answer(0.0, {}))


def test_a_name_of_something_else_is_refused():
    with pytest.raises(UserError, match="the cost math:pi is a float, not a function"):
        function("math:pi", "cost")
