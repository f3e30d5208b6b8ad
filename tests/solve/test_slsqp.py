"""Gradients through the samples: safe, as good as a fine lattice, and in agreement with evolution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.solve.protocol import Solver
from sbsrl.solve.slsqp import SLACK, SequentialSearch, _functions


def gradient(world, **options):
    return SequentialSearch(world.policies, world.expectation, **{"starts": 3, "joining": 4, "rounds": 6, **options})


def solve(search, problem, key):
    """Neither search remembers anything."""
    assert isinstance(search, Solver)
    assert search.init(key) == ()
    solution, state = search.solve(problem, (), key)
    assert state == ()
    return solution


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_safe_on_every_sample_and_as_good_as_a_fine_lattice(small, seed):
    """At least the reward of the best of 357 policies, less 0.005 of rewards about 2; and it sees all it must."""
    world = small(seed)
    for bound, threshold in world.demands():
        problem = world.problem(bound, threshold)
        best = world.fine().search(problem).evaluation
        solution = solve(gradient(world), problem, jax.random.key(seed))
        assert solution.evaluation.violation == 0
        assert solution.explores(0.0)
        assert float(solution.evaluation.value) > float(best.value) - 0.005
        theta = np.asarray(solution.policy.theta, float)
        assert max(world.costs(theta)) < bound
        assert world.nominal_returns(theta)[1] >= threshold
        assert np.all((theta >= world.policies.low) & (theta <= world.policies.high))


def test_constraints_bind_where_they_cost_reward(small):
    """Less than 0.02 is left of the budget, and no more than 2 % is seen beyond what is demanded."""
    world = small(0)
    (bound, _), (_, threshold), _ = world.demands()
    safe = solve(gradient(world), world.problem(bound), jax.random.key(0))
    assert SLACK / 2 < bound - max(world.costs(np.asarray(safe.policy.theta))) < 0.02
    assert not safe._replace(demand=threshold).explores(0.05)
    curious = solve(gradient(world), world.problem(bound, threshold), jax.random.key(0))
    assert 1 <= float(curious.evaluation.information) / threshold < 1.02
    assert curious.evaluation.value < safe.evaluation.value


def test_it_agrees_with_evolution(small):
    """Two ways that share nothing but the problem: rewards within 0.01."""
    world = small(3)
    bound, threshold = world.demands()[1]
    problem = world.problem(bound, threshold)
    searches = gradient(world), world.evolution()
    values = [float(solve(search, problem, jax.random.key(1)).evaluation.value) for search in searches]
    assert abs(values[0] - values[1]) < 0.01


def test_without_samples_it_is_greedy(small):
    """To 0.001 of the best corner."""
    world = small(0)
    problem = world.problem(-1.0, samples=None)
    solution = solve(gradient(world), problem, jax.random.key(0))
    assert solution.evaluation.violation == 0
    assert float(solution.evaluation.value) > float(world.fine().search(problem).evaluation.value) - 1e-3


def test_when_exploration_cannot_be_had_it_says_so_and_is_safe(small):
    world = small(0)
    solution = solve(gradient(world), world.problem(world.demands()[0][0], 5.0), jax.random.key(0))
    assert solution.evaluation.violation == 0
    assert not solution.explores(0.05)


def test_when_nothing_is_safe_it_says_so(small):
    world = small(0)
    solution = solve(gradient(world), world.problem(-0.5), jax.random.key(0))
    assert solution.evaluation.violation > 0.5


def test_derivatives_are_those_of_central_differences(small):
    """J_r, J_s and J_c of three samples, in both parameters: to 2e-3 with a width of 0.02."""
    world = small(0)
    search, problem, members = gradient(world), world.problem(1.5), np.resize([0, 5, 12], 24).astype(np.int32)
    theta = np.array([0.4, -0.2])
    _, slopes = _functions(search, problem, jnp.asarray(theta), jnp.asarray(members))

    def by_hand(theta):
        return np.array([*world.nominal_returns(theta), *np.array(world.costs(theta))[[0, 5, 12]]])

    for i in range(2):
        step = 0.01 * np.eye(2)[i]
        np.testing.assert_allclose(slopes[:5, i], (by_hand(theta + step) - by_hand(theta - step)) / 0.02, atol=2e-3)


def test_derivatives_with_two_costs_are_those_of_central_differences(small):
    """J_r, J_s, and both costs of each sample after the other: to 2e-3 with a width of 0.02."""
    world = small(0)
    search, problem, members = gradient(world), world.problem([1.5, 1.5]), np.resize([5, 12], 24).astype(np.int32)
    theta = np.array([0.4, -0.2])
    values, slopes = _functions(search, problem, jnp.asarray(theta), jnp.asarray(members))

    def by_hand(theta):
        both = np.array([world.costs(theta), world.second_costs(theta)])  # [2, M]
        return np.array([*world.nominal_returns(theta), *both[:, 5], *both[:, 12]])

    np.testing.assert_allclose(values[:6], by_hand(theta), atol=2e-5)
    for i in range(2):
        step = 0.01 * np.eye(2)[i]
        np.testing.assert_allclose(slopes[:6, i], (by_hand(theta + step) - by_hand(theta - step)) / 0.02, atol=2e-3)


def test_of_two_costs_both_are_kept_on_every_sample(small):
    """As good as a fine lattice, less 0.005. The second bound excludes what is best under the first."""
    world = small(1)
    bound = world.demands()[0][0]
    alone = solve(gradient(world), world.problem(bound), jax.random.key(0))
    bounds = [bound, 0.8 * max(world.second_costs(np.asarray(alone.policy.theta, float)))]
    problem = world.problem(bounds)
    solution = solve(gradient(world), problem, jax.random.key(0))
    theta = np.asarray(solution.policy.theta, float)
    assert solution.evaluation.violation == 0
    assert max(world.costs(theta)) < bounds[0]
    assert max(world.second_costs(theta)) < bounds[1]
    assert float(solution.evaluation.value) > float(world.fine().search(problem).evaluation.value) - 0.005
    assert solution.evaluation.value < alone.evaluation.value


def test_a_bound_on_the_mean_is_kept_on_the_mean(small):
    """It earns more than one on every sample, and exceeds the bound on some."""
    world = small(0)
    bound = world.demands()[0][0]
    each, mean = (
        solve(gradient(world), world.problem(bound, constraint=how), jax.random.key(0)) for how in ("each", "mean")
    )
    costs = world.costs(np.asarray(mean.policy.theta, float))
    assert mean.evaluation.violation == 0
    assert np.mean(costs) < bound < max(costs)
    assert mean.evaluation.value > each.evaluation.value
