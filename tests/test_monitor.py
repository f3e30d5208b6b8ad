"""The monitor hands over at the step at which the cost so far and the predicted rest exceed the budget, not before."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slider
from known_problems import Always, Beside, known, two_states

from sbsrl.monitor import INTERVENED, Monitored, before_takeover
from sbsrl.policy import Observant
from sbsrl.prediction import final_costs
from sbsrl.runs.judge import judge
from sbsrl.systems.episode import Played
from sbsrl.transitions import Episode

HORIZON, BUSY, IDLE = 8, Always(1.0), Always(-1.0)


def prices(*numbers):
    return Beside(jnp.array(numbers, jnp.float32), two_states)


def monitored(samples, budget, every=1, aggregation="sum"):
    return Monitored((BUSY, IDLE), samples, jnp.array([budget], jnp.float32), (aggregation,), HORIZON, every)


def played(policy, price):
    """At which steps the prior policy acted, and what the episode cost, on a system of this price."""
    x, state, taken_over, total = jnp.zeros(1), policy.init(), [], 0.0
    for t in range(HORIZON):
        a, state, said = policy.act(x, state, jax.random.key(t))
        x = (1 + a) / 2
        cost = price * float(x[0])
        state = policy.observe(state, 0.0, np.array([cost]))
        taken_over.append(bool(said[INTERVENED]))
        total += cost
    return taken_over, total


def test_it_is_told_what_steps_cost():
    assert isinstance(monitored(prices(0.25), 3.0), Observant)


@pytest.mark.parametrize(("every", "first"), [(1, 2), (2, 2), (3, 3)])
def test_it_takes_over_when_cost_so_far_and_predicted_rest_exceed_the_budget(every, first):
    """Predicted 1/4 per step, really 1: t + (8 - t) / 4 > 3 from t = 4/3 on, seen at the next look."""
    taken_over, total = played(monitored(prices(0.25), 3.0, every), 1.0)
    assert taken_over == [t >= first for t in range(HORIZON)]
    assert total == first


def test_one_sample_that_exceeds_the_budget_is_enough():
    assert not any(played(monitored(prices(0.1, 0.25), 3.0), 0.1)[0])
    assert all(played(monitored(prices(0.1, 0.5), 3.0), 0.1)[0])


def test_a_prior_policy_that_is_worse_does_not_take_over():
    """All would exceed the budget; to be idle is cheaper than to be half busy, to be busy dearer."""
    for prior, better in ((IDLE, True), (BUSY, False)):
        policy = monitored(prices(1.0), 3.0)
        policy = Monitored((Always(0.0), prior), policy.samples, policy.budgets, policy.aggregations, HORIZON, 1)
        assert all(played(policy, 1.0)[0]) == better


@pytest.mark.parametrize(
    ("prior", "expected"),
    [(Always(-0.5), 8 * 0.25), (Always(0.5), 0.0), (IDLE, 0.0)],
    ids=["the prior policy, which keeps the budget", "the last resort, since the prior policy does not", "both do"],
)
def test_the_first_way_out_that_keeps_the_budget_is_taken(prior, expected):
    """Busy costs 8 of 3; a quarter busy 2, three quarters busy 6."""
    plain = monitored(prices(1.0), 3.0)
    policy = Monitored((BUSY, prior, IDLE), plain.samples, plain.budgets, plain.aggregations, HORIZON, 1)
    taken_over, total = played(policy, 1.0)
    assert all(taken_over)
    assert total == expected


def test_a_way_out_that_turns_out_too_dear_is_left_for_the_next():
    """A quarter busy is predicted to cost 2 of 3 and really costs 4 times that: t + (8 - t) / 4 > 3 from t = 4/3 on."""
    plain = monitored(prices(1.0), 3.0)
    policy = Monitored((BUSY, Always(-0.5), IDLE), plain.samples, plain.budgets, plain.aggregations, HORIZON, 1)
    taken_over, total = played(policy, 4.0)
    assert all(taken_over)
    assert total == 2.0


def test_there_is_no_way_back():
    """At a quarter of the price that is predicted, all would keep the budget once the first look is over."""
    plain = monitored(prices(1.0), 7.0)
    policy = Monitored((BUSY, IDLE), plain.samples, plain.budgets, plain.aggregations, HORIZON, 1)
    assert played(policy, 0.25) == ([True] * HORIZON, 0.0)


def test_if_nothing_keeps_the_budget_the_cheapest_acts():
    """All exceed a budget of 0.4: busy for three quarters, all, or half of the time."""
    plain = monitored(prices(1.0), 0.4)
    three = (Always(0.5), BUSY, Always(0.0))
    policy = Monitored(three, plain.samples, plain.budgets, plain.aggregations, HORIZON, 1)
    assert played(policy, 1.0) == ([True] * HORIZON, 4.0)
    three = (Always(0.0), BUSY, Always(0.5))
    policy = Monitored(three, plain.samples, plain.budgets, plain.aggregations, HORIZON, 1)
    assert played(policy, 1.0) == ([False] * HORIZON, 4.0)


@pytest.mark.parametrize("aggregation", ["sum", "statewise"])
def test_nobody_takes_over_who_is_no_better(aggregation):
    """The budget is exceeded already, and what is left costs nothing, whoever acts."""
    plain = monitored(prices(0.0), 3.0, aggregation=aggregation)
    policy = Monitored((BUSY, Always(0.0), IDLE), plain.samples, plain.budgets, plain.aggregations, HORIZON, 1)
    spent = policy.observe(policy.init(), 0.0, np.array([5.0]))
    _, after, said = policy.act(jnp.zeros(1), spent, jax.random.key(0))
    assert (int(after.acting), bool(said[INTERVENED])) == (0, False)


def test_a_way_out_of_which_nothing_is_known_is_not_taken_if_another_is():
    """The prior policy divides by zero on the samples; the last resort, half busy, exceeds the budget, yet less."""
    samples = Beside(jnp.array([1.0], jnp.float32), no_number_where_idle)
    budgets = jnp.array([3.0], jnp.float32)
    policy = Monitored((BUSY, IDLE, Always(0.0)), samples, budgets, ("sum",), HORIZON, 1)
    _, after, _ = policy.act(jnp.zeros(1), policy.init(), jax.random.key(0))
    assert int(after.acting) == 2


def no_number_where_idle(price):
    """Two states; what an idle step costs is no number."""
    return known(lambda x, a: (1 + a) / 2, lambda x, a, y: y[0], lambda x, a, y: price * jnp.where(y > 0, y, jnp.nan))


def test_a_budget_that_is_just_kept_is_kept():
    assert not any(played(monitored(prices(0.25), 2.0), 0.25)[0])


def test_a_cost_of_every_step_is_not_summed():
    assert not any(played(monitored(prices(0.25), 0.3, aggregation="statewise"), 0.25)[0])
    taken_over, _ = played(monitored(prices(0.25), 0.3, aggregation="statewise"), 0.5)
    assert taken_over == [False] + [True] * 7


def test_a_prediction_that_is_no_number_is_not_within_the_budget():
    assert all(played(monitored(prices(jnp.nan), 3.0), 0.1)[0])


def test_costs_of_the_rest_begin_where_the_episode_is():
    """Steps 3 and 4 at the prices 1/4 and 1/2, after a cost of 7."""
    arguments = jnp.zeros(1), jnp.array([7.0], jnp.float32), jnp.int32(3), jnp.int32(5), HORIZON, ("sum",)
    found = final_costs(prices(0.25, 0.5), BUSY, (), *arguments, jax.random.key(0))
    np.testing.assert_allclose(found[:, 0], [7.5, 8.0])


def test_many_episodes_at_once_are_watched_like_each_alone():
    """On the slider, whose models here are its equations with a cost that is too low: so some are stopped, some not."""
    task = slider.make()
    policy = Monitored(
        (slider.Pusher(jnp.asarray(0.57)), slider.Pusher(jnp.asarray(0.0))),
        Beside(jnp.array([0.6], jnp.float32), slider_model),
        jnp.array([1.0], jnp.float32),
        ("sum",),
        slider.HORIZON,
        4,
    )
    keys = jax.random.split(jax.random.key(5), 12)
    alone = [alone_on(policy, key) for key in keys]
    found = judge(task, policy, 12, jax.random.key(5))
    np.testing.assert_allclose(found["true_interventions"], np.mean([stopped for stopped, _ in alone]))
    np.testing.assert_allclose(found["true_cost"], np.mean([cost for _, cost in alone]), rtol=1e-5)
    assert 0 < found["true_interventions"] < 1


def slider_model(share):
    def costs(x, a, y):
        return share * slider.costs(x, a, y)

    return known(lambda x, a: slider.dynamics(x, a).astype(jnp.float32), slider.reward, costs)


def alone_on(policy, key):
    """Whether a single episode is stopped, and what it costs: step by step, with the keys of the judge."""
    start_key, _, act_key = jax.random.split(key, 3)
    x, state, stopped, total = slider.start(start_key), policy.init(), False, 0.0
    for t in range(slider.HORIZON):
        a, state, said = policy.act(x, state, jax.random.fold_in(act_key, np.uint32(t)))
        y = slider.dynamics(x, a)
        cost = slider.costs(x, a, y)
        state, x = policy.observe(state, slider.reward(x, a, y), cost), y
        stopped, total = stopped or bool(said[INTERVENED]), total + float(cost[0])
    return stopped, total


def test_only_the_steps_before_it_took_over_say_something_of_the_policy():
    states, steps = np.arange(9.0)[:, None], np.arange(8.0)[:, None]
    episode = Episode(states, steps, steps[:, 0], steps)
    cut = before_takeover(Played(episode, {INTERVENED: [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]}))
    assert (len(cut.states), len(cut.actions), len(cut.rewards), len(cut.costs)) == (3, 2, 2, 2)
    assert cut.ended == "interrupted"
    assert len(before_takeover(Played(episode, {})).actions) == 8


def test_what_the_policy_says_of_itself_is_kept():
    class Talking(Always):
        def act(self, x, state, key):
            return jnp.full(1, self.action), (), {"intervened": jnp.asarray(True), "sure": jnp.asarray(0.5)}

    plain = monitored(prices(0.1), 3.0)
    policy = Monitored((Talking(1.0), IDLE), plain.samples, plain.budgets, plain.aggregations, HORIZON, 1)
    _, _, said = policy.act(jnp.zeros(1), policy.init(), jax.random.key(0))
    assert {name: float(value) for name, value in said.items()} == {
        "watched/intervened": 1.0,
        "watched/sure": 0.5,
        INTERVENED: 0.0,
    }
