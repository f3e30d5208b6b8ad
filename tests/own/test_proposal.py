"""A prior is proposed from data, a simulator or both, is checked on data it was not shown, and says what was done."""

import sys
from types import ModuleType

import numpy as np
import pytest

from sbsrl.costs import Cost
from sbsrl.errors import UserError
from sbsrl.own import gp_proposal
from sbsrl.own.coverage import held_out
from sbsrl.own.description import Description
from sbsrl.own.fitting import Fitted
from sbsrl.own.gp_proposal import ASSUMED_ERROR
from sbsrl.own.names import name_of
from sbsrl.own.plain import Pair
from sbsrl.own.proposal import LARGEST_GP, MOST_STARTS, explain_belief, propose
from sbsrl.own.settings import OwnSettings
from sbsrl.own.system import OwnSystem
from sbsrl.own.task import make_own_task
from sbsrl.transitions import Transitions

SHAPE = Description(("angle", "speed"), (-1.0,), (1.0,), 16, ("push",))
NOISE = 0.002
BUDGET = (Cost("swing", 3.0, "sum"),)


def truth(x, a):
    return np.array([x[0] + 0.1 * x[1], x[1] + 0.1 * (-4.0 * np.sin(x[0]) + 2.0 * a[0])])


def model(x, a):
    """Of too weak a motor."""
    return np.array([x[0] + 0.1 * x[1], x[1] + 0.1 * (-4.0 * np.sin(x[0]) + 1.6 * a[0])])


def in_degrees(x, a):
    return np.degrees(truth(x, a))


RIG = Pair(lambda rng: np.zeros(2), lambda x, a, rng: truth(x, a), [-1.0], [1.0], ("angle", "speed"))


def swing(x, a, y):
    return np.abs(y[0])


def reward(x, a, y):
    return -(y[1] ** 2)


def branching(x, a, y):
    return 1.0 if y[0] > 0.1 else 0.0


def rig(cost=(swing,), reward=reward, **settings):
    functions = {name: name_of(value, name) if callable(value) else value for name, value in settings.items()}
    functions |= {"cost": tuple(name_of(each, "cost") for each in cost), "reward": name_of(reward, "reward")}
    return OwnSystem(name_of(RIG, "system"), OwnSettings(**functions))


def recorded(episodes=10, steps=16, seed=0):
    rng, rows = np.random.default_rng(seed), []
    for _ in range(episodes):
        x = np.array([rng.uniform(-0.2, 0.2), 0.0])
        for t in range(steps):
            a = rng.uniform(-1, 1, 1) if t % 3 == 0 else a
            y = truth(x, a) + NOISE * rng.normal(size=2)
            rows.append((x, a, y, reward(x, a, y), (2.0 + np.sin(y[0]),), False))
            x = y
    return Transitions(*(np.array(part) for part in zip(*rows, strict=True)))


DATA = recorded()


SMALL = (0.03, 0.1)
"""Scales that are too small."""


def has(proposal, *beginnings):
    """Each of these begins a sentence, in that order."""
    sentences = iter(proposal.said)
    return all(any(each.startswith(beginning) for each in sentences) for beginning in beginnings)


@pytest.fixture(scope="module")
def from_data():
    return propose(rig(), SHAPE, DATA, BUDGET)


@pytest.fixture(scope="module")
def from_both():
    return propose(rig(simulator=model), SHAPE, DATA, BUDGET)


@pytest.fixture(scope="module")
def from_simulator():
    return propose(rig(simulator=model, start=(0.1, 0.0)), SHAPE, None, BUDGET)


def test_data_say_how_far_a_step_leads_and_where_episodes_begin(from_data):
    known = from_data.knowledge
    assert (known.belief, known.reward, known.costs, known.gp.mean) == ("gp", "known", ("known",), "stay")
    np.testing.assert_array_equal(known.starts, DATA.states[::16])
    moves = np.sqrt(np.mean((DATA.next_states - DATA.states) ** 2, axis=0))
    np.testing.assert_array_less(
        np.abs(np.log(np.array(known.gp.scale) / moves)), np.log(12)
    )  # as far as functions swing
    assert known.source == "Made from 160 recorded transitions of 10 episodes."


def test_what_was_done_is_said(from_data):
    assert has(
        from_data,
        "The reward is a known function.",
        "The cost 'swing' is a known function.",
        "The belief is a Gaussian process: 3 numbers in observation and action, and 320 transitions with those of 10",
        "Without a simulator, the observation is expected to stay as it is.",
        "One step leads away from what is expected by about: angle ",
        "Of 32 rows that were held out the interval of 95 % holds ",
        "An episode counts as exploring if it promises 26 nats: what its 16 steps bring",
    )


def test_held_out_data_are_foretold(from_data):
    """At least 90 % in the interval of 95 %, which is what is asked for, and no less than before a stretch."""
    found = from_data.knowledge.found
    for how in ("random", "outermost"):
        after, before = found[f"coverage_{how}"], found[f"coverage_{how}_before"]
        assert list(after) == list(before) == ["0.5", "0.8", "0.95", "0.99"]
        assert after["0.95"] >= 0.9
        assert all(after[level] >= before[level] for level in after)
    assert len(found["stretched"]) == 2
    assert min(found["stretched"]) >= 1
    assert not has(from_data, "Even so the data contradict it")


def test_how_carefully_the_problem_is_posed_follows_from_horizon_and_budget(from_data):
    """16 steps of two outputs, each ln(1 + 4) / 2 nats: 25.75, with two digits."""
    method = from_data.knowledge.method
    assert (method.samples, method.tightening, method.exploration_threshold) == (30, (0.09,), 26.0)


def test_a_task_can_be_made_of_it(from_data):
    task = make_own_task(rig(), from_data.knowledge.as_written, (3.0,), DATA)
    assert task.prior.gp.scale == from_data.knowledge.as_written.gp.scale
    assert task.prior.data is DATA


def test_with_a_simulator_only_what_it_does_not_explain_is_uncertain(from_data, from_both):
    """It is wrong by 0.04 times the action in the speed, and right in the angle but for the noise."""
    stay, known = from_data.knowledge.gp, from_both.knowledge
    assert known.gp.mean == "simulator"
    assert has(from_both, "The simulator is used as it is.", "Of 32 rows that were held out")
    assert np.all(np.array(known.gp.scale) < 0.5 * np.array(stay.scale))
    assert known.gp.scale[0] < 0.02
    assert known.source.startswith("Made from 160 recorded transitions of 10 episodes and the simulator ")


def test_a_simulator_alone_is_taken_to_be_wrong_by_a_share_of_its_steps(from_simulator):
    """Both within a factor of 3 of the steps that are recorded."""
    known = from_simulator.knowledge
    assert (known.starts, known.gp.mean, known.found) == (((0.1, 0.0),), "simulator", {})
    moves = np.sqrt(np.mean((DATA.next_states - DATA.states) ** 2, axis=0))
    np.testing.assert_array_less(np.abs(np.log(np.array(known.gp.scale) / (ASSUMED_ERROR * moves))), np.log(3))
    assert has(from_simulator, "There are no data to judge the simulator by, so it is assumed to be wrong by 20 %")
    make_own_task(rig(simulator=model, start=(0.1, 0.0)), known.as_written, (3.0,), None)


def fixed(monkeypatch, scale, noise=0.05):
    """Numbers that are not fitted, so that nothing takes time; what they would be fitted to is kept."""
    shown = []

    def found(inputs, residuals, floor, seed):
        shown.append((inputs, residuals))
        scales = (scale,) * residuals.shape[1] if np.isscalar(scale) else scale
        return Fitted(scales, "squared-exponential", ((1.0, 1.0, 2.0),), (noise,), 0.0)

    monkeypatch.setattr(gp_proposal, "fit_numbers", found)
    return shown


@pytest.mark.parametrize(("episodes", "steps"), [(10, 16), (5, 16), (2, 40)])
def test_what_is_held_out_at_random_and_outermost_is_not_fitted_to(monkeypatch, episodes, steps):
    shown, data = fixed(monkeypatch, 1.0), recorded(episodes, steps)
    propose(rig(), SHAPE, data, BUDGET)
    (inputs, residuals), (everything, _) = shown  # the fit that is judged, then the one that is kept
    assert len(everything) == len(data.actions)
    every = np.concatenate([data.states, data.actions], axis=1)
    spread = np.maximum(every.std(axis=0), [0, 0, 2 / np.sqrt(12)])  # of an action at least that of its range
    out = held_out(every, [steps] * episodes, spread)
    assert all(0.1 < rows.mean() < 0.3 for rows in out.values())
    rest = ~(out["random"] | out["outermost"])
    np.testing.assert_array_equal(inputs, every[rest])
    np.testing.assert_allclose(residuals, (data.next_states - data.states)[rest], atol=1e-12)


def test_what_must_be_learned_is_an_output_of_its_own(monkeypatch):
    fixed(monkeypatch, 1.0)
    system = rig(cost=("info:heat",), reward="")
    found = propose(system, SHAPE, DATA, BUDGET)
    assert (found.knowledge.reward, found.knowledge.costs) == ("learned", ("learned",))
    assert len(found.knowledge.gp.scale) == 4
    assert has(
        found, "The reward is what the system reports, so it is learned", "The cost 'heat' is what the system rep"
    )
    assert make_own_task(system, found.knowledge, (3.0,), DATA).state_size == 4
    branched = propose(rig(cost=(branching,)), SHAPE, DATA, BUDGET)
    assert (branched.knowledge.reward, branched.knowledge.costs) == ("known", ("learned",))
    assert has(branched, "The cost 'branching' is a function that cannot be traced (it branches on values")


def test_a_module_whose_name_begins_with_info_is_a_module(monkeypatch):
    fixed(monkeypatch, 1.0)
    module = ModuleType("infosystem")
    module.price = branching
    monkeypatch.setitem(sys.modules, "infosystem", module)
    found = propose(rig(cost=("infosystem:price",)), SHAPE, DATA, BUDGET)
    assert has(found, "The cost 'price' is a function that cannot be traced")


def test_an_overconfident_fit_is_stretched_until_it_holds_what_it_was_not_shown(monkeypatch):
    """Scales of a third of what they should be; each output is stretched as far as it needs."""
    fixed(monkeypatch, SMALL, noise=0.02)
    found = propose(rig(), SHAPE, DATA, BUDGET)
    stretched = np.array(found.knowledge.gp.scale) / SMALL
    assert np.all((stretched > 1) & (stretched < gp_proposal.MOST_STRETCH))
    assert stretched[0] != stretched[1]
    tried = found.knowledge.found
    assert isinstance(tried["stretched"], tuple)
    assert tried["stretched"] == pytest.approx(tuple(stretched), rel=1e-12)
    assert min(tried[f"coverage_{how}_before"]["0.95"] for how in ("random", "outermost")) < 0.9
    assert min(tried[f"coverage_{how}"]["0.95"] for how in ("random", "outermost")) >= 0.9
    words = f"(angle by {stretched[0]:.2g}, speed by {stretched[1]:.2g}): now "
    assert has(found, "Of 32 rows that were held out", f"That is too few, so scales were multiplied {words}")


def test_only_the_output_that_is_foretold_badly_is_stretched(monkeypatch):
    fixed(monkeypatch, (1.0, SMALL[1]), noise=0.02)
    found = propose(rig(), SHAPE, DATA, BUDGET)
    first, second = found.knowledge.found["stretched"]
    assert first == 1 < second
    assert found.knowledge.gp.scale == pytest.approx((1.0, second * SMALL[1]), rel=1e-12)
    assert has(found, f"That is too few, so scales were multiplied (speed by {second:.2g}): now ")


def test_what_is_foretold_well_is_left_as_it_is(monkeypatch):
    fixed(monkeypatch, 1.0)
    found = propose(rig(), SHAPE, DATA, BUDGET)
    assert (found.knowledge.found["stretched"], found.knowledge.gp.scale) == ((1.0, 1.0), (1.0, 1.0))
    for how in ("random", "outermost"):
        assert found.knowledge.found[f"coverage_{how}"] == found.knowledge.found[f"coverage_{how}_before"]
    assert has(
        found, "Of 32 rows that were held out the interval of 95 % holds 100 %, and of the outermost fifth 100 %"
    )
    assert not has(found, "That is too few")


def test_data_that_contradict_every_fit_are_a_warning(monkeypatch):
    fixed(monkeypatch, 1e-4)
    found = propose(rig(), SHAPE, DATA, BUDGET)
    assert found.knowledge.gp.scale == pytest.approx((6e-4, 6e-4))
    assert set(found.knowledge.found["stretched"]) == {gp_proposal.MOST_STRETCH}
    assert has(found, "That is too few", "Even so the data contradict it: they jump", "An episode counts as exploring")


def test_what_never_changes_in_the_data_is_said(monkeypatch):
    fixed(monkeypatch, 1.0)
    found = propose(rig(), SHAPE, DATA._replace(actions=np.full((160, 1), 0.5)), BUDGET)
    assert has(found, "In these data push never changes: nothing can be said of its effect.")


@pytest.mark.parametrize(("rows", "held"), [(10, 2), (13, 3), (45, 9)])
def test_few_data_make_a_prior_all_the_same_and_it_is_said_that_nothing_judges_it(monkeypatch, rows, held):
    fixed(monkeypatch, 1.0)
    found = propose(rig(), SHAPE, Transitions(*(part[:rows] for part in DATA)), BUDGET)
    assert not any("nan" in sentence for sentence in found.said)
    assert has(found, f"Only {held} rows could be held out, too few to judge this by: record more, and make it again.")
    assert not has(found, f"Of {held} rows that were held out")


def test_ten_transitions_are_enough_to_fit_to():
    found = propose(rig(), SHAPE, Transitions(*(part[:10] for part in DATA)), BUDGET).knowledge
    assert np.all(np.isfinite(found.gp.scale) & (np.array(found.gp.scale) > 0))
    make_own_task(rig(), found.as_written, (3.0,), None)


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_hardly_any_data_are_refused(rows):
    with pytest.raises(UserError, match=rf"^{rows} transitions are too few to fit anything to; record 10 or more\.$"):
        propose(rig(), SHAPE, Transitions(*(part[:rows] for part in DATA)), BUDGET)


def test_the_starts_are_not_too_many(monkeypatch):
    fixed(monkeypatch, 1.0)
    assert len(propose(rig(), SHAPE, recorded(episodes=70, steps=2), BUDGET).knowledge.starts) == MOST_STARTS
    given = propose(rig(start=(1.0, 2.0)), SHAPE, DATA, BUDGET).knowledge.starts
    assert given == ((1.0, 2.0),)  # what the user says comes first


@pytest.mark.parametrize(("budget", "tightening"), [(3.0, 0.09), (0.0, 1e-3), (123.0, 3.7)])
def test_plans_stay_below_the_budget_of_a_sum_by_a_share_of_it(monkeypatch, budget, tightening):
    fixed(monkeypatch, 1.0)
    priced = (Cost("swing", budget, "sum"),)
    assert propose(rig(), SHAPE, DATA, priced).knowledge.method.tightening == (tightening,)


def test_where_every_step_counts_it_is_a_share_of_the_way_from_the_lowest_cost(monkeypatch):
    """A temperature of at least 280 that may be 300: 0.03 of 20."""
    fixed(monkeypatch, 1.0)
    data = DATA._replace(costs=280 + np.arange(len(DATA.actions), dtype=float)[:, None])
    priced = (Cost("heat", 300.0, "statewise"),)
    assert propose(rig(), SHAPE, data, priced).knowledge.method.tightening == (0.6,)


def test_data_in_which_nothing_moves_are_refused():
    with pytest.raises(UserError, match=r"^in these data nothing moves, so that nothing can be learned"):
        propose(rig(), SHAPE, DATA._replace(next_states=DATA.states), BUDGET)


def test_a_learned_cost_that_was_never_seen_to_change_is_a_warning(monkeypatch):
    fixed(monkeypatch, 1.0)
    silent = DATA._replace(costs=np.zeros((len(DATA.actions), 1)))
    found = propose(rig(cost=("info",)), SHAPE, silent, (Cost("cost", 3.0),))
    assert has(found, "In these data the cost 'cost' is always the same: until it is seen to change")


def test_learned_signals_are_expected_to_be_the_worst_that_was_seen(monkeypatch):
    fixed(monkeypatch, 1.0)
    data = DATA._replace(costs=20 + DATA.states[:, :1])
    known = propose(rig(cost=("info",)), SHAPE, data, (Cost("cost", 3.0),)).knowledge
    np.testing.assert_allclose(known.gp.signal_means, [20 + DATA.states[:, 0].max()])


# which belief


def test_large_systems_and_much_data_get_networks():
    size = LARGEST_GP
    large = Description(tuple(f"x{i}" for i in range(size)), (-1.0,), (1.0,), 10, ("u",))
    zeros = np.zeros((20, size))
    data = Transitions(zeros, np.zeros((20, 1)), zeros, np.zeros(20), np.zeros((20, 1)), np.zeros(20, bool))
    found = propose(rig(), large, data, BUDGET)
    assert (found.knowledge.belief, found.knowledge.gp, found.knowledge.method.samples) == ("ensemble", None, 10)
    assert has(
        found,
        "The belief is an ensemble of networks: 13 numbers in observation and action, and 120 transitions with those",
        "Networks learn little from 20 transitions; record 1000 or more",
    )


@pytest.mark.parametrize(
    ("rows", "episodes", "wanted", "belief", "words"),
    [
        (80, 10, "", "gp", "which it can hold (up to 12 and 4000)"),
        (3840, 10, "", "gp", "3 numbers in observation and action, and 4000 transitions with those of 10 episodes"),
        (3841, 10, "", "ensemble", "4001 transitions with those of 10 episodes, too many for a Gaussian process"),
        (0, 251, "", "ensemble", "too many for a Gaussian process"),
        (5000, 10, "gp", "gp", "The belief is gp, as you say (3 numbers"),
        (80, 10, "ensemble", "ensemble", "The belief is ensemble, as you say"),
    ],
)
def test_the_belief_fits_the_size_unless_the_user_insists(rows, episodes, wanted, belief, words):
    chosen, said = explain_belief(SHAPE, rows, episodes, wanted)
    assert chosen == belief
    assert words in said


# what is refused


@pytest.mark.parametrize(
    ("settings", "data", "said"),
    [
        ({"simulator": in_degrees}, DATA, r"wrong by .* in angle where a step of the data moves it by .*same units"),
        ({"simulator": lambda x, a: truth(x, a)[:1]}, DATA, "the simulator answers with 1 numbers, and an obs"),
        ({"simulator": lambda x, a: x * np.nan}, DATA, "answers with NaN or runs away"),
        ({}, None, "nothing says how the system moves: give recorded data, or simulator="),
        ({"start": (0.0, 0.0)}, None, "nothing says how the system moves"),
        ({"simulator": model}, None, "nothing says where episodes begin: give recorded data, or start="),
        ({"simulator": model, "start": (0.0,)}, None, "start has 1 numbers, and an observation has 2"),
        (
            {"simulator": model, "start": (0.0, 0.0), "reward": ""},
            None,
            "the reward must be learned, and there are no data; record some, or give it as a function",
        ),
        (
            {"simulator": model, "start": (0.0, 0.0), "cost": (branching,)},
            None,
            "the cost 'branching' must be learned, and there are no data",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(settings, data, said):
    with pytest.raises(UserError, match=said) as caught:
        propose(rig(**settings), SHAPE, data, BUDGET)
    assert "\n" not in str(caught.value)
