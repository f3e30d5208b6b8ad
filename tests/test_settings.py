import pytest

from sbsrl import TASKS, UserError
from sbsrl.settings import PRESETS, make_settings, parse_setting

PENDULUM = TASKS["pendulum"].settings


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_valid_for_every_task(preset):
    for entry in TASKS.values():
        make_settings(entry.settings, preset, {})


def test_changes_win_over_the_preset_and_the_preset_over_the_task():
    settings = make_settings({**PENDULUM, "samples": 5, "features": 10}, "smoke", {"samples": 7})
    assert settings.samples == 7
    assert settings.features == PRESETS["smoke"]["features"]
    assert settings.budget == PENDULUM["budget"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("samples=50", ("samples", 50)),
        ("budget=5.5", ("budget", 5.5)),
        ("budget=5", ("budget", 5.0)),
        ("prior=none", ("prior", "none")),
        ("stop_when_learned=true", ("stop_when_learned", True)),
        ("stop_when_learned=0", ("stop_when_learned", False)),
    ],
)
def test_values_are_read_in_the_type_of_their_setting(text, expected):
    name, value = parse_setting(text)
    assert (name, value) == expected
    assert type(value) is type(expected[1])


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("samples", "wants key=value"),
        ("sampels=3", "did you mean 'samples'"),
        ("samples=many", "samples wants a whole number and got 'many'"),
        ("samples=3.5", "samples wants a whole number"),
        ("budget=big", "budget wants a number"),
        ("stop_when_learned=perhaps", "wants true or false"),
    ],
)
def test_what_cannot_be_read_is_explained(text, hint):
    with pytest.raises(UserError, match=hint):
        parse_setting(text)


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"samples": 0}, "samples=0 is out of range; it must be between 1 and"),
        ({"budget": float("nan")}, "budget=nan is not a finite number"),
        ({"tightening": -0.1}, "tightening=-0.1 is out of range; it must be at least 0"),
        ({"exploration_threshold": float("inf")}, "not a finite number"),
        ({"candidates": 10, "elites": 8}, "less than twice elites=8"),
        ({"features": 7}, "must be even"),
        ({"episodes": 0}, "episodes=0 is out of range"),
        ({"episodes": "5"}, "episodes wants a whole number and got '5'"),
        ({"samples": 2.5}, r"samples wants a whole number and got 2\.5"),
        ({"prior": None}, "prior wants a word and got None"),
        ({"sampels": 3}, "no setting 'sampels'; did you mean 'samples'"),
    ],
)
def test_values_out_of_range_are_refused_with_the_limits(changes, hint):
    with pytest.raises(UserError, match=hint):
        make_settings(PENDULUM, "cpu", changes)


def test_an_unknown_preset_is_refused():
    with pytest.raises(UserError, match="did you mean 'smoke'"):
        make_settings(PENDULUM, "smok", {})
