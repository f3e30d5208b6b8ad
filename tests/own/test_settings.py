"""What a user says of a system: costs have names and sources, budgets fit them, and nonsense is refused."""

import math

import numpy as np
import pytest

from sbsrl.costs import Cost
from sbsrl.errors import UserError
from sbsrl.own.settings import OwnSettings
from sbsrl.validation import kinds

INF = math.inf


@pytest.mark.parametrize(
    ("cost", "named"),
    [
        (("info",), [("cost", "info")]),
        (("info:heat",), [("heat", "info:heat")]),
        (("rig:hot",), [("hot", "rig:hot")]),
        (("rig.py:hot",), [("hot", "rig.py:hot")]),
        (("local:cost-1",), [("cost", "local:cost-1")]),
        (("local:cost-1", "local:cost-2"), [("cost 0", "local:cost-1"), ("cost 1", "local:cost-2")]),
        (("info", "info:heat"), [("cost 0", "info"), ("heat", "info:heat")]),
        (("warm = info:heat", "far=local:cost-1"), [("warm", "info:heat"), ("far", "local:cost-1")]),
    ],
)
def test_a_cost_is_called_as_the_user_says_else_after_its_source(cost, named):
    assert OwnSettings(cost=cost).costs == named


def test_every_cost_gets_its_budget_and_how_it_is_formed():
    both = ("info:heat", "info:speed")
    each = OwnSettings(cost=both, aggregation=("statewise", "sum")).priced([1.0, 2.0])
    assert each == (Cost("heat", 1.0, "statewise", (-INF, INF)), Cost("speed", 2.0, "sum", (-INF, INF)))
    shared = OwnSettings(cost=both, aggregation=("statewise",)).priced((1.0, 2.0))
    assert [cost.aggregation for cost in shared] == ["statewise", "statewise"]


def test_without_limits_there_is_no_region_and_what_is_left_out_is_not_limited():
    assert OwnSettings().region(2) is None
    assert OwnSettings(region_high=(1.0, INF)).region(2) == ((-INF, 1.0), (-INF, INF))
    assert OwnSettings(region_low=(-1.0, 0.0), region_high=(1.0, 2.0)).region(2) == ((-1.0, 1.0), (0.0, 2.0))


def test_numbers_of_numpy_become_plain_ones():
    """Whatever type the constructor is said to take: users do not check types."""
    known = kinds(OwnSettings)
    assert known["safe_action"].read("safe_action", np.array([0.5])) == (0.5,)
    assert known["start"].read("start", [1, 2]) == (1.0, 2.0)
    assert type(known["steps"].read("steps", np.int64(7))) is int


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("cost", "info", "cost wants one or more words and got 'info'"),
        ("steps", 1.5, "steps wants a whole number and got 1.5"),
        ("reward", max, "reward wants a word and got <built-in function max>"),
        ("safe_action", ("off",), "safe_action wants a number and got 'off'"),
    ],
)
def test_values_of_another_type_are_refused(name, value, said):
    with pytest.raises(UserError, match=said):
        kinds(OwnSettings)[name].read(name, value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"aggregation": ("total",)}, "there is no aggregation 'total'; choose one of: statewise, sum"),
        ({"aggregation": ("stepwise",)}, "did you mean 'statewise'"),
        ({"aggregation": ("sum", "sum")}, "aggregation has 2 words for 1 costs; give one for all, or one for each"),
        ({"cost": ("a=info:x", "a=info:y")}, "two costs have the same name among a, a; give each its own: NAME=SOURCE"),
        ({"cost": ("rig:heat", "info:heat")}, "two costs have the same name among heat, heat"),
        ({"cost": ()}, "task.cost wants one or more words"),
        ({"steps": -1}, "task.steps=-1 is out of range"),
        ({"start": (math.nan,)}, "task.start=nan is not a finite number"),
        ({"action_low": (-INF,)}, "task.action_low=-inf is not a finite number"),
        ({"region_low": (math.nan,)}, "task.region_low=nan is not a finite number"),
    ],
)
def test_nonsense_is_refused_in_a_line(settings, said):
    with pytest.raises(UserError, match=said) as caught:
        OwnSettings(**settings)
    assert "\n" not in str(caught.value)


def test_budgets_and_regions_of_another_number_are_refused():
    with pytest.raises(UserError, match=r"2 budgets were given for 1 costs \(heat\); give one for each"):
        OwnSettings(cost=("info:heat",)).priced((1.0, 2.0))
    with pytest.raises(UserError, match="the region has 1 lower and 2 upper limits, and an observation has 2 numbers"):
        OwnSettings(region_low=(1.0,)).region(2)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"safe_action": (0.0, 2.0)},
        {"safe_action": (-1.0, 4.0)},  # limits are actions
        {"start": (1e9, 0.0, 0.0)},
        {"region_low": (0.0, 0.0, -INF), "region_high": (1.0, INF, 5.0)},
        {"safe_action": (1.0, 0.0), "start": (0.0, 0.0, 0.0), "region_high": (1.0, 1.0, 1.0)},
    ],
)
def test_what_fits_the_system_is_accepted(settings):
    assert OwnSettings(**settings).check((-1.0, 0.0), (1.0, 4.0), 3) is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"safe_action": (0.0,)},
            r"^the safe action \[0\.0\] is none of the system's, which are -1 to 1, 0 to 4\.$",
        ),
        ({"safe_action": (0.0, 1.0, 0.0)}, r"the safe action \[0\.0, 1\.0, 0\.0\] is none of the system's"),
        ({"safe_action": (0.0, -0.5)}, r"the safe action \[0\.0, -0\.5\] is none of the system's"),
        ({"safe_action": (1.5, 1.0)}, r"the safe action \[1\.5, 1\.0\] is none of the system's"),
        ({"start": (0.0, 0.0)}, r"^start has 2 numbers, and an observation has 3\.$"),
        ({"start": (0.0,) * 4}, r"^start has 4 numbers, and an observation has 3\.$"),
        ({"region_low": (0.0,)}, "the region has 1 lower and 3 upper limits, and an observation has 3 numbers"),
        ({"region_high": (0.0,) * 4}, "the region has 3 lower and 4 upper limits"),
        (
            {"region_low": (0.0, 0.0, 2.0), "region_high": (1.0, 1.0, 1.0)},
            "the region lies between 2 and 1: swap the limits",
        ),
    ],
)
def test_what_does_not_fit_the_system_is_refused_in_a_line(settings, said):
    with pytest.raises(UserError, match=said) as caught:
        OwnSettings(**settings).check((-1.0, 0.0), (1.0, 4.0), 3)
    assert "\n" not in str(caught.value)
