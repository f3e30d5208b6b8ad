"""The solver finds known optima, lets nothing be played that was not checked, and remembers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_problems import Parametric, known, make_problem, solver, two_states

from sbsrl.leaves import check_form
from sbsrl.solve.network.gate import CLONED, KEPT, PASSED, RESTING, TRAINED, TRIED
from sbsrl.solve.network.network_policy import NetworkPolicy
from sbsrl.solve.network.proven import is_newest
from sbsrl.solve.protocol import Attentive, Concluding, Preparing, Solver
from sbsrl.transitions import Episode, Transitions

HORIZON = 8


def somewhere(key):
    return jax.random.uniform(key, (1,), jnp.float64, -1.0, 1.0)


def solved(problem, chosen, blocks, seed=0):
    """The solution after so many solves."""
    state = chosen.init(jax.random.key(seed))
    for i in range(blocks):
        solution, state = chosen.solve(problem, state, jax.random.fold_in(jax.random.key(seed), i))
    return solution, state


def test_it_keeps_the_protocols():
    chosen = solver(somewhere, HORIZON)
    for protocol in (Solver, Preparing, Attentive, Concluding):
        assert isinstance(chosen, protocol)


def test_a_linear_quadratic_problem_is_solved():
    """x' = x + a, r = -(y^2 + a^2 / 2): the gains of Riccati's recursion earn E[-p x_0^2]. Within 3 %."""
    model = known(lambda x, a: x + a, lambda x, a, y: -(y[0] ** 2) - 0.5 * a[0] ** 2, lambda x, a, y: 0 * x)
    p = 0.0
    for _ in range(HORIZON):
        p = (1 + p) - (1 + p) ** 2 / (0.5 + 1 + p)
    problem = make_problem(model, None, 1.0, HORIZON)
    solution, _ = solved(problem, solver(somewhere, HORIZON, nominal=16), 8)
    xs = np.linspace(-1, 1, 41)
    earned = np.mean([played(model, solution.policy, x) for x in xs])
    np.testing.assert_allclose(earned, -p * np.mean(xs**2), rtol=0.03)


def played(model, policy, x):
    x, total = jnp.array([x]), 0.0
    for _ in range(HORIZON):
        a, _, _ = policy.act(x, (), jax.random.key(0))
        a = a.astype(x.dtype)
        y = model(x, a)
        total, x = total + float(model.reward(x, a, y)), y
    return total


def at_rest(key):
    return jnp.zeros(1)


@pytest.mark.parametrize("kind", ["augmented", "fixed"])
def test_a_constrained_optimum_is_found(kind):
    """Busy time earns 1 and costs 1 per step: under a budget of 2 no policy earns more than 2. Within 4 %."""
    problem = make_problem(two_states(), Parametric(jnp.ones(2, jnp.float32), lambda s: two_states()), 2.0, HORIZON)
    chosen = solver(at_rest, HORIZON, budget=2.0, return_scale=HORIZON, penalty=kind, multiplier_rate=0.05, checks=1)
    found = []
    state = chosen.init(jax.random.key(0))
    for i in range(14):
        state, seen = chosen._block(problem, state, jax.random.fold_in(jax.random.key(1), i))
        found.append(float(seen.reward))
    np.testing.assert_allclose(np.mean(found[-4:]), 2.0, rtol=0.04)
    assert (float(state.multipliers[0]) > 0.01) == (kind == "augmented")


def test_the_worst_sample_decides_or_the_mean_does():
    """Prices 0.5 and 2, budget 2: busy time is at most 1 if each must keep it, 1.6 if their mean must. Within 6 %."""
    prices = jnp.array([0.5, 2.0], jnp.float32)
    earned = {}
    for how in ("each", "mean"):
        problem = make_problem(two_states(), Parametric(prices, two_states), 2.0, HORIZON, constraint=how)
        chosen = solver(at_rest, HORIZON, budget=2.0, return_scale=HORIZON, multiplier_rate=0.05, checks=1)
        state = chosen.init(jax.random.key(0))
        rewards = []
        for i in range(16):
            state, seen = chosen._block(problem, state, jax.random.fold_in(jax.random.key(1), i))
            rewards.append(float(seen.reward))
        earned[how] = np.mean(rewards[-4:])
    np.testing.assert_allclose(earned["each"], 1.0, rtol=0.06)
    np.testing.assert_allclose(earned["mean"], 1.6, rtol=0.06)


def test_information_is_gathered_if_it_is_demanded():
    """Only pushing to the left teaches, and only pushing to the right earns."""
    model = known(lambda x, a: x, lambda x, a, y: a[0], lambda x, a, y: 0 * x)
    taught = lambda x, a: jnp.maximum(-a[0], 0)  # noqa: E731
    problem = make_problem(model, None, 1.0, HORIZON, threshold=4.0, uncertainty=taught)
    chosen = solver(at_rest, HORIZON, return_scale=HORIZON, multiplier_rate=0.05)
    solution, state = solved(problem, chosen, 12)
    np.testing.assert_allclose(solution.evaluation.information, 4.0, rtol=0.1)
    assert float(state.curiosity) > 0.1
    greedy, _ = solved(problem.demanding(jnp.float32(0.0), HORIZON), chosen, 12)
    assert float(greedy.evaluation.information) == 0
    assert float(greedy.evaluation.value) > 0.8 * HORIZON


def test_a_trust_region_bounds_the_information():
    model = known(lambda x, a: x, lambda x, a, y: a[0], lambda x, a, y: 0 * x)
    problem = make_problem(model, None, 1.0, HORIZON, uncertainty=lambda x, a: jnp.abs(a[0]))
    near, _ = solved(problem, solver(at_rest, HORIZON, return_scale=HORIZON, trust=3.0, trust_weight=10.0), 8)
    np.testing.assert_allclose(near.evaluation.information, 3.0, rtol=0.1)


HOPELESS = make_problem(two_states(), Parametric(jnp.full(2, 100.0, jnp.float32), two_states), 0.01, HORIZON)


def cheap_episode(total):
    states = np.zeros((HORIZON + 1, 1))
    return Episode(states, np.zeros((HORIZON, 1)), np.zeros(HORIZON), np.full((HORIZON, 1), total / HORIZON))


def test_what_fails_every_check_is_not_played():
    """Instead the newest policy that passed and was cheap, at first the clone; it is forgotten once it was dear."""
    chosen = solver(at_rest, HORIZON, budget=2.0, updates=2, checks=3)
    state = chosen.init(jax.random.key(0))
    solution, state = chosen.solve(HOPELESS, state, jax.random.key(1))
    assert solution.metrics["checks"] == 3
    assert int(state.origin) == CLONED
    assert float(solution.evaluation.violation) > 0
    assert same(solution.policy.network, state.cloned)
    easy = make_problem(two_states(), Parametric(jnp.ones(2, jnp.float32), lambda s: two_states(0.0)), 2.0, HORIZON)
    solution, state = chosen.solve(easy, state, jax.random.key(2))
    assert int(state.origin) in (TRAINED, KEPT)
    assert solution.metrics["checks"] == 1
    passed = solution.policy.network
    state = chosen.observed(state, cheap_episode(0.5))
    solution, state = chosen.solve(HOPELESS, state, jax.random.key(3))
    assert int(state.origin) == PASSED
    assert same(solution.policy.network, passed)
    state = chosen.observed(state, cheap_episode(1.9))
    assert not state.proven.any


def test_a_policy_that_was_dear_is_not_one_to_come_back_to():
    chosen = solver(at_rest, HORIZON, budget=2.0, updates=2)
    state = chosen.init(jax.random.key(0))
    easy = make_problem(two_states(), Parametric(jnp.ones(2, jnp.float32), lambda s: two_states(0.0)), 2.0, HORIZON)
    _, state = chosen.solve(easy, state, jax.random.key(2))
    assert not chosen.observed(state, cheap_episode(1.2)).proven.any


def test_only_what_passed_and_was_played_to_the_end_is_one_to_come_back_to():
    """A policy that every check refuted may be cheap by chance; an episode that was cut short costs nothing."""
    chosen = solver(at_rest, HORIZON, budget=2.0, updates=20, checks=1, reliable=False)
    state = chosen.init(jax.random.key(0))
    _, refuted = chosen.solve(HOPELESS, state, jax.random.key(1))
    assert int(refuted.origin) == TRAINED
    assert not chosen.observed(refuted, cheap_episode(0.5)).proven.any
    easy = make_problem(two_states(), Parametric(jnp.ones(2, jnp.float32), lambda s: two_states(0.0)), 2.0, HORIZON)
    _, cleared = chosen.solve(easy, state, jax.random.key(2))
    faulty = cheap_episode(0.0)._replace(ended="fault", reason="the cable is loose")
    assert not chosen.observed(cleared, faulty).proven.any
    assert is_newest(chosen.observed(cleared, cheap_episode(0.5)).proven, cleared.played)


def test_a_dear_episode_leads_back_to_the_policy_before():
    """Two policies that were cheap: the second is forgotten after an episode that makes its mean dear, not the first.

    The same policy played twice is one policy, not two.
    """
    chosen = solver(at_rest, HORIZON, budget=2.0, updates=2, checks=1)
    easy = make_problem(two_states(), Parametric(jnp.ones(2, jnp.float32), lambda s: two_states(0.0)), 2.0, HORIZON)
    state, played = chosen.init(jax.random.key(0)), []
    for i in range(2):
        solution, state = chosen.solve(easy, state, jax.random.key(i))
        state = chosen.observed(chosen.observed(state, cheap_episode(0.2)), cheap_episode(0.2))
        played.append(solution.policy.network)
    assert not same(*played)
    solution, state = chosen.solve(HOPELESS, state, jax.random.key(3))
    assert same(solution.policy.network, played[1])
    state = chosen.observed(state, cheap_episode(9.0))
    solution, state = chosen.solve(HOPELESS, state, jax.random.key(4))
    assert (int(state.origin), same(solution.policy.network, played[0])) == (PASSED, True)
    state = chosen.observed(state, cheap_episode(9.0))
    solution, state = chosen.solve(HOPELESS, state, jax.random.key(5))
    assert (int(state.origin), same(solution.policy.network, state.cloned)) == (CLONED, True)


def concluded(chosen, state, optimism):
    """What is returned by a solver whose promises were too high by so much."""
    easy = make_problem(two_states(), Parametric(jnp.ones(2, jnp.float32), lambda s: two_states(0.0)), 2.0, HORIZON)
    state = state._replace(optimism=jnp.full_like(state.optimism, optimism))
    solution, after = chosen.conclude(easy, state, jax.random.key(7))
    assert solution.metrics["checks"] >= 1
    return solution, after


def test_what_was_tried_is_returned_if_it_earned_more_than_the_newest_will():
    """The newest is promised at most 8; a policy that really earned 6 is returned if promises are 3 too high."""
    chosen = solver(at_rest, HORIZON, budget=2.0, return_scale=HORIZON, checks=1)
    easy = make_problem(two_states(), Parametric(jnp.ones(2, jnp.float32), lambda s: two_states(0.0)), 2.0, HORIZON)
    _, state = chosen.solve(easy, chosen.init(jax.random.key(0)), jax.random.key(1))
    first = state.played
    state = chosen.observed(state, cheap_episode(0.5)._replace(rewards=np.full(HORIZON, 6.0 / HORIZON)))
    for i in range(12):
        _, state = chosen.solve(easy, state, jax.random.key(i))
    assert 7 < float(state.promised) <= 8
    kept, after = concluded(chosen, state, 3.0)
    assert (int(after.origin), same(kept.policy.network, first)) == (TRIED, True)
    newest_one, after = concluded(chosen, state, 0.1)
    assert int(after.origin) in (TRAINED, KEPT)
    assert not same(newest_one.policy.network, first)
    plain = solver(at_rest, HORIZON, budget=2.0, return_scale=HORIZON, checks=1, returned="newest")
    assert int(concluded(plain, state, 3.0)[1].origin) in (TRAINED, KEPT)


def test_promises_are_compared_with_what_was_earned():
    chosen = solver(at_rest, HORIZON, budget=2.0, return_scale=HORIZON, checks=1)
    easy = make_problem(two_states(), Parametric(jnp.ones(2, jnp.float32), lambda s: two_states(0.0)), 2.0, HORIZON)
    _, state = chosen.solve(easy, chosen.init(jax.random.key(0)), jax.random.key(1))
    promised = float(state.promised)
    after = chosen.observed(state, cheap_episode(0.5)._replace(rewards=np.full(HORIZON, 1.0 / HORIZON)))
    np.testing.assert_allclose(after.optimism, [promised - 1.0, *np.zeros(len(after.optimism) - 1)], rtol=1e-5)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def test_the_offline_phase_clones_the_behaviour_and_improves_it():
    """The data push to a = 0.5 (1 - x); 300 updates: 0.05. Then the reward of pushing right is followed."""
    x = np.linspace(-1, 1, 200)[:, None]
    data = Transitions(x, 0.5 * (1 - x), x, np.zeros(200), np.zeros((200, 1)), np.zeros(200, bool))
    model = known(lambda x, a: x, lambda x, a, y: a[0], lambda x, a, y: 0 * x)
    problem = make_problem(model, Parametric(jnp.ones(2, jnp.float32), lambda s: model), 1.0, HORIZON)
    chosen = solver(somewhere, HORIZON, return_scale=HORIZON, data=data, cloning_updates=600, offline_blocks=3)
    before = chosen.init(jax.random.key(0))
    state, metrics = chosen.prepare(problem, before, jax.random.key(1))
    check_form("the state", before, state)
    act = lambda network, x: float(policy_of(chosen, network).act(jnp.array([x]), (), jax.random.key(0))[0][0])  # noqa: E731
    for place in (-0.8, 0.0, 0.8):
        assert act(state.cloned, place) == pytest.approx(0.5 * (1 - place), abs=0.05)
    assert act(state.network, 0.0) > act(state.cloned, 0.0) + 0.2
    assert metrics["offline_score"] > metrics["clone_score"]
    assert metrics["offline_updates"] == 150


def policy_of(chosen, network):
    return NetworkPolicy(network, chosen.domain.units)


def test_offline_training_ends_when_fresh_samples_say_it_got_worse():
    """On the nominal model pushing right earns; on every sample it costs ten times that."""
    x = np.linspace(-1, 1, 50)[:, None]
    data = Transitions(x, 0 * x, x, np.zeros(50), np.zeros((50, 1)), np.zeros(50, bool))
    earn = lambda s: known(lambda x, a: x, lambda x, a, y: s * a[0], lambda x, a, y: 0 * x)  # noqa: E731
    problem = make_problem(earn(1.0), Parametric(jnp.full(2, -10.0, jnp.float32), earn), 1.0, HORIZON)
    chosen = solver(somewhere, HORIZON, data=data, offline_blocks=9, offline_patience=2)
    state, metrics = chosen.prepare(problem, chosen.init(jax.random.key(0)), jax.random.key(1))
    assert metrics["offline_updates"] == 0
    assert same(state.network, state.cloned)


def test_a_clone_of_data_beyond_the_budget_is_played_only_if_it_violates_less():
    """Busy time is dear on all samples, and idle time not free; the clone is busy, what was trained is not."""
    dear_model = lambda s: known(lambda x, a: (1 + a) / 2, lambda x, a, y: y[0], lambda x, a, y: s * (y + 0.2))  # noqa: E731
    dear = make_problem(two_states(), Parametric(jnp.full(2, 10.0, jnp.float32), dear_model), 0.01, HORIZON)
    for reliable, origin in ((True, CLONED), (False, TRAINED)):
        chosen = solver(at_rest, HORIZON, budget=0.01, reliable=reliable, safety_weight=100.0, updates=100, checks=1)
        solution, state = chosen.solve(dear, chosen.init(jax.random.key(0)), jax.random.key(1))
        assert int(state.origin) == origin
        assert float(solution.evaluation.violation) > 0


def test_a_budget_of_nothing_is_kept_too():
    """Idle costs nothing, busy does: with a bound of 0 a policy that is busy is not feasible."""
    problem = make_problem(two_states(), Parametric(jnp.ones(2, jnp.float32), lambda s: two_states()), 0.0, HORIZON)
    chosen = solver(at_rest, HORIZON, budget=0.0, updates=1, policy_rate=1e-9, checks=1)
    solution, state = chosen.solve(problem, chosen.init(jax.random.key(0)), jax.random.key(1))
    assert int(state.origin) == CLONED
    np.testing.assert_allclose(solution.evaluation.violation, solution.metrics["worst_sample"], rtol=1e-5)
    assert solution.metrics["worst_sample"] > 1


def test_training_that_loses_what_the_policy_could_do_is_undone():
    """The nominal model pays for pushing right, the samples take ten times that away."""
    earn = lambda s: known(lambda x, a: x, lambda x, a, y: s * a[0], lambda x, a, y: 0 * x)  # noqa: E731
    problem = make_problem(earn(1.0), Parametric(jnp.full(2, -10.0, jnp.float32), earn), 1.0, HORIZON)
    chosen = solver(at_rest, HORIZON, return_scale=HORIZON, checks=2)
    before = chosen.init(jax.random.key(0))
    solution, state = chosen.solve(problem, before, jax.random.key(1))
    assert (solution.metrics["undone"], solution.metrics["origin"]) == (2, KEPT)
    assert same(state.network, before.network)
    assert same(solution.policy.network, before.network)


def test_the_policy_as_it_was_is_played_if_it_passes_and_what_was_trained_does_not():
    """Idle keeps the budget; the nominal model, which costs nothing, pays for being busy."""
    idle = solver(at_rest, HORIZON, budget=2.0, return_scale=HORIZON, safety_weight=0.0, policy_rate=3e-2, checks=1)
    state = idle.init(jax.random.key(0))
    resting = state.network[-1]._replace(bias=jnp.full(1, -3.0, jnp.float32))
    state = state._replace(network=(*state.network[:-1], resting))
    problem = make_problem(two_states(0.0), Parametric(jnp.ones(2, jnp.float32), lambda s: two_states()), 2.0, HORIZON)
    solution, after = idle.solve(problem, state, jax.random.key(1))
    assert solution.metrics["origin"] == KEPT
    assert float(solution.evaluation.violation) == 0
    assert same(solution.policy.network, state.network)
    assert not same(after.network, state.network)  # training goes on from where it came to


def test_a_robust_return_is_the_mean_over_all_models():
    """Pushing right earns 1 on the nominal model and -1 on both samples, of which there are as many episodes."""
    earn = lambda s: known(lambda x, a: x, lambda x, a, y: s * a[0], lambda x, a, y: 0 * x)  # noqa: E731
    problem = make_problem(earn(1.0), Parametric(jnp.full(2, -1.0, jnp.float32), earn), 1.0, HORIZON)
    pushed = {}
    for robust in (False, True):
        chosen = solver(at_rest, HORIZON, robust=robust, each=2, nominal=2)
        state, _ = chosen._block(problem, chosen.init(jax.random.key(0)), jax.random.key(1))
        pushed[robust] = float(policy_of(chosen, state.network).act(jnp.zeros(1), (), jax.random.key(0))[0][0])
    assert pushed[False] > 0.5 > -0.5 > pushed[True]


def test_with_nothing_to_rely_on_the_safe_action_is_taken_if_it_passes():
    """Busy time is dear on all samples; never to be busy, a = -1, is free. Training has no time to find that."""
    problem = make_problem(two_states(), Parametric(jnp.full(2, 100.0, jnp.float32), two_states), 2.0, HORIZON)
    for reliable, origin in ((True, CLONED), (False, RESTING)):
        chosen = solver(at_rest, HORIZON, budget=2.0, reliable=reliable, safe_action=(-1.0,), updates=1, checks=1)
        solution, state = chosen.solve(problem, chosen.init(jax.random.key(0)), jax.random.key(1))
        assert int(state.origin) == origin
    action, _, _ = solution.policy.act(jnp.array([0.3]), (), jax.random.key(0))
    np.testing.assert_allclose(action, [-1.0], atol=2e-3)
    assert float(solution.evaluation.violation) == 0


class Renewing(Parametric):
    """Prices that are drawn anew at every check: here 2 in place of 0.5."""

    def renewed(self, key):
        return Renewing(jnp.full(len(self), 2.0, jnp.float32), self.make)


def test_training_goes_on_with_the_samples_that_refuted_the_policy():
    """On the first samples four busy steps cost 2, the budget; on the fresh ones they cost 8. Never to see those in
    training would be never to pass."""
    problem = make_problem(two_states(), Renewing(jnp.full(2, 0.5, jnp.float32), two_states), 2.0, HORIZON)
    chosen = solver(
        at_rest, HORIZON, budget=2.0, return_scale=HORIZON, multiplier_rate=0.1, margin=0.1, checks=20, refuted=True
    )
    solution, state = chosen.solve(problem, chosen.init(jax.random.key(0)), jax.random.key(1))
    assert int(state.origin) == TRAINED
    assert solution.metrics["checks"] > 1
    assert solution.metrics["worst_sample"] <= 2.0


def test_of_the_policies_that_pass_the_one_that_earns_more_is_played():
    """The nominal model pays for pushing left, the samples for pushing right: training makes it a little worse."""
    earn = lambda s: known(lambda x, a: x, lambda x, a, y: s * a[0], lambda x, a, y: 0 * x)  # noqa: E731
    problem = make_problem(earn(-1.0), Parametric(jnp.ones(2, jnp.float32), earn), 1.0, HORIZON)
    chosen = solver(at_rest, HORIZON, return_scale=10 * HORIZON, updates=5, checks=1)
    before = chosen.init(jax.random.key(0))
    solution, state = chosen.solve(problem, before, jax.random.key(1))
    assert (solution.metrics["origin"], solution.metrics["undone"]) == (KEPT, 0)
    assert not same(state.network, before.network)
    better = make_problem(earn(1.0), Parametric(jnp.ones(2, jnp.float32), earn), 1.0, HORIZON)
    assert chosen.solve(better, before, jax.random.key(1))[0].metrics["origin"] == TRAINED


def test_an_episode_that_another_policy_ended_proves_nothing():
    """Under a monitor the solver is told of its own steps, as of an episode that was interrupted."""
    chosen = solver(at_rest, HORIZON, budget=2.0, return_scale=HORIZON)
    state = chosen.init(jax.random.key(0))._replace(cleared=jnp.asarray(True), promised=jnp.float32(5.0))
    states, steps = np.zeros((4, 1)), np.zeros((3, 1))
    cut = Episode(states, steps, steps[:, 0], steps, "interrupted", "another policy took over")
    after = chosen.observed(state, cut)
    assert not after.proven.any
    np.testing.assert_array_equal(after.optimism, state.optimism)
    assert chosen.observed(state, cut._replace(ended="horizon")).proven.any


@pytest.mark.parametrize(
    ("reliable", "safe_action", "last"), [(True, (-1.0,), "clone"), (False, (-0.5,), -0.5), (False, None, None)]
)
def test_the_ways_out_are_the_prior_policy_and_what_knows_nothing_new(reliable, safe_action, last):
    """The clone of data within the budget; else the action that the task calls safe, if it has one."""
    chosen = solver(somewhere, HORIZON, reliable=reliable, safe_action=safe_action)
    state = chosen.init(jax.random.key(0))
    state = state._replace(cloned=jax.tree.map(lambda leaf: leaf + 0.3, state.prior))
    x = jnp.array([0.4])
    prior, *others = [float(way.act(x, (), jax.random.key(1))[0][0]) for way in chosen.ways_out(state)]
    learned = {name: float(each.act(x, (), jax.random.key(1))[0][0]) for name, each in chosen.learned(state).items()}
    assert prior == learned["prior"] != learned["clone"]
    expected = [] if last is None else [learned["clone"] if last == "clone" else last]
    np.testing.assert_allclose(others, expected, atol=1e-6)
