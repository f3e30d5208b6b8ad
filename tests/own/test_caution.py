"""First episodes: the share of a budget in use, an early end, and unrest that rests before that and grows if quiet."""

import gymnasium
import jax
import numpy as np
import pytest

from sbsrl.costs import Cost
from sbsrl.own.caution import CALM, CUT, HOLD, Cautious, EarlyEnd, Share, seed_of, strength
from sbsrl.policy import Observant

SUM, EACH = Cost("effort", 10.0), Cost("heat", 80.0, "statewise", (-np.inf, np.inf))
KEY = jax.random.key(0)
NEVER = np.inf
"""The lowest cost of a step where there was none."""


@pytest.mark.parametrize(
    ("cost", "seen", "share"),
    [
        (SUM, [1.0, 2.0, 3.0], 0.6),
        (SUM, [1.0, -1.0], 0.0),
        (SUM, [12.0], 1.2),
        (EACH, [20.0], 0.0),
        (EACH, [20.0, 50.0], 0.5),
        (EACH, [50.0, 20.0], 0.0),
        (EACH, [30.0, 20.0, 35.0], 0.25),
        (EACH, [20.0, 110.0], 1.5),
        (EACH, [90.0], np.inf),  # it began beyond
        (EACH, [80.0], 0.0),
        (Cost("touch", 0.0), [0.0, 0.0], 0.0),
        (Cost("touch", 0.0), [0.0, 1.0], np.inf),
        (Cost("depth", -1.0, "statewise", (-np.inf, np.inf)), [-5.0, -2.0], 0.75),
    ],
)
def test_the_share_of_a_budget_in_use(cost, seen, share):
    kept = Share([cost], [NEVER])
    *_, last = [kept.add([value]) for value in seen]
    assert last == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize(
    ("cost", "floor", "seen", "shares"),
    [
        (EACH, 20.0, [50.0, 65.0, 20.0], [0.5, 0.75, 0.0]),
        (EACH, 20.0, [0.0, 40.0], [0.0, 0.5]),  # lower than ever
        (EACH, 20.0, [90.0], [70 / 60]),  # it began beyond, but is known to have been below
        (EACH, 90.0, [80.0, 85.0], [0.0, np.inf]),
        (SUM, -5.0, [1.0, 2.0], [0.1, 0.3]),  # a sum begins at nothing
        (SUM, 4.0, [1.0, 2.0], [0.1, 0.3]),
    ],
)
def test_where_every_step_counts_it_is_counted_from_the_lowest_cost_of_all_episodes(cost, floor, seen, shares):
    kept = Share([cost], [floor])
    assert [kept.add([value]) for value in seen] == pytest.approx(shares, rel=1e-12)


def test_of_several_budgets_the_one_that_is_used_most_counts():
    kept = Share([SUM, EACH], [0.0, 20.0])
    found = [kept.add(charged) for charged in [(1.0, 50.0), (5.0, 35.0), (0.0, 71.0)]]
    assert found == pytest.approx([0.5, 0.6, 0.85], rel=1e-12)


def test_the_floors_that_are_given_are_left_as_they_are():
    floors = [20.0]
    Share([EACH], floors).add([10.0])
    assert floors == [20.0]


@pytest.mark.parametrize(
    ("quiet", "unrest"),
    [
        ([], 0.1),
        ([True], 0.16),
        ([True, True, True], 0.4096),
        ([True] * 4, 0.5),
        ([True] * 9, 0.5),
        ([False], 0.05),
        ([False] * 3, 0.05),
        ([True, True, False], 0.128),
        ([False, True], 0.08),
        ([True] * 9 + [False], 0.25),  # from where it was, not from where it would have been
        ([False] * 9 + [True], 0.08),
    ],
)
def test_the_unrest_grows_after_quiet_episodes_and_is_halved_after_others(quiet, unrest):
    assert strength(quiet) == pytest.approx(unrest, rel=1e-12)


class Charging(gymnasium.Env):
    """Charges what it is told to, step by step."""

    action_space = observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, charges, outcome=None):
        self.charges, self.outcome = charges, outcome

    def reset(self, **options):
        self.t = -1
        return np.zeros(1), {"with": options}

    def step(self, action):
        self.t += 1
        return self.outcome or (np.full(1, self.t), 0.5, False, False, {"cost": self.charges[self.t]})


def cut(env):
    """The first step that cut the episode short."""
    env.reset()
    for n in range(1, 6):
        if env.step(np.zeros(1))[3]:
            return n
    return None


@pytest.mark.parametrize(
    ("costs", "charges", "first"),
    [
        ([SUM], [1.0] * 5, None),  # half is not beyond half
        ([SUM], [2.0] * 5, 3),
        ([SUM, EACH], [(0.0, 20.0), (0.0, 30.0), (0.0, 51.0), (0.0, 20.0), (0.0, 20.0)], 3),
        ([SUM, EACH], [np.array([6.0, 20.0])] * 5, 1),
    ],
)
def test_an_episode_is_cut_short_when_more_than_half_of_a_budget_is_in_use(costs, charges, first):
    assert CUT == 0.5
    env = EarlyEnd(Charging(charges), costs, [NEVER] * len(costs))
    assert not env.cut
    for _ in range(2):  # a reset forgets
        assert cut(env) == first
        assert env.cut is (first is not None)
    env.reset()
    assert env.cut is False


@pytest.mark.parametrize(("most", "first"), [(0.1, 1), (0.5, 3), (0.7, 4), (1.0, None)])
def test_how_much_is_too_much_can_be_said(most, first):
    assert cut(EarlyEnd(Charging([2.0] * 5), [SUM], [NEVER], most)) == first


def test_earlier_episodes_say_how_low_a_cost_can_be_to_the_early_end_too():
    """50 of 80 degrees: nothing where they are all that is known, and 5 of 8 where it was 0."""
    hot = Charging([50.0] * 5)
    assert cut(EarlyEnd(hot, [EACH], [NEVER])) is None
    assert cut(EarlyEnd(hot, [EACH], [0.0])) == 1
    sinking = EarlyEnd(Charging([0.0, 30.0, 41.0, 0.0, 0.0]), [EACH], [NEVER])
    assert (cut(sinking), cut(sinking)) == (3, 3)  # each time from the floors that were given


def test_an_episode_that_the_system_ends_itself_is_not_cut():
    env = EarlyEnd(Charging([], (np.zeros(1), 0.5, True, True, {"cost": 0.0})), [SUM], [NEVER])
    env.reset()
    assert env.step(np.zeros(1))[2:4] == (True, True)
    assert env.cut is False


def test_costs_of_another_number_are_passed_on_for_others_to_refuse():
    env = EarlyEnd(Charging([(90.0, 90.0)]), [SUM], [NEVER])
    env.reset()
    assert env.step(np.zeros(1))[3:] == (False, {"cost": (90.0, 90.0)})
    assert env.cut is False


def test_the_rest_of_a_step_is_passed_on():
    env = EarlyEnd(Charging([1.0]), [SUM], [NEVER])
    assert env.reset(seed=3)[1] == {"with": {"seed": 3}}
    assert env.step(np.zeros(1)) == (np.zeros(1), 0.5, False, False, {"cost": 1.0})
    ended = (np.zeros(1), 0.5, False, True, {"cost": 0.0})
    env = EarlyEnd(Charging([], ended), [SUM], [NEVER])
    env.reset()
    assert env.step(np.zeros(1)) == ended


@pytest.mark.parametrize("outcome", [7, (1, 2, 3), (1, 2, 3, 4, {}), (1, 2, 3, 4, None)])
def test_what_is_no_step_with_costs_is_passed_on_for_others_to_refuse(outcome):
    env = EarlyEnd(Charging([], outcome), [SUM], [NEVER])
    env.reset()
    assert env.step(np.zeros(1)) is outcome


class Leaning:
    """A controller that counts its steps."""

    def init(self):
        return 0

    def act(self, x, state, key):
        return np.array([0.1 * state, x[0]]), state + 1, {"said": 1.0}


LOW, HIGH = (-1.0, 0.0), (1.0, 4.0)


def cautious(base, unrest=0.2, seed=5, costs=(SUM,)):
    return Cautious(base, LOW, HIGH, Share(costs, [NEVER] * len(costs)), unrest, seed)


def acts(policy, count, charge=0.0):
    state, actions = policy.init(), []
    for _ in range(count):
        action, state, metrics = policy.act(np.array([2.0]), state, KEY)
        state = policy.observe(state, 0.0, np.array([charge]))
        actions.append(action)
        assert metrics == {}
    return np.array(actions)


def test_the_unrest_is_a_share_of_half_the_range_around_one_action():
    middle = np.array([0.0, 2.0])
    found = acts(cautious(middle), 60) - middle
    assert np.all(np.abs(found) <= 0.2 * np.array([1.0, 2.0]))
    assert np.all(np.abs(found).max(axis=0) > 0.1 * np.array([1.0, 2.0]))
    assert middle.tolist() == [0.0, 2.0]


def test_the_unrest_is_held_for_some_steps_and_follows_from_the_seed():
    found = acts(cautious(np.zeros(2)), 4 * HOLD)
    blocks = found.reshape(4, HOLD, 2)
    assert np.all(blocks == blocks[:, :1])
    assert len(np.unique(blocks[:, 0, 0])) == 4
    np.testing.assert_array_equal(found, acts(cautious(np.zeros(2)), 4 * HOLD))
    assert not np.array_equal(found, acts(cautious(np.zeros(2), seed=6), 4 * HOLD))


def test_actions_stay_within_their_limits():
    found = acts(cautious(np.array([1.0, 0.0]), unrest=1.0), 60)
    assert np.all((found >= LOW) & (found <= HIGH))
    assert found[:, 0].max() == 1.0


def test_a_controller_keeps_its_state_and_gets_the_observation():
    np.testing.assert_allclose(
        acts(cautious(Leaning(), unrest=0.0), 3), [[0.0, 2.0], [0.1, 2.0], [0.2, 2.0]], atol=1e-15
    )


def test_the_unrest_rests_while_too_much_of_a_budget_is_in_use():
    assert CALM == 0.3
    middle = np.array([0.0, 2.0])
    found = np.abs(acts(cautious(middle), 6, charge=1.0) - middle).sum(axis=1)  # of 10
    assert np.all(found[:4] > 0)  # 0, 1, 2 and 3 tenths in use
    assert np.all(found[4:] == 0)


def test_it_wants_to_know_what_steps_cost():
    policy = cautious(np.zeros(2), costs=(SUM, EACH))
    assert isinstance(policy, Observant)
    state, rested = policy.init(), []
    for charged in [(1.0, 20.0), (0.5, 40.0), (0.5, 20.0), (1.0, 20.0), (0.5, 20.0)]:
        state = policy.observe(state, 0.0, np.array(charged))
        rested.append(state[2])
    assert rested == [False, True, False, False, True]


def test_the_state_is_the_step_what_the_controller_remembers_and_whether_the_unrest_rests():
    for base, memory in [(Leaning(), [0, 1]), (np.zeros(2), [None, None])]:
        policy = cautious(base)
        begin = policy.init()
        assert begin == (0, memory[0], False)
        _, after, _ = policy.act(np.array([2.0]), begin, KEY)
        assert after == (1, memory[1], False)
        resting = policy.observe(after, 0.0, np.array([4.0]))
        assert resting == (1, memory[1], True)
        assert policy.act(np.array([2.0]), resting, KEY)[1][2] is True  # until a step says otherwise


def test_the_unrest_returns_when_less_of_the_budget_is_in_use():
    policy, middle = cautious(np.array([0.0, 2.0]), costs=(EACH,)), np.array([0.0, 2.0])
    state, calm = policy.init(), []
    for heat in [20.0, 60.0, 20.0, 20.0]:
        action, state, _ = policy.act(np.zeros(1), state, KEY)
        state = policy.observe(state, 0.0, np.array([heat]))
        calm.append(bool(np.all(action == middle)))
    assert calm == [False, False, True, False]


def test_seeds_of_keys_are_whole_numbers_that_a_reset_takes():
    seeds = [seed_of(jax.random.key(k)) for k in range(20)]
    assert len(set(seeds)) == 20
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seed_of(jax.random.key(3)) == seeds[3]
