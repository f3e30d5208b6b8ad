"""Search over policies against brute force in numpy over all policies and samples."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl import UserError, make_task
from sbsrl.policy import Controller, Policy
from sbsrl.solve.policy_search import EvolutionSettings, ExactSearch, ExactSettings, evaluate_policy
from sbsrl.solve.protocol import Solver

PROBLEMS = 12


class Table(NamedTuple):
    """J_r and J_s of all policies, and J_c on all samples."""

    world: object
    rewards: np.ndarray
    information: np.ndarray
    costs: np.ndarray


@pytest.fixture(scope="module")
def tables(small):
    """Of random problems, by hand."""
    found = []
    for seed in range(PROBLEMS):
        world = small(seed)
        lattice = np.asarray(world.policies.lattice())
        rewards, information = np.array([world.nominal_returns(theta) for theta in lattice]).T
        found.append(Table(world, rewards, information, np.array([world.costs(theta) for theta in lattice])))
    return found


def between(values, below):
    """A number with so many of the values below it, in the middle of a gap: rounding cannot decide."""
    ordered = np.sort(values)
    return float((ordered[below - 1] + ordered[below]) / 2)


def brute_force(table, bound, threshold):
    """The best safe policy that sees enough; else the best safe one; else the least violating one."""
    violations = np.maximum(table.costs.max(axis=1) - bound, 0)
    safe, enough = violations <= 0, table.information >= threshold
    if not np.any(safe):
        return int(np.argmin(violations))
    allowed = safe & enough if np.any(safe & enough) else safe
    return int(np.argmax(np.where(allowed, table.rewards, -np.inf)))


def search_of(world, **changes):
    return ExactSearch(world.policies, world.expectation, **changes)


def solve(search, problem, key):
    """No search remembers anything."""
    assert isinstance(search, Solver)
    assert search.init(key) == ()
    solution, state = search.solve(problem, (), key)
    assert state == ()
    return solution


def demands(table):
    """Bounds and thresholds with exploration feasible, hardly, not together with safety, and not at all; no safety."""
    worst = table.costs.max(axis=1)
    safe = worst <= between(worst, 10)
    loose, tight = between(worst, 10), between(worst, 2)
    yield loose, 0.0, True
    yield loose, between(table.information[safe], 6), True
    yield loose, between(table.information[safe], 9), True
    yield tight, float(table.information.max()) + 0.01, False
    yield loose, float(table.information.max()) + 0.01, False
    yield float(worst.min()) - 0.1, between(table.information, 10), None


def check(table, found, bound, threshold):
    expected = brute_force(table, bound, threshold)
    assert int(found.place) == expected
    violation = max(table.costs[expected].max() - bound, 0)
    wanted = (table.rewards[expected], violation, table.information[expected])
    np.testing.assert_allclose([float(part) for part in found.evaluation], wanted, atol=2e-5)


@pytest.mark.parametrize("seed", range(PROBLEMS))
def test_the_exact_solution_is_that_of_brute_force(tables, seed):
    """Twelve random problems of 20 policies and 13 samples, each with six demands."""
    table = tables[seed]
    for bound, threshold, explores in demands(table):
        solution = solve(search_of(table.world), table.world.problem(bound, threshold), jax.random.key(0))
        place = int(np.argmin(np.sum((table.world.policies.lattice() - solution.policy.theta[None]) ** 2, axis=1)))
        found = search_of(table.world).search(table.world.problem(bound, threshold))
        assert place == int(found.place)
        check(table, found, bound, threshold)
        assert 0 < float(found.evaluated) <= 1
        if explores is not None:
            assert solution.explores(0.0) == explores
            assert solution.evaluation.violation == 0


def test_a_policy_that_is_not_safe_says_so(tables):
    table = tables[0]
    bound = float(table.costs.max(axis=1).min()) - 0.25
    found = search_of(table.world).search(table.world.problem(bound))
    np.testing.assert_allclose(found.evaluation.violation, 0.25, atol=2e-5)
    assert found.evaluated == 1


@pytest.mark.parametrize("options", [{"probes": 1}, {"probes": 100}])
def test_probing_does_not_change_the_answer(tables, options):
    """One probe, or all samples as probes."""
    for table in tables[:6]:
        for bound, threshold, _ in demands(table):
            problem = table.world.problem(bound, threshold)
            check(table, search_of(table.world, **options).search(problem), bound, threshold)


def test_probing_saves_work(tables):
    """Many policies are better than the best safe one, and most of them fail on few samples."""
    table = tables[0]
    bound = between(table.costs.max(axis=1), 3)
    lazy = [float(search_of(table.world, probes=n).search(table.world.problem(bound)).evaluated) for n in (1, 100)]
    assert lazy[0] < 0.4
    assert lazy[0] < 0.7 * lazy[1]


def test_violations_are_those_of_all_policies(tables):
    """To 2e-5; Pi_safe are the zeros."""
    table = tables[1]
    bound = between(table.costs.max(axis=1), 10)
    got = eqx.filter_jit(lambda s, p: s.violations(p))(search_of(table.world), table.world.problem(bound))
    np.testing.assert_allclose(got, np.maximum(table.costs.max(axis=1) - bound, 0), atol=2e-5)
    assert np.sum(np.asarray(got) == 0) == 10


def test_without_samples_the_best_policy_that_sees_enough_is_taken(tables):
    for table in tables[:4]:
        for below in (0, 10, 20):
            threshold = 0.0 if below == 0 else between(np.append(table.information, 9.0), below)
            found = search_of(table.world).search(table.world.problem(-1.0, threshold, samples=None))
            expected = brute_force(table._replace(costs=np.full((20, 1), -2.0)), -1.0, threshold)
            assert int(found.place) == expected
            assert found.evaluation.violation == 0
            assert found.evaluated == 0


class Odd(eqx.Module):
    """A reward so large that little can be added to it in single precision, and none where the push is large."""

    most: jax.Array
    limit: jax.Array

    def __call__(self, x, a, y):
        value = self.most.astype(y.dtype) * (1 + 1e-3 * jnp.tanh(y[0]))
        return jnp.where(a[0] > self.limit.astype(a.dtype), jnp.nan, value)


@pytest.mark.parametrize("most", [1e9, 0.0])
def test_no_reward_hides_who_sees_enough(tables, most):
    """1e9, where adding 1 changes nothing, or none at all: those that see enough still come first."""
    table = tables[2]
    threshold = between(table.information, 10)
    problem = table.world.problem(9.0, threshold, objective=Odd(jnp.asarray(most), jnp.asarray(2.0)))
    assert search_of(table.world).search(problem).evaluation.information >= threshold


def test_a_policy_whose_reward_is_not_a_number_is_not_chosen(tables):
    """Policies that push hardest earn most, where it is a number."""
    table = tables[0]
    problem = table.world.problem(9.0, objective=Odd(jnp.asarray(1.0), jnp.asarray(0.6)))
    found = search_of(table.world).search(problem)
    assert np.isfinite(found.evaluation.value)
    push, spring = np.asarray(table.world.policies.lattice())[int(found.place)]
    assert np.tanh(push + np.abs(spring) * 3.5) < 0.6


def test_the_policy_acts_as_its_parameters_say(tables):
    """In the precision of the state, whatever that of the parameters; it has no state and says nothing."""
    world = tables[0].world
    solution = solve(search_of(world), world.problem(1.5), jax.random.key(0))
    single = dataclasses.replace(solution.policy, theta=solution.policy.theta.astype(jnp.float32))
    for policy, digits in ((solution.policy, 1e-9), (single, 1e-6)):
        assert isinstance(policy, Policy)
        action, state, metrics = policy.act(jnp.asarray([0.4]), policy.init(), jax.random.key(0))
        expected = np.tanh(solution.policy.theta[0] + 0.4 * solution.policy.theta[1])
        np.testing.assert_allclose(action, [expected], rtol=digits)
        assert action.dtype == jnp.float64
        assert (state, metrics) == ((), {})


def test_the_policy_is_small(tables):
    """It has its parameters and nothing of the problem; as a controller it is called with an observation."""
    world = tables[0].world
    policy = solve(search_of(world), world.problem(1.5), jax.random.key(0)).policy
    assert [leaf.shape for leaf in jax.tree.leaves(policy)] == [(2,)]
    action = Controller(policy)(np.array([0.4]))
    np.testing.assert_allclose(action, np.tanh(policy.theta[:1] + 0.4 * policy.theta[1:]), rtol=1e-9)


def test_the_share_that_was_evaluated_is_a_metric(tables):
    table = tables[0]
    problem = table.world.problem(between(table.costs.max(axis=1), 3))
    for search in (search_of(table.world), table.world.evolution()):
        assert 0 < float(solve(search, problem, jax.random.key(0)).metrics["evaluated"]) <= 1


def test_an_evaluation_is_on_every_sample(tables):
    """To 2e-5; without samples nothing is violated."""
    table = tables[3]
    theta = table.world.policies.lattice()[7]
    bound = between(table.costs[7], 6)
    found = evaluate_policy(table.world.problem(bound), table.world.expectation, table.world.policies, theta)
    wanted = (table.rewards[7], table.costs[7].max() - bound, table.information[7])
    np.testing.assert_allclose([float(part) for part in found], wanted, atol=2e-5)
    free = table.world.problem(bound, samples=None)
    assert evaluate_policy(free, table.world.expectation, table.world.policies, theta).violation == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_evolution_is_safe_on_every_sample_and_as_good_as_a_fine_lattice(small, seed, getkey):
    """At least the reward of the best of 357 policies, less 0.005 of rewards about 2; what it must see, to 0.1 %."""
    world = small(seed)
    for bound, threshold in world.demands():
        problem = world.problem(bound, threshold)
        best = world.fine().search(problem).evaluation
        solution = solve(world.evolution(), problem, getkey())
        assert solution.evaluation.violation == 0
        assert solution.explores(1e-3)
        assert float(solution.evaluation.value) > float(best.value) - 0.005
        theta = np.asarray(solution.policy.theta, float)
        assert max(world.costs(theta)) < bound + 2e-5
        np.testing.assert_allclose(
            [solution.evaluation.value, solution.evaluation.information], world.nominal_returns(theta), atol=2e-5
        )


def test_when_nothing_is_safe_evolution_returns_the_least_violating_and_says_so(small, getkey):
    """Within 0.02 of the lattice's."""
    world = small(0)
    problem = world.problem(-0.5)
    solution = solve(world.evolution(), problem, getkey())
    assert solution.evaluation.violation > 0.5
    assert float(solution.evaluation.violation) < float(world.fine().search(problem).evaluation.violation) + 0.02


@pytest.mark.parametrize("seed", range(4))
def test_with_two_costs_the_exact_solution_is_that_of_brute_force(tables, seed):
    """Each bound alone allows 15 of the 20 policies; both together fewer, and the best of them is found."""
    table = tables[seed]
    second = np.array([table.world.second_costs(theta) for theta in np.asarray(table.world.policies.lattice())])
    bounds = [between(costs.max(axis=1), 15) for costs in (table.costs, second)]
    violations = np.maximum(np.maximum(table.costs.max(axis=1) - bounds[0], second.max(axis=1) - bounds[1]), 0)
    assert 0 < np.sum(violations == 0) < 15
    problem = table.world.problem(bounds)
    found = search_of(table.world).search(problem)
    assert int(found.place) == int(np.argmax(np.where(violations == 0, table.rewards, -np.inf)))
    assert found.evaluation.violation == 0
    got = eqx.filter_jit(lambda s, p: s.violations(p))(search_of(table.world), problem)
    np.testing.assert_allclose(got, violations, atol=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_with_a_bound_on_the_mean_the_exact_solution_is_that_of_brute_force(tables, seed):
    """Half of the policies meet it on the mean of the samples; of those some do not on every one."""
    table = tables[seed]
    means = table.costs.mean(axis=1)
    bound = between(means, 10)
    assert np.any((means <= bound) & (table.costs.max(axis=1) > bound))
    found = search_of(table.world).search(table.world.problem(bound, constraint="mean"))
    assert int(found.place) == int(np.argmax(np.where(means <= bound, table.rewards, -np.inf)))
    assert found.evaluation.violation == 0


def test_evolution_with_two_costs_keeps_both(small, getkey):
    """As good as a fine lattice, less 0.005."""
    world = small(0)
    lattice = np.asarray(world.policies.lattice())
    worst = [np.array([max(cost(theta)) for theta in lattice]) for cost in (world.costs, world.second_costs)]
    bounds = [between(each, 15) for each in worst]
    problem = world.problem(bounds)
    solution = solve(world.evolution(), problem, getkey())
    theta = np.asarray(solution.policy.theta, float)
    assert solution.evaluation.violation == 0
    assert max(world.costs(theta)) < bounds[0] + 2e-5
    assert max(world.second_costs(theta)) < bounds[1] + 2e-5
    assert float(solution.evaluation.value) > float(world.fine().search(problem).evaluation.value) - 0.005


def test_settings_make_searches_of_the_task_s_policies_and_refuse_tasks_without():
    ledge = make_task("ledge")
    assert ExactSettings().create(ledge).policies is ledge.policies
    planner = EvolutionSettings(candidates=40, elites=5, iterations=2).create(ledge).planner
    assert (planner.candidates, planner.elites, planner.iterations) == (40, 5, 2)
    for settings in (ExactSettings(), EvolutionSettings()):
        with pytest.raises(UserError, match=r"^pendulum has no class of policies to search; use solver=icem"):
            settings.create(make_task("pendulum"))
