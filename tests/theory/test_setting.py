import dataclasses
import math

import pytest

from sbsrl import UserError, make_task
from sbsrl.settings import make_settings
from sbsrl.tasks import find_task
from sbsrl.theory.setting import Setting, unbounded_returns


def endless(**limits):
    return dataclasses.replace(make_task("pendulum"), **limits)


def settings():
    return make_settings(find_task("pendulum").settings, "cpu", {})


@pytest.mark.parametrize("name", ["pendulum", "ledge"])
def test_returns_of_bounded_steps_are_bounded(name):
    assert unbounded_returns(make_task(name)) is None


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"cost_limits": (0.0, math.inf)}, "the cost of a step of pendulum has no bound (it lies between 0 and inf)."),
        (
            {"reward_limits": (-math.inf, 1.0)},
            "the reward of a step of pendulum has no bound (it lies between -inf and 1).",
        ),
    ],
)
def test_a_cost_or_reward_without_a_bound_is_named(limits, said):
    assert unbounded_returns(endless(**limits)) == said
    with pytest.raises(UserError, match=r"^nothing can be certified: the ") as refused:
        Setting.of(endless(**limits), settings())
    assert str(refused.value).endswith(said)


def test_who_states_both_bounds_is_answered():
    task = endless(cost_limits=(0.0, math.inf), reward_limits=(-math.inf, 0.0))
    stated = Setting.of(task, settings(), cost=2.0, reward=3.0)
    assert (stated.cost, stated.reward) == (2, 3)
    with pytest.raises(UserError, match="nothing can be certified"):
        Setting.of(task, settings(), cost=2.0)
