"""Expectations are judged by numbers: each of them is met by one set of made-up episodes and not by another."""

import pytest

from sbsrl.report.expectations import (
    Expectation,
    earns_from,
    ends_with,
    expectations_table,
    learns_before,
    never_infeasible,
    never_violates,
    settles_before,
    violates,
)
from sbsrl.runs.study import Arm

ARM, OTHER = Arm("ours", "pendulum", "sbsrl"), Arm("theirs", "pendulum", "actsafe")


@pytest.fixture
def compared(made_up):
    """Three seeds: costs up to 5, 6 and 7 of 6; 0, 1 and 2 infeasible plans; in episode 1 returns 0.83, 0.87, 0.9."""
    return made_up([ARM, OTHER])


@pytest.fixture
def calm(compared):
    """Only the first of these seeds, which is safe and has no infeasible plan."""
    return compared._replace(runs={arm: runs[:1] for arm, runs in compared.runs.items()}, seeds=[0])


def test_one_violating_episode_is_enough(compared, calm):
    seen = "1 of 9 episodes, in 1 of 3 seeds; largest cost 7.00 of 6"
    assert never_violates(compared, ARM) == ("pendulum: ours never violates", seen, False)
    assert violates(compared, ARM) == ("pendulum: ours violates", seen, True)
    assert never_violates(calm, ARM).met
    assert not violates(calm, ARM).met


def test_one_infeasible_plan_is_enough(compared, calm):
    """Three seeds of three episodes of 50 steps."""
    assert never_infeasible(compared, ARM)[1:] == ("3 of 450 plans infeasible", False)
    assert never_infeasible(calm, ARM)[1:] == ("0 of 150 plans infeasible", True)


def test_every_seed_must_earn_enough_in_training(compared):
    assert earns_from(compared, ARM, 1, 0.83)[1:] == ("at least 0.833", True)
    assert not earns_from(compared, ARM, 1, 0.84).met
    assert not earns_from(compared, ARM, 0, 0.83).met
    assert earns_from(compared, ARM, 2, 0.1)[1:] == ("no episode that late", False)


def test_every_seed_must_earn_enough_in_the_end(compared):
    assert ends_with(compared, ARM, 0.96)[1:] == ("at least 0.967", True)
    assert not ends_with(compared, ARM, 0.97).met


def test_to_learn_as_fast_is_not_faster(compared):
    """Two seeds never have 0.9 and count as three episodes, one has it in its second."""
    later = compared._replace(runs={**compared.runs, OTHER: compared.runs[OTHER][:2] * 2})
    assert learns_before(compared, "here", ARM, [OTHER])[1:] == ("ours: 2.7 (2 never); theirs: 2.7 (2 never)", False)
    assert learns_before(later, "here", ARM, [OTHER]) == (
        "here: ours reaches 0.9 in fewer episodes than theirs",
        "ours: 2.7 (2 never); theirs: 3.0 (4 never)",
        True,
    )
    assert not learns_before(later, "here", ARM, [OTHER, ARM]).met


def test_to_fall_back_is_not_to_have_settled(compared):
    """Ours is there in its second episode, which is its last; theirs was there in its first only."""
    ours, theirs = compared.runs[ARM][2], compared.runs[OTHER][0]
    theirs = [theirs[0]._replace(reward=-200.0), *theirs[1:]]
    two = compared._replace(runs={ARM: [ours], OTHER: [theirs]}, seeds=[0])
    assert learns_before(two, "here", ARM, [OTHER])[1:] == ("ours: 2.0; theirs: 1.0", False)
    assert settles_before(two, "here", ARM, [OTHER])[1:] == ("ours: 2.0; theirs: 3.0 (1 never)", True)


def test_what_was_not_met_stands_out():
    lines = expectations_table([Expectation("a", "b", met=True), Expectation("c", "d", met=False)]).splitlines()
    assert lines[2:] == ["| a | b | yes |", "| c | d | **no** |"]
