"""Lazy evaluation must find what full evaluation finds, to the last bit."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.belief.choices import GPChoices
from sbsrl.belief.gp import GPBelief
from sbsrl.kernels import Matern, SquaredExponential
from sbsrl.model import KnownModel, Signals
from sbsrl.prior import GPPrior
from sbsrl.problem import Evaluation, Excess, Penalties, Problem, excess, explored, information, nominal_returns
from sbsrl.solve.lazy import evaluate_lazily
from sbsrl.transitions import Transitions

INF = np.inf


def still(x, a):
    return x


def approach(x, a, y):
    return -jnp.sum((y - 1.5) ** 2)


def first_coordinate(x, a, y):
    return jnp.abs(y[:1])


SIGNALS = Signals(approach, first_coordinate)
WEIGHTS = Penalties(cost=10.0, exploration=3.0)


def problem(threshold=0.0, samples=None, **changes):
    fields = {
        "objective": None,
        "nominal": KnownModel(still, SIGNALS),
        "samples": samples,
        "bounds": jnp.ones(1, jnp.float32),
        "aggregations": ("statewise",),
        "uncertainty": still,
        "threshold": jnp.float32(threshold),
        "steps": jnp.int32(100),
        "exploring": jnp.array(threshold > 0),
        "starts": jnp.zeros((1, 2)),
        "key": jax.random.key(0),
    }
    return Problem(**{**fields, **changes})


def nothing_known(size):
    return Evaluation(jnp.full(size, -INF, jnp.float32), jnp.full(size, INF, jnp.float32), jnp.zeros(size, jnp.float32))


@eqx.filter_jit
def look_up(problem, returns, known, gathered, charged, hinges, order, best, chunk):
    hinge = lambda rows, m: Excess(charged[rows, m], hinges[rows, m])  # noqa: E731
    return evaluate_lazily(problem, WEIGHTS, returns, known, lambda rows: gathered[rows], hinge, order, best, chunk)


class Table:
    """Candidates whose return, information and hinges are given; and what is charged, if that is not the same."""

    def __init__(self, returns, hinges, gathered=None, threshold=0.0, charged=None):
        self.returns = jnp.asarray(returns, jnp.float32)
        self.hinges = jnp.asarray(hinges, jnp.float32).reshape(len(self.returns), -1)
        self.charged = self.hinges if charged is None else jnp.asarray(charged, jnp.float32)
        self.gathered = jnp.zeros_like(self.returns) if gathered is None else jnp.asarray(gathered, jnp.float32)
        self.problem = problem(threshold)

    def lazily(self, best, chunk, order=None, known=None):
        order = jnp.arange(self.hinges.shape[1]) if order is None else jnp.asarray(order)
        known = nothing_known(len(self.returns)) if known is None else known
        parts = (self.returns, known, self.gathered, self.charged, self.hinges)
        return look_up(self.problem, *parts, order, best, chunk)

    def fully(self):
        """Computed by hand. The numbers are multiples of 1/8, so all sums are exact."""
        missing = np.maximum(self.problem.threshold - self.gathered, 0)
        values = self.returns - 3 * missing - 10 * np.sum(self.charged, axis=1)
        return Evaluation(values, np.max(self.hinges, axis=1, initial=0), self.gathered)


def check_same(lazy, full, best):
    """The same elites in the same order with the same values, and the same plan to follow."""
    for one, other in zip(jax.lax.top_k(lazy.value, best), jax.lax.top_k(full.value, best), strict=True):
        np.testing.assert_array_equal(one, other)
    if np.any(full.violation <= 0):
        pick = lambda e: jnp.argmax(jnp.where(e.violation <= 0, e.value, -INF))  # noqa: E731
    else:
        pick = lambda e: jnp.argmin(e.violation)  # noqa: E731
    chosen, expected = pick(lazy), pick(full)
    assert chosen == expected
    assert lazy.value[chosen] == full.value[expected]
    assert lazy.violation[chosen] == full.violation[expected]


@pytest.mark.parametrize("seed", range(60))
def test_elites_and_plan_are_those_of_full_evaluation(seed):
    """Random returns, information and hinges, from easy to hopeless; any order, any chunk; some with many ties."""
    rng = np.random.default_rng(seed)
    size, best, chunk, samples = [(20, 1, 50, 3), (110, 15, 7, 8), (64, 8, 16, 1), (45, 14, 1, 5)][seed % 4]
    step = 4 if seed % 3 == 0 else 1 / 8
    grid = lambda values: np.round(values / step) * step  # noqa: E731
    hinges = grid(np.maximum(3 * rng.normal(size=(size, samples)) + rng.uniform(-9, 9), 0))
    gathered = grid(rng.uniform(0, 6, size))
    table = Table(grid(10 * rng.normal(size=size)), hinges, gathered, rng.choice([0.0, 3.0, 15.0]))
    lazy = table.lazily(best, chunk, rng.permutation(samples))
    check_same(lazy.evaluation(), table.fully(), best)
    assert np.all(np.asarray(lazy.asked) <= size)


@pytest.mark.parametrize("seed", range(20))
def test_with_slack_values_go_by_what_is_charged_and_feasibility_by_what_is_too_much(seed):
    """Lazily the same as evaluating everything, where up to 2 more are charged than there are; also for nothing."""
    rng = np.random.default_rng(100 + seed)
    size, best, chunk, samples = [(20, 1, 50, 3), (110, 15, 7, 8), (64, 8, 16, 1), (45, 14, 1, 5)][seed % 4]
    eighths = lambda values: np.round(8 * values) / 8  # noqa: E731
    hinges = eighths(np.maximum(3 * rng.normal(size=(size, samples)) + rng.uniform(-9, 6), 0))
    charged = hinges + eighths(rng.uniform(0, 2, hinges.shape) * (rng.uniform(size=hinges.shape) < 0.7))
    table = Table(eighths(10 * rng.normal(size=size)), hinges, charged=charged)
    check_same(table.lazily(best, chunk, rng.permutation(samples)).evaluation(), table.fully(), best)


def test_a_candidate_may_be_charged_and_feasible():
    """The second is charged most and is the only one that is safe."""
    table = Table([3.0, 2.0, 1.0], [[0.25], [0.0], [0.5]], charged=[[0.25], [1.0], [0.5]])
    found = table.lazily(best=1, chunk=1).evaluation()
    assert jnp.argmax(found.value) == 0
    assert (found.value[1], found.violation[1]) == (-8, 0)


def test_a_clear_violator_is_out_after_one_sample():
    """100 candidates, of which the better half violates the first sample: those are asked once, 5 elites to the end."""
    returns = np.arange(100.0)
    hinges = np.zeros((100, 10))
    hinges[50:] = 50.0
    table = Table(returns, hinges)
    found = table.lazily(best=5, chunk=5)
    assert found.asked[0] == 55
    np.testing.assert_array_equal(found.asked[1:], 5)
    check_same(found.evaluation(), table.fully(), 5)


def test_the_order_of_the_samples_changes_the_work_and_not_the_result():
    rng = np.random.default_rng(0)
    hinges = np.zeros((200, 10))
    hinges[:, 7] = np.maximum(rng.normal(size=200) + 1, 0)
    table = Table(rng.normal(size=200), hinges)
    good, bad = table.lazily(10, 8, [7, *range(7), 8, 9]), table.lazily(10, 8, [*range(7), 8, 9, 7])
    check_same(good.evaluation(), bad.evaluation(), 10)
    assert 1.5 * int(jnp.sum(good.asked)) < int(jnp.sum(bad.asked))
    assert np.argmax(good.violated_share(jnp.zeros(10, jnp.float32))) == 7


def test_nobody_is_asked_for_information_unless_it_can_matter():
    table = Table(np.arange(100.0), np.zeros((100, 3)), gathered=np.ones(100), threshold=1.0)
    found = table.lazily(best=5, chunk=5)
    assert jnp.sum(found.stage > 0) == 5


def test_it_searches_to_the_end_for_a_feasible_candidate():
    """The only feasible candidate has the worst return, and its value is below that of violating ones."""
    hinges = np.full((50, 2), 0.01)
    hinges[0] = 0
    found = Table(np.arange(50.0), hinges).lazily(best=3, chunk=8).evaluation()
    assert found.violation[0] == 0
    assert found.value[0] == 0


def test_when_all_violate_the_least_violating_one_is_found_even_if_it_is_no_elite():
    returns, hinges = np.array([100.0, 90, 1, 2]), np.array([[0.5, 0.6], [0.5, 0.5], [0.3, 0.1], [0.2, 0.4]])
    found = Table(returns, hinges).lazily(best=1, chunk=1).evaluation()
    assert jnp.argmin(found.violation) == 2


def test_known_values_count_and_are_not_evaluated_again():
    """Two candidates are known to be better than any bound of the others: nothing is left to do."""
    known = Evaluation(
        jnp.array([5.0, 6.0, -INF, -INF], jnp.float32),
        jnp.array([0.0, 0.0, INF, INF], jnp.float32),
        jnp.zeros(4, jnp.float32),
    )
    found = Table([7.0, 8.0, 1.0, 2.0], np.full((4, 3), 99.0)).lazily(2, 2, known=known)
    assert jnp.sum(found.asked) == 0
    np.testing.assert_array_equal(found.evaluation().value, known.value)


def test_candidates_that_do_not_count_are_left_out():
    found = Table([1.0, -INF, 3.0], np.zeros((3, 2))).lazily(3, 3)
    np.testing.assert_array_equal(found.evaluation().value, [1.0, -INF, 3.0])
    np.testing.assert_array_equal(found.asked, [2, 2])


def test_infinite_hinges_do_not_stop_the_search():
    found = Table(np.arange(6.0), np.full((6, 2), INF)).lazily(3, 2).evaluation()
    assert not np.any(np.isnan(found.value))


def test_without_samples_only_information_is_asked_for():
    found = Table(np.arange(9.0), np.zeros((9, 0)), gathered=np.arange(9.0), threshold=4.0).lazily(3, 2)
    np.testing.assert_array_equal(jax.lax.top_k(found.evaluation().value, 3)[1], [8, 7, 6])


def drift(x, a):
    return 0.9 * x + 0.3 * jnp.concatenate([a, a])


PRIORS = [
    GPPrior(mean=drift, scale=(0.2, 0.1), kernel=kernel, noise=0.05, bound=None, bound_source="")
    for kernel in (SquaredExponential((1.0, 1.0, 1.0)), Matern((1.0, 1.0, 1.0), 2.5))
]


def gp_problem(seed, signals=SIGNALS, **changes):
    """A random Gaussian-process belief about a two-dimensional system, and a random problem with it."""
    rng = np.random.default_rng(seed)
    x, a = rng.normal(size=(40, 2)), rng.uniform(-1, 1, (40, 1))
    y = 0.9 * x + 0.3 * a + 0.1 * np.sin(x)
    belief = GPBelief.create(PRIORS[seed % 2], 3, 40, 1, GPChoices(features=32), signals=signals)
    data = Transitions(x, a, y, np.zeros(40), np.zeros((40, 1)), np.zeros(40, bool))
    belief = belief.update(data, jax.random.key(seed))
    fields = {
        "threshold": float(rng.choice([0.0, 20.0, 60.0])),
        "samples": belief.samples(jax.random.key(seed), 6),
        "nominal": belief.nominal(),
        "uncertainty": belief.uncertainty(),
        "bounds": jnp.full(1, rng.uniform(0.3, 2.0), jnp.float32),
    }
    return problem(**{**fields, **changes})


@eqx.filter_jit
def both_ways(problem, x, actions, order, best, chunk, slack=0.0):
    """Lazily, and with every candidate among the `best`, hence all evaluated on all samples."""
    returns, states = nominal_returns(problem, x, actions)
    gather = lambda rows: information(problem, states[:, :, rows], actions[:, :, rows])  # noqa: E731
    hinge = lambda rows, m: excess(problem, m, x, actions[:, :, rows], slack)  # noqa: E731
    known = nothing_known(len(returns))
    return [
        evaluate_lazily(problem, WEIGHTS, returns, known, gather, hinge, order, wanted, chunk)
        for wanted in (best, len(returns))
    ]


def by_hand_arrays(problem, x, actions, slack):
    """The value of each candidate from single rollouts."""
    values, worst = [], []
    for plan in jnp.moveaxis(actions, -1, 0):
        returns, states = nominal_returns(problem, x, plan[:, :, None])
        gathered = jnp.where(problem.threshold > 0, information(problem, states, plan[:, :, None]), 0)
        hinges = [excess(problem, m, x, plan[:, :, None], slack) for m in jnp.arange(6)]
        charged = jnp.sum(jnp.stack([hinge.charged[0] for hinge in hinges]))
        values.append(explored(problem, WEIGHTS, returns, gathered)[0] - WEIGHTS.cost * charged)
        worst.append(jnp.max(jnp.stack([hinge.beyond[0] for hinge in hinges])))
    return jnp.stack(values), jnp.stack(worst)


def random_search(seed, candidates, **changes):
    rng = np.random.default_rng(1000 + seed)
    actions = jnp.asarray(rng.uniform(-1, 1, (8, 1, candidates)), jnp.float32)
    x, order = jnp.asarray(rng.normal(size=2), jnp.float32), jnp.asarray(rng.permutation(6))
    return gp_problem(seed, **changes), x, actions, order


@pytest.mark.parametrize("seed", range(30))
def test_on_sampled_dynamics_the_elites_are_bit_for_bit_those_of_full_evaluation(seed):
    """30 random problems with 96 candidates: trajectories are computed in other company, and come out the same."""
    lazy, full = both_ways(*random_search(seed, 96), 10, 16)
    np.testing.assert_array_equal(full.asked, 96)
    check_same(lazy.evaluation(), full.evaluation(), 10)


@pytest.mark.parametrize("seed", range(2))
def test_slack_changes_values_and_no_violation_and_is_exact_too(seed):
    """The elites are again bit for bit those of full evaluation; slack makes some of them worth less."""
    lazy, full = both_ways(*random_search(seed, 96), 10, 16, 0.5)
    check_same(lazy.evaluation(), full.evaluation(), 10)
    _, without = both_ways(*random_search(seed, 96), 10, 16)
    np.testing.assert_array_equal(full.worst, without.worst)
    assert np.all(full.bound <= without.bound)
    assert np.any(full.bound < without.bound)


def both_coordinates(x, a, y):
    return jnp.abs(y)


@pytest.mark.parametrize("seed", range(4))
def test_with_two_costs_the_elites_are_those_of_full_evaluation(seed):
    """Bit for bit; some candidates exceed both bounds and some one, so that the two costs matter."""
    signals = Signals(approach, both_coordinates)
    changes = {"signals": signals, "bounds": jnp.array([1.0, 0.8], jnp.float32), "aggregations": ("statewise", "sum")}
    lazy, full = both_ways(*random_search(seed, 96, **changes), 10, 16)
    check_same(lazy.evaluation(), full.evaluation(), 10)
    assert np.any(full.penalties[:, 0] > 10 * full.worst + 1e-3)  # the sum is charged, the largest is the violation


def test_a_bound_on_the_mean_is_a_single_stage():
    """One constraint is asked, whatever the number of samples, and lazily as fully."""
    problem, x, actions, _ = random_search(0, 96, constraint="mean")
    lazy, full = both_ways(problem, x, actions, jnp.zeros(1, jnp.int32), 10, 16)
    assert full.asked.shape == (1,)
    check_same(lazy.evaluation(), full.evaluation(), 10)


def test_full_evaluation_is_what_single_rollouts_give():
    """float32, eight steps: 1e-4 of values up to 1e3."""
    problem, x, actions, order = random_search(3, 6)
    problem = problem.demanding(jnp.float32(20.0), 100)
    _, full = both_ways(problem, x, actions, order, 4, 4, 0.5)
    values, worst = eqx.filter_jit(lambda p: by_hand_arrays(p, x, actions, 0.5))(problem)
    np.testing.assert_allclose(full.evaluation().value, values, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(full.evaluation().violation, worst, atol=1e-4)


def test_information_that_is_not_a_number_counts_as_none():
    broken = problem(threshold=5.0, uncertainty=lambda x, a: jnp.where(x[0] > 1, jnp.nan, 1.0))
    states = jnp.asarray([[[0.0, 2.0]], [[0.0, 2.0]], [[0.0, 2.0]]], jnp.float32)
    np.testing.assert_array_equal(information(broken, states, jnp.zeros((2, 1, 2), jnp.float32)), [2, 0])
