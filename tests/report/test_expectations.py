"""Expectations are judged by numbers: each of them is met by one set of made-up episodes and not by another."""

import pytest

from sbsrl.report.expectations import (
    Expectation,
    earns_from,
    earns_more,
    ends_above,
    ends_with,
    expectations_table,
    learns_before,
    never_infeasible,
    never_violates,
    settles_before,
    stops_exploring,
    unmatched,
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


def shifted(compared, arm, by):
    """The same with other returns of an arm."""
    moved = [[r._replace(reward=r.reward + by) for r in run] for run in compared.runs[arm]]
    return compared._replace(runs={**compared.runs, arm: moved})


def test_to_earn_more_is_to_do_so_outside_the_intervals(compared):
    """Ours has 0.967 in the end, theirs 0.963; over all episodes both vary by 0.04 from seed to seed."""
    assert ends_above(compared, ARM, OTHER) == (
        "pendulum: ours's final policy earns more than that of theirs, outside the intervals",
        "ours: 0.967 ± 0.000 (0.967 to 0.967); theirs: 0.963 ± 0.000 (0.963 to 0.963)",
        True,
    )
    assert not ends_above(compared, OTHER, ARM).met
    assert not ends_above(compared, ARM, ARM).met
    assert not earns_more(compared, ARM, OTHER).met
    assert not earns_more(shifted(compared, ARM, 1.0), ARM, OTHER).met
    better = earns_more(shifted(compared, ARM, 30.0), ARM, OTHER)
    assert better.met
    assert better.expected == "pendulum: ours earns more than theirs over all episodes, outside the intervals"


def test_exploring_must_begin_and_end(compared):
    """Each seed explores in its first episode only."""
    assert stops_exploring(compared, ARM, 1) == (
        "pendulum: ours explores, and stops by itself after at most 1 episodes",
        "1, 1, 1",
        True,
    )
    never = compared._replace(runs={ARM: [[r._replace(phase="exploit") for r in run] for run in compared.runs[ARM]]})
    assert stops_exploring(never, ARM, 1)[1:] == ("0, 0, 0", False)
    always = compared._replace(runs={ARM: [[r._replace(phase="explore") for r in run] for run in compared.runs[ARM]]})
    assert not stops_exploring(always, ARM, 2).met


def test_to_match_takes_both_what_is_earned_and_what_is_learned(compared):
    """Theirs is better while it learns and worse in the end, or the other way round, or both."""
    found = unmatched(compared, ARM, [OTHER], 0.02)
    assert found.expected.startswith(
        "pendulum: none of theirs comes within 0.02 of ours both over all episodes (0.600)"
    )
    assert not found.met
    rich = shifted(compared, OTHER, 30.0)
    late = compared._replace(
        runs={**rich.runs, OTHER: [[*run[:-1], run[-1]._replace(reward=-300.0)] for run in rich.runs[OTHER]]}
    )
    assert unmatched(late, ARM, [OTHER], 0.02).met
    poor = shifted(compared, OTHER, -30.0)
    early = compared._replace(
        runs={**poor.runs, OTHER: [[*run[:-1], run[-1]._replace(reward=-200.0)] for run in poor.runs[OTHER]]}
    )
    assert unmatched(early, ARM, [OTHER], 0.02).met
    assert not unmatched(early, ARM, [OTHER, ARM], 0.02).met


def test_what_was_not_met_stands_out():
    lines = expectations_table([Expectation("a", "b", met=True), Expectation("c", "d", met=False)]).splitlines()
    assert lines[2:] == ["| a | b | yes |", "| c | d | **no** |"]
