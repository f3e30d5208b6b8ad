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
from sbsrl.solve.network.backup import Backup, Filtered, evaluate_prior, goes_over, switched
from sbsrl.solve.network.episodes import episodes, rows_of
from sbsrl.solve.network.network_policy import NetworkPolicy, constant
from sbsrl.solve.network.segments import CODE, init_critic
from sbsrl.transitions import Transitions

HORIZON, BUDGET, KEY = 8, 3.0, jax.random.key(0)


def network(action):
    """A policy that always gives this action."""
    return constant(init_network(jax.random.key(0), (1, 4, 1)), units(), jnp.full(1, action))


def critic(reward, cost):
    """One that says the same of all states: reward, cost, uncertainty per step."""
    *hidden, last = jax.tree.map(jnp.zeros_like, init_network(jax.random.key(0), (1 + CODE, 4, 3)))
    return (*hidden, last._replace(bias=jnp.array([reward, cost, 0.0], jnp.float32)))


def backup(reward, cost, prior=-1.0):
    return Backup(network(prior), critic(reward, cost), units(), jnp.ones(3, jnp.float32), HORIZON)


def rule(pessimism=0.0, optimism=0.0, budget=BUDGET, planned=True):
    return SwitchRule(*(jnp.asarray(v, jnp.float32) for v in ([budget], [pessimism], optimism)), planned)


def sooper_problem(samples, budget=BUDGET, pessimism=0.0, optimism=0.0, planned=True):
    problem = make_problem(
        samples.make(samples.numbers[0]),
        samples,
        budget,
        HORIZON,
        constraint="mean",
        switch=rule(pessimism, optimism, budget, planned),
    )
    return problem


def test_it_goes_over_when_the_budget_is_reached():
    sums = [[1.0], [1.5], [0.9]], [[1.0], [1.0], [1.0]], [[0.9], [0.5], [1.0]]
    parts = (jnp.array(each, jnp.float32) for each in sums)
    assert goes_over(rule(), *parts).tolist() == [False, True, False]


def totals(problem, network, played):
    """What an episode of the nominal model earns, costs and teaches, as it is planned or as it will be played."""
    rows = rows_of(problem, 0, 1, played)
    found = episodes(network, units(), rows, jnp.zeros((1, 1), jnp.float32), problem, HORIZON, 0.0, False, KEY)
    return [float(part.ravel()[0]) for part in found]


def test_a_planned_episode_goes_over_at_the_right_step_and_is_worth_the_backup_from_then_on():
    """Busy costs and earns 1; t + 1 + (7 - t) / 10 >= 3 from t = 2 on: 2 steps earn 1, 6 of the backup 0.05 each."""
    problem = switched(sooper_problem(Beside(jnp.ones(2, jnp.float32), two_states)), backup(0.05, 0.1))
    np.testing.assert_allclose(totals(problem, network(1.0), False)[:2], [2 + 6 * 0.05, 2 + 6 * 0.1], rtol=2e-3)


def test_a_played_episode_goes_over_at_the_same_step_and_the_prior_policy_goes_on():
    """The prior policy is busy for a quarter of each of the 6 steps, whatever its critic says."""
    problem = switched(sooper_problem(Beside(jnp.ones(2, jnp.float32), two_states)), backup(0.05, 0.1, prior=-0.5))
    np.testing.assert_allclose(totals(problem, network(1.0), True)[:2], [2 + 6 * 0.25] * 2, rtol=2e-3)


def test_what_is_uncertain_costs_more_and_earns_more_until_then():
    """s = 0.5 everywhere: a step costs 1 + 0.6 / 2 and earns 1 + 2 / 2. From t = 2 on 1.3 (t + 1) >= 3."""
    samples = Beside(jnp.ones(1, jnp.float32), two_states, 0.5)
    problem = switched(sooper_problem(samples, pessimism=0.6, optimism=2.0), backup(0.0, 0.0))
    np.testing.assert_allclose(totals(problem, network(1.0), False), [2 * 2, 2 * 1.3, 2 * 0.5], rtol=2e-3)


def test_what_is_promised_has_no_reward_for_uncertainty():
    """Played: two steps earn 1 each, and the prior policy rests; what it rests through is uncertain, too."""
    samples = Beside(jnp.ones(1, jnp.float32), two_states, 0.5)
    problem = switched(sooper_problem(samples, pessimism=0.6, optimism=2.0), backup(0.0, 0.0))
    np.testing.assert_allclose(totals(problem, network(1.0), True), [2.0, 2 * 1.3 + 6 * 0.3, 8 * 0.5], atol=0.02)


@pytest.mark.parametrize(("played", "earned"), [(False, 8 * 2.0), (True, 8 * 1.0)])
def test_plans_that_do_not_know_of_the_switch_are_only_dearer(played, earned):
    samples = Beside(jnp.ones(1, jnp.float32), two_states, 0.5)
    posed = sooper_problem(samples, pessimism=0.6, optimism=2.0, planned=False)
    found = totals(switched(posed, backup(0.0, 0.1)), network(1.0), played)
    np.testing.assert_allclose(found, [earned, 8 * 1.3, 8 * 0.5], rtol=2e-3)


def test_what_forecasts_play_is_what_the_filter_plays():
    """On the same model, with a prior policy that costs something and a critic that is wrong about it."""
    problem = switched(sooper_problem(Beside(jnp.ones(2, jnp.float32), two_states)), backup(0.0, 0.2, prior=-0.5))
    policy = Filtered(
        NetworkPolicy(network(0.8), units()),
        backup(0.0, 0.2, prior=-0.5),
        two_states(),
        lambda x, a: jnp.float32(0),
        rule(),
    )
    cost, *_ = on_the_truth(policy, 1.0)
    np.testing.assert_allclose(totals(problem, network(0.8), True)[1], cost, rtol=1e-4)


@pytest.mark.parametrize(
    ("pessimism", "rate", "pieces"), [(0.0, 0.3, False), (0.4, 0.3 + 0.4 * 0.5, False), (0.0, 0.3, True)]
)
def test_the_critic_learns_what_the_prior_policy_costs_per_step(pessimism, rate, pieces):
    """The prior policy spends 0.3 of every step busy, at the price 1; s = 0.5. Within 5 % of hand arithmetic."""
    samples = Beside(jnp.ones(1, jnp.float32), two_states, 0.5)
    problem = sooper_problem(samples, pessimism=pessimism)
    first = init_critic(jax.random.key(1), 1, 3, 16)
    prior = Backup(network(-0.4), first.network, units(), jnp.ones(3, jnp.float32), HORIZON)
    states = jnp.linspace(-1, 1, 20, dtype=jnp.float32)[:, None]
    learned = evaluate_prior(first, prior, problem, network(1.0), states, 0.9, 300, pieces, jax.random.key(2))
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
    problem = sooper_problem(chain)
    learned = evaluate_prior(first, prior, problem, network(0.0), states, 0.95, 300, False, jax.random.key(2))
    rates = eqx.tree_at(lambda b: b.critic, prior, learned.network).rates(states)[:, 1]
    left = (HORIZON - np.arange(8)).astype(np.float32)
    np.testing.assert_allclose(left * rates, left * 0.25, rtol=0.05)


def quarter(x, a, y):
    return jnp.full(1, 0.25, x.dtype)


def filtered(reward=0.0, cost=0.1, pessimism=0.0, planned=True):
    return Filtered(
        NetworkPolicy(network(1.0), units()),
        backup(reward, cost),
        two_states(),
        lambda x, a: jnp.float32(0.5),
        rule(pessimism, planned=planned),
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


def test_the_filter_asks_anew_at_every_step_if_plans_do_not_know_of_it():
    """A cost that was charged by mistake and is taken back: for good if planned, forgotten if not."""
    for planned in (True, False):
        policy = filtered(planned=planned)
        dear = policy.observe(policy.init(), 0.0, np.array([10.0]))
        _, state, said = policy.act(jnp.zeros(1), dear, jax.random.key(0))
        assert bool(said[INTERVENED])
        _, _, said = policy.act(jnp.zeros(1), policy.observe(state, 0.0, np.array([-10.0])), jax.random.key(0))
        assert bool(said[INTERVENED]) == planned


def at_rest(key):
    return jnp.zeros(1)


def resting():
    """Data of a behaviour that does nothing."""
    states, n = np.zeros((20, 1)), 20
    return Transitions(states, np.full((n, 1), -0.999), states, np.zeros(n), np.zeros((n, 1)), np.zeros(n, bool))


def on_the_truth(policy, price):
    """What an episode costs at this price, when the prior policy acted, and how busy each step was."""
    x, state, total, instead, busy = jnp.zeros(1), policy.init(), 0.0, [], []
    for t in range(HORIZON):
        a, state, said = policy.act(x, state, jax.random.key(t))
        x = (1 + a.astype(jnp.float64)) / 2
        cost = price * float(x[0])
        state = told(policy, state, float(x[0]), np.array([cost]))
        total, instead, busy = total + cost, [*instead, bool(said.get(INTERVENED, False))], [*busy, float(x[0])]
    return total, instead, busy


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
            nominal,
            Switching(prices, two_states),
            2.0,
            HORIZON,
            constraint="mean",
            switch=rule(budget=2.0, planned=False),
        ),
    }
    found, pushes = {}, {}
    for name, problem in problems.items():
        state, _ = chosen.prepare(problems["sbsrl"], chosen.init(jax.random.key(0)), jax.random.key(1))
        state = chosen._evaluated(problem, state._replace(prior=state.cloned), jax.random.key(3))
        for i in range(16):
            state, _ = chosen._block(chosen._switched(problem, state), state, jax.random.fold_in(jax.random.key(2), i))
        state = state._replace(played=state.network)
        found[name] = on_the_truth(chosen._policy(problem, state), 2.0)
        pushes[name] = on_the_truth(NetworkPolicy(state.network, chosen.domain.units), 1.0)[2]
    assert 1.6 < found["sbsrl"][0] <= 2.1
    assert not any(found["sbsrl"][1])
    assert found["mbpo"][0] > 2.5
    assert not any(found["mbpo"][1])
    cost, instead, _ = found["sooper"]
    charged = 2.0 * np.cumsum([0.0, *pushes["sooper"]])[:HORIZON]
    first = next(t for t, push in enumerate(pushes["sooper"]) if charged[t] + 1.25 * push >= 2.0)
    assert instead.index(True) == first  # the prior policy rests: its critic adds next to nothing
    assert cost <= 2.0 + (2.0 - 1.25) * max(pushes["sooper"])  # a step may cost 2 where 1.25 was foreseen
