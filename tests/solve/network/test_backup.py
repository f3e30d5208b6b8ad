"""Going over to the prior policy: at the step that arithmetic says, for what its critic says it is worth."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_problems import Beside, Switching, known, make_problem, solver, two_states, units

from sbsrl.monitor import INTERVENED
from sbsrl.networks import init_network
from sbsrl.policy import Observant, told
from sbsrl.problem import SwitchRule
from sbsrl.solve.network.backup import Backup, Filtered, Pessimistic, evaluate_prior, goes_over, switched
from sbsrl.solve.network.forecast import forecast
from sbsrl.solve.network.network_policy import NetworkPolicy, constant
from sbsrl.solve.network.segments import CODE, init_critic
from sbsrl.transitions import Transitions

HORIZON, BUDGET = 8, 3.0


def network(action):
    """A policy that always gives this action."""
    return constant(init_network(jax.random.key(0), (1, 4, 1)), units(), jnp.full(1, action))


def critic(reward, cost):
    """One that says the same of all states: reward, cost, uncertainty per step."""
    *hidden, last = jax.tree.map(jnp.zeros_like, init_network(jax.random.key(0), (1 + CODE, 4, 3)))
    return (*hidden, last._replace(bias=jnp.array([reward, cost, 0.0], jnp.float32)))


def backup(reward, cost, prior=-1.0):
    return Backup(network(prior), critic(reward, cost), units(), jnp.ones(3, jnp.float32), HORIZON)


def switch(pessimism=0.0, optimism=0.0, budget=BUDGET, planned=True):
    return SwitchRule(*(jnp.asarray(v, jnp.float32) for v in ([budget], [pessimism], optimism)), jnp.asarray(planned))


def sooper_problem(samples, budget=BUDGET, pessimism=0.0, optimism=0.0, uncertainty=0.0):
    problem = make_problem(
        samples.make(samples.numbers[0]),
        samples,
        budget,
        HORIZON,
        constraint="mean",
        switch=switch(pessimism, optimism, budget),
        uncertainty=lambda x, a: jnp.float32(uncertainty),
    )
    return problem


def test_it_goes_over_when_the_budget_is_reached():
    sums = [[1.0], [1.5], [0.9]], [[1.0], [1.0], [1.0]], [[0.9], [0.5], [1.0]]
    parts = (jnp.array(each, jnp.float32) for each in sums)
    assert goes_over(switch(), *parts).tolist() == [False, True, False]


def test_an_episode_of_a_model_goes_over_at_the_right_step_and_is_worth_the_backup_from_then_on():
    """Busy costs and earns 1; t + 1 + (7 - t) / 10 >= 3 from t = 2 on: 2 steps earn 1, 6 of the backup 0.05 each."""
    samples = Beside(jnp.ones(2, jnp.float32), two_states)
    problem = switched(sooper_problem(samples), backup(0.05, 0.1))
    starts = jnp.zeros((3, 1), jnp.float32)
    found = forecast(network(1.0), units(), problem, starts, HORIZON, 1, jax.random.key(0))
    np.testing.assert_allclose(found.reward, 1.998 + 6 * 0.05, rtol=1e-3)
    np.testing.assert_allclose(found.costs[:, 0], [1.999 + 6 * 0.1] * 2, rtol=1e-3)


def test_what_is_uncertain_costs_more_and_earns_more_until_then():
    """s = 0.5 everywhere: a step costs 1 + 0.6 / 2 and earns 1 + 2 / 2. From t = 2 on 1.3 (t + 1) >= 3."""
    samples = Beside(jnp.ones(1, jnp.float32), two_states, 0.5)
    problem = switched(sooper_problem(samples, pessimism=0.6, optimism=2.0), backup(0.0, 0.0))
    found = forecast(network(1.0), units(), problem, jnp.zeros((2, 1), jnp.float32), HORIZON, 1, jax.random.key(0))
    np.testing.assert_allclose(found.reward, 2 * 2, rtol=1e-3)
    np.testing.assert_allclose(found.costs[:, 0], 2 * 1.3, rtol=1e-3)
    np.testing.assert_allclose(found.information, 2 * 0.5, rtol=1e-6)


def test_rows_without_memory_are_only_dearer():
    rows = Pessimistic(Beside(jnp.ones(1, jnp.float32), two_states, 0.5).beside(1, 1), switch(pessimism=0.6))
    state, action = jnp.zeros((2, 1), jnp.float32), jnp.ones((2, 1), jnp.float32)
    moved, uncertainty, memory = rows.advanced(state, action, jnp.zeros((2, 0), jnp.float32), rows.begun(2))
    np.testing.assert_allclose(moved.costs, 1.3, rtol=1e-6)
    np.testing.assert_allclose(uncertainty, 0.5)
    assert memory == ()


@pytest.mark.parametrize(("pessimism", "rate"), [(0.0, 0.3), (0.4, 0.3 + 0.4 * 0.5)])
def test_the_critic_learns_what_the_prior_policy_costs_per_step(pessimism, rate):
    """The prior policy spends 0.3 of every step busy, at the price 1; s = 0.5. Within 5 % of hand arithmetic."""
    samples = Beside(jnp.ones(1, jnp.float32), two_states, 0.5)
    problem = sooper_problem(samples, pessimism=pessimism)
    first = init_critic(jax.random.key(1), 1, 3, 16)
    prior = Backup(network(-0.4), first.network, units(), jnp.ones(3, jnp.float32), HORIZON)
    states = jnp.linspace(-1, 1, 20, dtype=jnp.float32)[:, None]
    learned = evaluate_prior(first, prior, problem, network(1.0), states, 0.9, 300, jax.random.key(2))
    found = eqx.tree_at(lambda b: b.critic, prior, learned.network).rates(jnp.array([[0.0], [0.3]], jnp.float32))
    np.testing.assert_allclose(found[:, 0], 0.3, rtol=0.05)
    np.testing.assert_allclose(found[:, 1], rate, rtol=0.05)
    np.testing.assert_allclose(found[:, 2], 0.5, rtol=0.05)


def test_the_conversion_is_exact_for_a_cost_that_is_the_same_in_every_step():
    """A chain that costs 0.25 per step: (T - t) v_c is what the rest really costs, for any t. Within 5 %."""
    chain = Beside(jnp.ones(1, jnp.float32), lambda n: known(lambda x, a: x + 1, lambda x, a, y: 0 * x[0], quarter))
    first = init_critic(jax.random.key(1), 1, 3, 16)
    prior = Backup(network(0.0), first.network, units(), jnp.ones(3, jnp.float32), HORIZON)
    states = jnp.arange(8, dtype=jnp.float32)[:, None]
    learned = evaluate_prior(first, prior, sooper_problem(chain), network(0.0), states, 0.95, 300, jax.random.key(2))
    rates = eqx.tree_at(lambda b: b.critic, prior, learned.network).rates(states)[:, 1]
    left = (HORIZON - np.arange(8)).astype(np.float32)
    np.testing.assert_allclose(left * rates, left * 0.25, rtol=0.05)


def quarter(x, a, y):
    return jnp.full(1, 0.25, x.dtype)


def filtered(reward=0.0, cost=0.1, pessimism=0.0):
    return Filtered(
        NetworkPolicy(network(1.0), units()),
        backup(reward, cost),
        two_states(),
        lambda x, a: jnp.float32(0.5),
        switch(pessimism),
    )


@pytest.mark.parametrize(("pessimism", "first"), [(0.0, 2), (2.0, 1)])
def test_the_filter_hands_over_at_the_right_step(pessimism, first):
    """As the models: t + 1 + lambda / 2 + (7 - t) / 10 >= 3; the prior policy rests, so it never comes back."""
    policy = filtered(pessimism=pessimism)
    assert isinstance(policy, Observant)
    x, state, instead = jnp.zeros(1), policy.init(), []
    for t in range(HORIZON):
        a, state, said = policy.act(x, state, jax.random.key(t))
        x = (1 + a.astype(jnp.float64)) / 2
        state = policy.observe(state, 0.0, np.array([float(x[0])]))
        instead.append(bool(said[INTERVENED]))
    assert instead == [t >= first for t in range(HORIZON)]


def at_rest(key):
    return jnp.zeros(1)


def resting():
    """Data of a behaviour that does nothing."""
    states, n = np.zeros((20, 1)), 20
    return Transitions(states, np.full((n, 1), -0.999), states, np.zeros(n), np.zeros((n, 1)), np.zeros(n, bool))


def on_the_truth(policy, price):
    """What an episode costs at this price, and when the prior policy acted."""
    x, state, total, instead = jnp.zeros(1), policy.init(), 0.0, []
    for t in range(HORIZON):
        a, state, said = policy.act(x, state, jax.random.key(t))
        x = (1 + a.astype(jnp.float64)) / 2
        cost = price * float(x[0])
        state = told(policy, state, float(x[0]), np.array([cost]))
        total, instead = total + cost, [*instead, bool(said.get(INTERVENED, False))]
    return total, instead


def test_a_cmdp_in_which_every_method_has_its_known_answer():
    """Two models: busy time costs 0.5 or 2 per step; the truth is 2, the budget of 8 steps 2.

    sbsrl is busy for at most 2 / 2 of a step; trajectories that change the model (mbpo) cost 1.25 on average, so that
    it is busy for 1.6 and costs 3.2; sooper begins as that does, and rests when the next step would reach the budget.
    """
    prices = jnp.array([0.5, 2.0], jnp.float32)
    chosen = solver(
        at_rest, HORIZON, budget=2.0, return_scale=HORIZON, multiplier_rate=0.05, checks=1, data=resting(), nominal=16
    )
    nominal = two_states(1.25)
    problems = {
        "sbsrl": make_problem(nominal, Beside(prices, two_states), 2.0, HORIZON),
        "mbpo": make_problem(nominal, Switching(prices, two_states), 2.0, HORIZON, constraint="mean"),
        "sooper": make_problem(
            nominal, Switching(prices, two_states), 2.0, HORIZON, constraint="mean", switch=switch(budget=2.0)
        ),
    }
    found = {}
    for name, problem in problems.items():
        state, _ = chosen.prepare(problems["sbsrl"], chosen.init(jax.random.key(0)), jax.random.key(1))
        for i in range(16):
            state, _ = chosen._block(chosen._switched(problem, state), state, jax.random.fold_in(jax.random.key(2), i))
        state = chosen._evaluated(problem, state._replace(played=state.network), jax.random.key(3))
        found[name] = on_the_truth(chosen._policy(problem, state), 2.0)
    assert 1.6 < found["sbsrl"][0] <= 2.1
    assert not any(found["sbsrl"][1])
    assert found["mbpo"][0] > 2.5
    assert not any(found["mbpo"][1])
    assert found["sooper"][0] <= 2.2
    assert any(found["sooper"][1])
