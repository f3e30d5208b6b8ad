"""Lazy evaluation must find what full evaluation finds, to the last bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.problem import Evaluation
from sbsrl.solve.lazy import evaluate_lazily

INF = np.inf


def unknown(size):
    return Evaluation(jnp.full(size, -INF), jnp.full(size, INF), jnp.zeros(size))


def search(bounds, values, violations, best, chunk, known=None):
    table = Evaluation(jnp.asarray(values), jnp.asarray(violations), jnp.zeros(len(values)))
    known = unknown(len(bounds)) if known is None else known

    @jax.jit
    def run(bounds):
        return evaluate_lazily(bounds, known, lambda rows: Evaluation(*(part[rows] for part in table)), best, chunk)

    found, evaluated = run(jnp.asarray(bounds))
    return found, int(evaluated)


@pytest.mark.parametrize("seed", range(40))
def test_the_best_are_those_of_full_evaluation(seed):
    """Random returns and penalties, from easy to hopeless; any chunk size, also one that does not divide."""
    rng = np.random.default_rng(seed)
    size, best, chunk = int(rng.integers(20, 120)), int(rng.integers(1, 15)), int(rng.integers(1, 50))
    returns = rng.normal(size=size)
    violations = np.maximum(rng.normal(size=size) + rng.uniform(-3, 3), 0)
    values = returns - 10 * violations
    found, evaluated = search(returns, values, violations, best, chunk)
    lazy, full = jax.lax.top_k(found.value, best), jax.lax.top_k(jnp.asarray(values), best)
    np.testing.assert_array_equal(lazy[0], full[0])
    np.testing.assert_array_equal(lazy[1], full[1])
    assert evaluated <= size
    if np.any(violations == 0):
        assert bool(jnp.any((found.violation == 0) & jnp.isfinite(found.value)))


def test_nothing_beyond_the_first_chunk_is_evaluated_when_the_bounds_are_tight():
    returns = np.arange(100.0)
    found, evaluated = search(returns, returns, np.zeros(100), best=5, chunk=10)
    assert evaluated == 10
    assert int(jnp.sum(jnp.isfinite(found.value))) == 10


def test_it_searches_to_the_end_for_a_feasible_candidate():
    """The only feasible candidate has the worst return, and its value is below that of violating ones."""
    returns = np.arange(50.0)
    violations = np.where(returns == 0, 0.0, 0.01)
    found, evaluated = search(returns, returns - 10 * violations, violations, best=3, chunk=8)
    assert evaluated == 50
    assert found.violation[0] == 0


def test_it_searches_on_while_a_better_feasible_candidate_may_come():
    """The elites are settled by violators, but the best feasible candidate, which is the one to follow, is not."""
    returns, values = np.array([10, 9.9, 9.8, 5]), np.array([9, 8.9, -100, 4.9])
    violations = np.array([0.001, 0.001, 0, 0])
    found, _ = search(returns, values, violations, best=2, chunk=3)
    assert jnp.max(jnp.where(found.violation == 0, found.value, -INF)) == 4.9


def test_known_values_count_and_are_not_evaluated_again():
    """Two candidates are known to be better than any bound of the others: nothing is left to do."""
    known = Evaluation(
        jnp.array([5.0, 6.0, -INF, -INF]), jnp.array([0.0, 0.0, INF, INF]), jnp.array([0.0, 0.0, 0.0, 0.0])
    )
    bounds = np.array([-INF, -INF, 1.0, 2.0])
    found, evaluated = search(bounds, np.full(4, 99.0), np.zeros(4), best=2, chunk=2, known=known)
    assert evaluated == 0
    np.testing.assert_array_equal(found.value, known.value)


def test_candidates_that_do_not_count_keep_their_place():
    bounds = np.array([1.0, -INF, 3.0])
    found, evaluated = search(bounds, np.array([1.0, 99.0, 3.0]), np.zeros(3), best=2, chunk=3)
    assert evaluated == 2
    np.testing.assert_array_equal(found.value, [1.0, -INF, 3.0])
