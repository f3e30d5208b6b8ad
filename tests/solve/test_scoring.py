"""Candidates that are policies: scored lazily as if fully. Those that are actions are tested with the planner."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.problem import Evaluation, Penalties
from sbsrl.solve.lazy import evaluate_lazily
from sbsrl.solve.scoring import ClosedLoop, OpenLoop, Scoring

CANDIDATES, ELITES = 24, 5
WEIGHTS = Penalties(cost=1000.0, exploration=10.0)


def unknown():
    nothing = jnp.full(CANDIDATES, -jnp.inf, jnp.float32)
    return Evaluation(nothing, -nothing, jnp.zeros_like(nothing))


@eqx.filter_jit
def evaluate(closed_loop, problem, pool, alive, known, binding, best):
    scores = closed_loop.score(problem, WEIGHTS, jnp.zeros(1, jnp.float32), pool, alive)
    returns = jnp.where(alive, scores.nominal, -jnp.inf)
    order = jnp.argsort(-binding)
    return evaluate_lazily(scores.problem, WEIGHTS, returns, known, scores.gather, scores.hinge, order, best, 4)


def pool_of(seed):
    thetas = np.random.default_rng(seed).uniform([-1, -1], [1.5, 1], (CANDIDATES, 2))
    return jnp.asarray(thetas[:, None], jnp.float32)


def by_hand(world, pool, bound, threshold):
    """Value, violation and information in hundredths of what is demanded, in numpy."""
    found = []
    for theta in np.asarray(pool[:, 0], float):
        reward, seen = world.nominal_returns(theta)
        hinges = np.maximum(np.array(world.costs(theta)) - bound, 0)
        share = 100 * seen / threshold if threshold > 0 else 0.0
        missing = 10 * max(100 - share, 0) if threshold > 0 else 0.0
        found.append((reward - missing - 1000 * hinges.sum(), hinges.max(), share))
    return np.array(found).T


def demands(world, pool):
    """No exploration; some; and a bound that no candidate meets."""
    thetas = np.asarray(pool[:, 0], float)
    worst = [max(world.costs(theta)) for theta in thetas]
    seen = [world.nominal_returns(theta)[1] for theta in thetas]
    return [(np.median(worst), 0.0), (np.median(worst), np.median(seen)), (min(worst) - 0.2, np.median(seen))]


def test_full_evaluation_is_that_by_hand(small):
    """Single precision: values to 0.1 of penalties up to 1e4, violations to 2e-5, shares of the demand to 0.01."""
    world, pool = small(0), pool_of(0)
    for bound, threshold in demands(world, pool):
        found = evaluate(*arguments(world, pool, bound, threshold), CANDIDATES).evaluation()
        value, violation, share = by_hand(world, pool, bound, threshold)
        np.testing.assert_allclose(found.value, value, atol=0.1)
        np.testing.assert_allclose(found.violation, violation, atol=2e-5)
        np.testing.assert_allclose(found.information, share, atol=0.01)


def arguments(world, pool, bound, threshold, alive=None, known=None):
    alive = jnp.ones(CANDIDATES, bool) if alive is None else alive
    known = unknown() if known is None else known
    loop = ClosedLoop(world.policies, world.expectation)
    return loop, world.problem(bound, threshold), pool, alive, known, jnp.arange(13, dtype=jnp.float32)


def chosen(evaluation):
    """The most valuable feasible candidate, or the least violating one."""
    safe = np.asarray(evaluation.violation) <= 0
    if np.any(safe):
        return int(np.argmax(np.where(safe, evaluation.value, -np.inf)))
    return int(np.argmin(evaluation.violation))


@pytest.mark.parametrize("seed", range(6))
def test_lazily_found_elites_are_those_of_full_evaluation(small, seed):
    """In the same order, with values that differ by rounding only; the same one to follow; and less is evaluated."""
    world, pool = small(seed), pool_of(seed)
    for bound, threshold in demands(world, pool):
        given = arguments(world, pool, bound, threshold)
        lazy, full = (evaluate(*given, best) for best in (ELITES, CANDIDATES))
        np.testing.assert_array_equal(full.asked, CANDIDATES)
        assert np.sum(lazy.asked) < np.sum(full.asked)
        ours, theirs = lazy.evaluation(), full.evaluation()
        best = [jax.lax.top_k(each.value, ELITES)[1] for each in (ours, theirs)]
        np.testing.assert_array_equal(*best)
        np.testing.assert_allclose(ours.value[best[0]], theirs.value[best[1]], rtol=1e-5, atol=1e-2)
        assert chosen(ours) == chosen(theirs)
        np.testing.assert_allclose(ours.violation[chosen(ours)], theirs.violation[chosen(ours)], atol=1e-6)


def test_candidates_that_do_not_count_are_left_out_and_known_ones_are_not_evaluated_again(small):
    world, pool = small(0), pool_of(0)
    bound, threshold = demands(world, pool)[1]
    alive = jnp.arange(CANDIDATES) < 20
    known = Evaluation(*(part.at[3].set(v) for part, v in zip(unknown(), (7.0, 0.0, 123.0), strict=True)))
    found = evaluate(*arguments(world, pool, bound, threshold, alive, known), CANDIDATES)
    evaluation = found.evaluation()
    np.testing.assert_array_equal(found.asked, 19)
    assert np.all(np.isneginf(evaluation.value[20:]))
    assert (evaluation.value[3], evaluation.violation[3], evaluation.information[3]) == (7, 0, 123)


def test_of_two_costs_the_sum_is_charged_and_the_largest_decides(small):
    """As for sequences of actions, and in numpy: values to 0.1 of penalties up to 1e4, violations to 2e-5."""
    world, pool = small(0), pool_of(0)
    thetas = np.asarray(pool[:, 0], float)
    costs = np.array([[world.costs(theta), world.second_costs(theta)] for theta in thetas])  # [P, 2, M]
    bounds = np.median(costs.max(axis=2), axis=0)
    hinges = np.maximum(costs - bounds[None, :, None], 0)
    assert np.any((hinges > 0).any(axis=2).all(axis=1))  # some exceed both
    found = evaluate(*arguments(world, pool, bounds, 0.0), CANDIDATES).evaluation()
    rewards = np.array([world.nominal_returns(theta)[0] for theta in thetas])
    np.testing.assert_allclose(found.value, rewards - 1000 * hinges.sum(axis=(1, 2)), atol=0.1)
    np.testing.assert_allclose(found.violation, hinges.max(axis=(1, 2)), atol=2e-5)


def test_both_are_scorings(small):
    assert isinstance(OpenLoop(), Scoring)
    assert isinstance(ClosedLoop(small(0).policies, small(0).expectation), Scoring)
