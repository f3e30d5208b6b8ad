"""What is said of the theorems: every verdict can be any of three; what breaks the assumptions breaks the promises."""

import dataclasses
import math
import pickle

import numpy as np
import pytest

from sbsrl.laboratory.closeness import Closeness
from sbsrl.laboratory.intervals import Frequency
from sbsrl.laboratory.theorems import JudgedRun, WorldReport, _kept, claims, judge_run
from sbsrl.laboratory.world import World

GOOD = JudgedRun(
    ground="motor",
    bound=1.0,
    seed=0,
    weights=[1.0],
    episodes=400,
    terminated=True,
    feasible=True,
    calibrated=True,
    violating_episodes=0,
    largest_cost=1.3,
    unsafe_members=0,
    safe_at_first=70,
    safe_in_the_end=72,
    truly_safe=76,
    reachable=49,
    to_be_learned=2,
    missed=0,
    gap=-0.1,
    gap_at_first=0.2,
    regret=0.1,
    reward_error=0.01,
    error_at_first=0.1,
    control_violates=True,
)
CLOSE = Closeness(single=Frequency(1200, 10_000), some=Frequency(1000, 1000))

SAFE, MEMBERS, CALIBRATED, NONEMPTY, SOME, SINGLE, STOPS, OPTIMAL, KNOWN, REACHED = range(10)


def verdicts(bad=0, of=100, close=CLOSE, **faults):
    """Of so many runs of which some have faults."""
    outcomes = [dataclasses.replace(GOOD, **faults)] * bad + [GOOD] * (of - bad)
    return [claim.verdict for claim in claims(WorldReport(World("motor"), outcomes, close))]


def test_all_holds_where_nothing_went_wrong():
    assert verdicts() == ["holds"] * 10


FAULTS = {
    "violating_episodes": (1, SAFE, 0.1),
    "unsafe_members": (1, MEMBERS, 0.1),
    "calibrated": (False, CALIBRATED, 0.05),
    "feasible": (False, NONEMPTY, 0.05),
    "gap": (1.2001, OPTIMAL, 0.1),
    "reward_error": (0.6001, KNOWN, 0.05),
    "missed": (1, REACHED, 0.1),
}


@pytest.mark.parametrize("field", FAULTS)
def test_a_fault_fails_its_claim_only_if_it_is_more_frequent_than_promised(field):
    """With 100 runs: at the promised share the interval of 95 % reaches to both sides."""
    value, place, share = FAULTS[field]
    for bad, verdict in ((0, "holds"), (round(100 * share), "consistent"), (25, "FAILS"), (100, "FAILS")):
        found = verdicts(bad, **{field: value})
        assert found[place] == verdict
        assert found[:place] + found[place + 1 :] == ["holds"] * 9


def test_with_three_runs_nothing_is_shown_and_nothing_refuted():
    assert verdicts(of=3)[:4] == ["consistent"] * 4
    assert verdicts(bad=3, of=3, violating_episodes=2)[SAFE] == "FAILS"


def test_closeness_is_held_to_the_lemma():
    promised = math.exp(-World("motor").exponent)
    for rate, verdict in ((1.2, "holds"), (1.0, "consistent"), (0.8, "FAILS")):
        close = CLOSE._replace(single=Frequency(round(10_000 * rate * promised), 10_000))
        assert verdicts(close=close)[SINGLE] == verdict
    for hits, verdict in ((980, "holds"), (950, "consistent"), (920, "FAILS")):
        assert verdicts(close=CLOSE._replace(some=Frequency(hits, 1000)))[SOME] == verdict


def test_a_run_that_was_cut_short_neither_shows_nor_refutes_that_all_end():
    """Nor does it count for what is promised of the end."""
    found = verdicts(bad=100, terminated=False, episodes=1500, gap=2.0, missed=3)
    assert found[STOPS] == "consistent"
    assert found[OPTIMAL] == found[KNOWN] == found[REACHED] == "consistent"
    late = int(World("motor").episode_bound) + 1
    assert verdicts(bad=100, episodes=late)[STOPS] == "FAILS"
    assert verdicts(bad=100, episodes=late - 1)[STOPS] == "holds"


def test_the_words_tell_what_was_known_before_any_episode():
    shown = claims(WorldReport(World("motor"), [GOOD] * 50, CLOSE))
    assert shown[OPTIMAL].measured.endswith(", at most -0.100; before any episode 0.200")
    assert shown[REACHED].measured.endswith(", 0 of 2450 policies; before any episode 100")
    assert shown[STOPS].measured == "50 of 50 (92.9 to 100.0 %), the last after 400 episodes"


@pytest.fixture(scope="module")
def strongest(world, sled_of):
    """A run on the truth of norm B that pushes hardest."""
    return judge_run(world, sled_of(world, 1.0), 0)


def test_within_the_assumptions_the_promises_hold_and_the_control_violates(world, strongest, sled_of):
    costs, rewards = world.true_returns(sled_of(world, 1.0))
    assert strongest.terminated
    assert strongest.feasible
    assert strongest.calibrated
    assert strongest.violating_episodes == strongest.unsafe_members == strongest.missed == 0
    assert strongest.largest_cost <= world.budget
    assert strongest.truly_safe == np.sum(costs <= world.budget)
    assert strongest.safe_at_first >= world.prior_safe.sum()
    assert strongest.reward_error < strongest.error_at_first
    known, safe = rewards[world.prior_safe].max(), rewards[costs <= world.budget].max()
    assert 0 <= strongest.regret <= safe - known  # it returns no worse than what was known to be safe
    assert strongest.reachable == 0  # epsilon is larger than the budget, so nothing is promised
    assert strongest.gap == strongest.gap_at_first == -np.inf
    assert strongest.control_violates


def test_outside_of_the_assumptions_the_promises_fail_and_the_claims_say_so(world, sled_of):
    """A truth eight times as far from the prior as B allows."""
    outcome = judge_run(world, sled_of(world, 8.0), 0)
    assert outcome.violating_episodes > 0
    assert outcome.largest_cost > world.budget
    assert outcome.unsafe_members > 0
    assert not outcome.calibrated
    found = [claim.verdict for claim in claims(WorldReport(world, [outcome] * 20, CLOSE))]
    assert found[SAFE] == found[MEMBERS] == found[CALIBRATED] == "FAILS"


def test_a_process_keeps_one_world_of_each_kind():
    """Else everything would be compiled again for each run."""
    first = World("motor", epsilon=0.77)
    assert _kept(first) is first
    assert _kept(pickle.loads(pickle.dumps(first))) is first
    assert _kept(World("motor", epsilon=0.78)) is not first


def test_a_world_travels_by_its_choices(world):
    """What was derived from them, such as compiled functions, cannot be sent to another process."""
    assert len(world.worst_costs) == 99
    there = pickle.loads(pickle.dumps(world))
    assert there == world
    assert "worst_costs" not in vars(there)


def test_constants_are_numbers_that_json_can_hold(world, strongest):
    constants = WorldReport(world, [strongest], CLOSE).constants()
    assert {"M", "Delta_zeta", "xi", "n_bar", "Delta"} <= set(constants)
    assert all(math.isfinite(value) for value in constants.values() if not isinstance(value, str))
    assert constants["Delta"] > constants["Delta_zeta"]  # assumption 3
