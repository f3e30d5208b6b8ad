"""What is passed from Python becomes words, by which it is found again."""

from pathlib import Path

import numpy as np
import pytest

from sbsrl.errors import UserError
from sbsrl.own import names, signals
from sbsrl.own.names import PROCESS, find
from sbsrl.own.settings import OwnSettings
from sbsrl.own.wording import in_words
from sbsrl.transitions import Transitions


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    """Words of one test are not those of another."""
    monkeypatch.setattr(names, "_KNOWN", {})


def heat(x, a, y):
    return 1.0


def speed(x, a, y):
    return 2.0


def worded(**settings):
    return in_words("rig:make", settings)[1]


def test_a_task_of_this_package_keeps_its_settings():
    given = {"cost": heat, "budget": {"a": 1.0}}
    assert in_words("pendulum", given) == ("pendulum", given)


def test_a_system_is_named_and_found_again():
    assert in_words("rig.py", {}) == ("rig.py", {})
    assert in_words(signals, {})[0] == "sbsrl.own.signals:"
    spec, _ = in_words((heat, speed), {})
    assert find(spec, "system") == (heat, speed)


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ("info:heat", ("info:heat",)),
        (signals.function, ("sbsrl.own.signals:function",)),
        (lambda x, a, y: 0.0, (f"local:cost-{PROCESS}-1",)),
        (["info", lambda x, a, y: 0.0], ("info", f"local:cost-{PROCESS}-1")),
        ({"warm": "info:heat", "fast": lambda x, a, y: 0.0}, ("warm=info:heat", f"fast=local:cost-{PROCESS}-1")),
    ],
)
def test_costs_are_one_or_several_and_a_mapping_names_them(cost, words):
    assert worded(cost=cost)["cost"] == words
    assert in_words("rig:make", {"task.cost": cost})[1] == {"task.cost": words}
    OwnSettings(cost=words)  # which the settings accept


def test_two_functions_are_two_words_and_one_function_is_one():
    first, second = (lambda x, a, y: 0.0), (lambda x, a, y: 1.0)
    words = worded(cost=[first, second])["cost"]
    assert [find(word, "cost") for word in words] == [first, second]
    assert worded(cost=[second])["cost"] == words[1:]


def test_functions_words_and_data_have_names_and_numbers_stay():
    data = Transitions(*(np.zeros((1, 1)),) * 3, np.zeros(1), np.zeros((1, 1)), np.zeros(1, bool))
    given = {"reward": heat, "simulator": speed, "fallback": "rig:hold", "state_names": ["p", "v"], "steps": 5}
    found = worded(**given, aggregation="sum", data=data, budget=3.0)
    assert find(found["reward"], "reward") is heat
    assert find(found["simulator"], "simulator") is speed
    assert find(found["data"], "data") is data
    rest = {name: found[name] for name in ("fallback", "state_names", "steps", "aggregation", "budget")}
    assert rest == {
        "fallback": "rig:hold",
        "state_names": ("p", "v"),
        "steps": 5,
        "aggregation": ("sum",),
        "budget": 3.0,
    }
    assert worded(data=Path("a") / "b.csv")["data"] == "a/b.csv"
    assert worded(data="minari:a-v0")["data"] == "minari:a-v0"


def test_arrays_and_numbers_of_numpy_become_plain_ones():
    found = worded(safe_action=np.array([0.5, 1.0]), steps=np.int64(7), budget=np.float64(3.0))
    assert found == {"safe_action": [0.5, 1.0], "steps": 7, "budget": 3.0}
    assert [type(found[name]) for name in ("safe_action", "steps", "budget")] == [list, int, float]


@pytest.mark.parametrize("prefixed", [False, True])
def test_budgets_by_name_are_in_the_order_of_the_costs(prefixed):
    cost, budget = ("task.cost", "run.budget") if prefixed else ("cost", "budget")
    given = {cost: {"warm": "info:heat", "fast": "info:speed"}, budget: {"fast": 2.0, "warm": 1.0}}
    assert in_words("rig:make", given)[1] == {cost: ("warm=info:heat", "fast=info:speed"), budget: (1.0, 2.0)}


@pytest.mark.parametrize(
    ("cost", "budget", "said"),
    [
        ("info", {"cost": 1.0}, r"budget is a mapping from names of costs; give cost as one, too: cost=\{NAME"),
        ({"warm": "info"}, {"worm": 1.0}, "there is no cost 'worm'; did you mean 'warm'"),
        ({"warm": "info", "fast": "info:v"}, {"warm": 1.0}, "the cost 'fast' has no budget; give one for each"),
    ],
)
def test_budgets_that_do_not_fit_the_costs_are_refused(cost, budget, said):
    with pytest.raises(UserError, match=said):
        worded(cost=cost, budget=budget)
