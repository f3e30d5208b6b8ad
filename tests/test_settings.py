"""Settings: found by full and short names, read in their kinds, refused in one sentence before anything is played."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import toys

from sbsrl import METHODS, TASKS, UserError
from sbsrl.methods import make_method
from sbsrl.settings import PRESETS, MethodSettings, make_settings, parse_setting
from sbsrl.specification import Specification
from sbsrl.tasks import find_task
from sbsrl.validation import Number, declared, validate

OWN = find_task("pendulum").presets()["cpu"]


def settings(changes=(), layers=(OWN,), method="sbsrl"):
    return make_settings(make_method(method).settings, layers, dict(changes))


def typed(*texts):
    """As on the command line."""
    return settings(dict(parse_setting(text) for text in texts))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("method", METHODS)
def test_every_preset_is_valid_for_every_task_and_method(preset, task, method):
    Specification.make(task, method, 0, preset, {})


def test_changes_win_over_the_preset_and_the_preset_over_the_task():
    found = settings({"samples": 7}, layers=({**OWN, "samples": 5, "features": 10}, PRESETS["smoke"]))
    assert found.method.samples == 7
    assert found.belief.features == PRESETS["smoke"]["gp.features"]
    assert found.run.budget == (OWN["budget"],)
    assert found.run.step_timeout == 60.0  # the default, which nobody changed


def test_full_and_short_names_mean_the_same():
    full = {"run.episodes": 4, "method.samples": 9, "belief.features": 12, "solver.horizon": 7}
    assert settings(full) == settings({name.partition(".")[2]: value for name, value in full.items()})
    assert settings(full).solver.horizon == 7


@dataclass(frozen=True)
class Loud(MethodSettings):
    """A method with a setting whose name the solver has, too."""

    horizon: float = declared(Number(0), 1.0, "how far one hears it")


def test_a_short_name_of_several_settings_is_refused():
    with pytest.raises(UserError) as refused:
        make_settings(Loud, (OWN,), {"horizon": 5})
    assert str(refused.value) == "'horizon' is the name of several settings; say method.horizon or solver.horizon."
    found = make_settings(Loud, (OWN,), {"method.horizon": 2.5, "solver.horizon": 5})
    assert (found.method.horizon, found.solver.horizon) == (2.5, 5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"solver": "exact", "candidates": 32},
            "candidates is a setting of solver=icem, and the solver is exact; leave it out, or set solver=icem.",
        ),
        (
            {"solver": "exact", "solver.colour": 1.0},
            "colour is a setting of solver=icem, and the solver is exact; leave it out, or set solver=icem.",
        ),
    ],
)
def test_a_setting_of_a_part_that_is_not_chosen_is_refused(changes, said):
    with pytest.raises(UserError) as refused:
        settings(changes)
    assert str(refused.value) == said


def test_presets_apply_only_where_they_exist():
    """The preset for quick looks has settings of planners, which a search of policies has not; others still hold."""
    found = settings({"solver": "exact"}, layers=(OWN, PRESETS["smoke"]))
    assert found.solver.name == "exact"
    assert not hasattr(found.solver, "candidates")
    assert found.method.samples == PRESETS["smoke"]["method.samples"]


def test_a_task_may_have_presets_of_its_own(monkeypatch):
    """They win over the general ones, in their preset only."""
    toys.register(monkeypatch.setitem)
    cpu, smoke = (Specification.make("cart", "sbsrl", 0, preset, {}).settings for preset in ("cpu", "smoke"))
    assert (cpu.solver.pushes, smoke.solver.pushes) == (16, 8)
    assert (cpu.method.samples, smoke.method.samples) == (4, PRESETS["smoke"]["method.samples"])
    assert (cpu.belief.name, cpu.solver.name) == ("bootstraps", "counter")
    assert cpu.run.budget == (0.5, 4.0)


def test_parts_are_chosen_by_the_task_and_changed_by_the_user():
    assert settings().solver.name == "icem"
    ledge = find_task("ledge").presets()["cpu"]
    assert settings(layers=(ledge,)).solver.name == "exact"
    assert settings({"solver": "slsqp"}, layers=(ledge,)).solver.name == "slsqp"


@pytest.mark.parametrize(
    ("text", "group", "expected"),
    [
        ("samples=50", "method", 50),
        ("method.samples=50", "method", 50),
        ("budget=5.5", "run", (5.5,)),
        ("budget=5", "run", (5.0,)),
        ("budget=5,6.5", "run", (5.0, 6.5)),
        ("prior=none", "run", "none"),
        ("data=a=b.npz", "run", "a=b.npz"),
        ("stop_when_learned=true", "run", True),
        ("stop_when_learned=0", "run", False),
        ("decay=2", "solver", 2.0),
    ],
)
def test_values_are_read_in_the_kind_of_their_setting(text, group, expected):
    name = text.partition("=")[0].rpartition(".")[2]
    found = getattr(getattr(typed(text), group), name)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("samples", "--set wants key=value and got 'samples'"),
        ("sampels=3", "there is no setting 'sampels'; did you mean 'samples'"),
        ("method.sampels=3", "did you mean 'method.samples'"),
        ("solver.samples=3", "there is no setting 'solver.samples'"),
        ("samples=many", "method.samples wants a whole number and got 'many'"),
        ("samples=3.5", "method.samples wants a whole number and got '3.5'"),
        ("budget=big", "run.budget wants a number, or several with commas between them and got 'big'"),
        ("budget=", "run.budget wants a number"),
        ("stop_when_learned=perhaps", "run.stop_when_learned wants true or false and got 'perhaps'"),
        ("belief=gpp", "there is no belief 'gpp'; did you mean 'gp'"),
        ("solver=iceM", "there is no solver 'iceM'; did you mean 'icem'"),
        ("inconsistent=go", "there is no run.inconsistent 'go'; choose one of: prior, stop"),
    ],
)
def test_what_cannot_be_read_is_explained(text, said):
    with pytest.raises(UserError) as refused:
        typed(text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"samples": 0}, r"method\.samples=0 is out of range; it must be between 1 and 10000"),
        ({"budget": float("nan")}, r"run\.budget=nan is not a finite number"),
        ({"budget": [6.0, float("inf")]}, r"run\.budget=inf is not a finite number"),
        ({"budget": []}, r"run\.budget wants a number.* and got \[\]"),
        ({"budget": [[1.0]]}, r"run\.budget wants a number"),
        ({"budget": [[1.0], [1.0, 2.0]]}, r"run\.budget wants a number"),
        ({"budget": "6"}, r"run\.budget wants a number and got '6'"),
        ({"budget": None}, r"run\.budget wants a number and got None"),
        ({"tightening": -0.1}, r"tightening=-0\.1 is out of range; it must be at least 0"),
        ({"exploration_threshold": float("inf")}, "exploration_threshold=inf is not a finite number"),
        ({"exploration_threshold": np.float64("nan")}, "exploration_threshold=nan is not a finite number"),
        ({"candidates": 10, "elites": 8}, "less than twice elites=8"),
        ({"features": 7}, "must be even"),
        ({"episodes": 0}, r"episodes=0 is out of range"),
        ({"episodes": "5"}, r"episodes wants a whole number and got '5'"),
        ({"episodes": True}, r"episodes wants a whole number and got True"),
        ({"samples": 2.5}, r"samples wants a whole number and got 2\.5"),
        ({"samples": np.float32(2)}, r"samples wants a whole number and got 2\.0"),
        ({"stop_when_learned": 1}, r"stop_when_learned wants true or false and got 1"),
        ({"prior": None}, "prior wants a word and got None"),
        ({"solver": None}, "solver wants a word and got None"),
        ({"solver": 3}, "solver wants a word and got 3"),
        ({"sampels": 3}, "no setting 'sampels'; did you mean 'samples'"),
    ],
)
def test_values_out_of_range_are_refused_with_the_limits(changes, said):
    with pytest.raises(UserError, match=said) as refused:
        settings(changes)
    assert "\n" not in str(refused.value)


def test_numpy_scalars_and_arrays_are_numbers():
    found = settings(
        {
            "samples": np.int64(9),
            "budget": np.float32(5.5),
            "tightening": np.array([0.25]),
            "stop_when_learned": np.True_,
            "exploration_threshold": np.int32(3),
        }
    )
    assert found == settings(
        {"samples": 9, "budget": 5.5, "tightening": 0.25, "stop_when_learned": True, "exploration_threshold": 3.0}
    )
    assert type(found.method.samples) is int
    assert type(found.run.budget[0]) is float
    assert type(found.run.stop_when_learned) is bool
    assert settings({"budget": np.array([1.0, 2.0])}).run.budget == (1.0, 2.0)
    json.dumps(found.plain())


def test_what_a_task_sets_is_validated_too():
    with pytest.raises(UserError, match=r"method\.samples wants a whole number and got 'many'"):
        settings(layers=({**OWN, "samples": "many"},))


def test_what_a_task_must_say_is_asked_for():
    with pytest.raises(UserError, match=r"^the task says nothing about prior, budget; give it with --set prior=VALUE"):
        settings(layers=({"tightening": 0.1, "exploration_threshold": 1.0},))


def test_a_setting_of_another_method_is_refused():
    """It would mean nothing."""
    assert settings({"actsafe_episodes": 2}, method="actsafe").method.actsafe_episodes == 2
    with pytest.raises(UserError, match="there is no setting 'actsafe_episodes'"):
        settings({"actsafe_episodes": 2})


def test_all_values_are_listed_group_by_group():
    plain = settings().plain()
    assert list(plain) == ["run", "task", "method", "belief", "solver"]
    assert (plain["belief"]["name"], plain["solver"]["name"]) == ("gp", "icem")
    assert plain["solver"]["decay"] == 1.25


@dataclass(frozen=True)
class Short:
    """A group of a single setting."""

    name: ClassVar[str] = "short"
    size: float = declared(Number(0, 1), 0.5)

    def __post_init__(self):
        validate(self, "short.")


def test_a_group_validates_itself_however_it_is_made():
    assert Short(np.float32(0.25)).size == 0.25
    with pytest.raises(UserError, match=r"^short\.size=2 is out of range; it must be between 0 and 1\.$"):
        Short(2)
