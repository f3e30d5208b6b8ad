"""First episodes: the share of a budget in use, an early end at half of it, and unrest that rests before that."""

import gymnasium
import jax
import numpy as np
import pytest

from sbsrl.costs import Cost
from sbsrl.own.caution import CALM, CUT, HOLD, Cautious, EarlyEnd, seed_of, used
from sbsrl.policy import Observant

SUM, EACH = Cost("effort", 10.0), Cost("heat", 80.0, "statewise", (-np.inf, np.inf))
KEY = jax.random.key(0)


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
    assert used(cost, seen) == pytest.approx(share, rel=1e-12)


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
    env = EarlyEnd(Charging(charges), costs)
    assert cut(env) == first
    assert cut(env) == first  # a reset forgets


def test_the_rest_of_a_step_is_passed_on():
    env = EarlyEnd(Charging([1.0]), [SUM])
    assert env.reset(seed=3)[1] == {"with": {"seed": 3}}
    assert env.step(np.zeros(1)) == (np.zeros(1), 0.5, False, False, {"cost": 1.0})
    ended = (np.zeros(1), 0.5, False, True, {"cost": 0.0})
    env = EarlyEnd(Charging([], ended), [SUM])
    env.reset()
    assert env.step(np.zeros(1)) == ended


@pytest.mark.parametrize("outcome", [7, (1, 2, 3), (1, 2, 3, 4, {}), (1, 2, 3, 4, None)])
def test_what_is_no_step_with_costs_is_passed_on_for_others_to_refuse(outcome):
    env = EarlyEnd(Charging([], outcome), [SUM])
    env.reset()
    assert env.step(np.zeros(1)) is outcome


class Leaning:
    """A controller that counts its steps."""

    def init(self):
        return 0

    def act(self, x, state, key):
        return np.array([0.1 * state, x[0]]), state + 1, {"said": 1.0}


LOW, HIGH = (-1.0, 0.0), (1.0, 4.0)


def cautious(base, strength=0.2, seed=5, costs=(SUM,)):
    return Cautious(base, LOW, HIGH, costs, strength, seed)


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
    found = acts(cautious(np.array([1.0, 0.0]), strength=1.0), 60)
    assert np.all((found >= LOW) & (found <= HIGH))
    assert found[:, 0].max() == 1.0


def test_a_controller_keeps_its_state_and_gets_the_observation():
    np.testing.assert_allclose(
        acts(cautious(Leaning(), strength=0.0), 3), [[0.0, 2.0], [0.1, 2.0], [0.2, 2.0]], atol=1e-15
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
    state = policy.observe(policy.observe(policy.init(), 0.0, np.array([1.0, 2.0])), 0.0, np.array([3.0, 4.0]))
    assert state.seen == ((1.0, 3.0), (2.0, 4.0))


def test_seeds_of_keys_are_whole_numbers_that_a_reset_takes():
    seeds = [seed_of(jax.random.key(k)) for k in range(20)]
    assert len(set(seeds)) == 20
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seed_of(jax.random.key(3)) == seeds[3]
