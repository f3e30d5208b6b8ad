"""The penalised value against plain loops: one cost or several, on every sample or on their mean, with noise or not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.model import KnownModel, Signals
from sbsrl.problem import (
    Evaluation,
    Excess,
    Only,
    Penalties,
    Problem,
    drawn_rollouts,
    excess,
    explored,
    feasible,
    information,
    nominal_returns,
    penalised,
    penalties,
    rollout,
    rollouts,
)

GAINS = np.array([0.5, 0.9, 1.3])
WEIGHTS = Penalties(cost=1000.0, exploration=10.0)


def reward(x, a, y):
    return -jnp.sum(x**2) - 0.1 * jnp.sum(a**2)


def size(x, a, y):
    return jnp.abs(y)


def size_and_effort(x, a, y):
    """Two costs: where the point is, and the squared action."""
    return jnp.stack([jnp.abs(y[0]), a[0] ** 2])


ONE, TWO = Signals(reward, size), Signals(reward, size_and_effort)


class Line(eqx.Module):
    """x' = g x + a."""

    gain: jnp.ndarray

    def __call__(self, x, a):
        return self.gain * x + a


def line(gain, signals=ONE):
    return KnownModel(Line(jnp.asarray(gain)), signals)


class Lines(eqx.Module):
    gains: jnp.ndarray
    signals: Signals = eqx.field(static=True, default=ONE)

    def __len__(self):
        return len(self.gains)

    def member(self, m):
        return KnownModel(Line(self.gains[m]), self.signals)


def lines(signals=ONE):
    return Lines(jnp.asarray(GAINS), signals)


def problem(samples, threshold=0.0, aggregation="statewise", steps=4, **changes):
    fields = {
        "objective": None,
        "nominal": line(0.9),
        "samples": samples,
        "bounds": jnp.array([1.5]),
        "aggregations": (aggregation,),
        "uncertainty": lambda x, a: jnp.abs(x[0]),
        "threshold": jnp.array(threshold),
        "steps": jnp.array(steps, jnp.int32),
        "exploring": jnp.array(threshold > 0),
        "starts": jnp.ones((1, 1)),
        "key": jax.random.key(3),
    }
    return Problem(**{**fields, **changes})


X = np.array([1.0])
PLANS = np.random.default_rng(0).uniform(-1, 1, (7, 4, 1))
COLUMNS = np.moveaxis(PLANS, 0, -1)


def step_costs(plan, gain):
    """What each step costs: where the point is, and the squared action; [2, H]."""
    x, costs = X[0], []
    for (a,) in plan:
        x = gain * x + a
        costs.append([abs(x), a**2])
    return np.array(costs).T


def total(costs, aggregation):
    return max(costs) if aggregation == "statewise" else sum(costs)


def by_hand(plan, gains, threshold, aggregation):
    x, earned, seen = X[0], 0.0, 0.0
    for (a,) in plan:
        earned += -(x**2) - 0.1 * a**2
        seen += abs(x)
        x = 0.9 * x + a
    hinges = [max(total(step_costs(plan, gain)[0], aggregation) - 1.5, 0.0) for gain in gains]
    value = earned - 1000 * sum(hinges) - 10 * max(threshold - seen, 0)
    return value, max(hinges, default=0.0), seen if threshold > 0 else 0.0


def excess_of(p, m=0, slack=0.0):
    return excess(p, jnp.asarray(m), jnp.asarray(X), jnp.asarray(COLUMNS), slack)


def evaluate(p):
    """The parts of the value put together: return, exploration, then every sample."""
    x, plans = jnp.asarray(X), jnp.asarray(COLUMNS)
    returns, states = nominal_returns(p, x, plans)
    gathered = information(p, states, plans) if p.threshold > 0 else jnp.zeros(len(PLANS))
    found = [excess_of(p, m) for m in range(p.constraint_count)]
    charged, beyond = (
        jnp.stack([each[i] for each in found], axis=-1) if found else jnp.zeros((len(PLANS), 0)) for i in range(2)
    )
    value = penalised(explored(p, WEIGHTS, returns, gathered), penalties(WEIGHTS, charged))
    return Evaluation(value, jnp.max(beyond, axis=-1, initial=0), gathered)


@pytest.mark.parametrize("aggregation", ["statewise", "sum"])
@pytest.mark.parametrize("threshold", [0.0, 3.0])
@pytest.mark.parametrize("gains", [GAINS, ()])
def test_value_violation_and_information_are_those_computed_by_hand(gains, threshold, aggregation):
    got = evaluate(problem(lines() if len(gains) else None, threshold, aggregation))
    expected = [by_hand(plan, gains, threshold, aggregation) for plan in PLANS]
    for part, column in zip(got, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(part, column, rtol=1e-12, atol=1e-12)


def test_the_nominal_return_bounds_the_value():
    p = problem(lines(), threshold=3.0)
    returns, _ = nominal_returns(p, jnp.asarray(X), jnp.asarray(COLUMNS))
    assert np.all(evaluate(p).value <= returns)


def test_an_objective_takes_the_place_of_the_reward():
    """It is maximised, and the model's own reward is not asked for."""
    p = problem(None, objective=lambda x, a, y: 2 * a[0])
    returns, _ = nominal_returns(p, jnp.asarray(X), jnp.asarray(COLUMNS))
    np.testing.assert_allclose(returns, 2 * PLANS.sum(axis=(1, 2)), rtol=1e-12)
    assert problem(None).reward == problem(None).nominal.reward


def test_information_beyond_the_end_of_the_episode_does_not_count():
    shortened = evaluate(problem(None, threshold=3.0, steps=2)).information
    expected = [abs(X[0]) + abs(0.9 * X[0] + plan[0, 0]) for plan in PLANS]
    np.testing.assert_allclose(shortened, expected)


def test_a_single_member_stands_for_all():
    only = Only(line(0.9))
    assert len(only) == 1
    np.testing.assert_array_equal(
        evaluate(problem(only)).violation, evaluate(problem(Lines(jnp.array([0.9])))).violation
    )


def test_feasible_means_no_violation_on_any_sample():
    e = Evaluation(*(jnp.array(v) for v in ([1.0, 1.0], [0.0, 1e-9], [0.0, 0.0])))
    assert feasible(e).tolist() == [True, False]


def test_rollout_has_all_states():
    states = rollout(Line(jnp.array(2.0)), jnp.array([1.0]), jnp.array([[0.0], [1.0]]))
    np.testing.assert_array_equal(states, [[1.0], [2.0], [5.0]])


def test_many_rollouts_are_single_ones_side_by_side():
    many = rollouts(Line(jnp.array(0.9)), jnp.asarray(X), jnp.asarray(COLUMNS))
    for i, plan in enumerate(PLANS):
        np.testing.assert_allclose(many[:, :, i], rollout(Line(jnp.array(0.9)), jnp.asarray(X), jnp.asarray(plan)))


def test_partial_sums_of_penalties_are_upper_bounds_also_after_rounding():
    rng = np.random.default_rng(0)
    value, all_of_them = (
        jnp.asarray(rng.normal(size=500), jnp.float32),
        jnp.asarray(rng.exponential(size=(500, 30)), jnp.float32),
    )
    for known in (0, 1, 7, 29):
        some = all_of_them.at[:, jnp.asarray(rng.permutation(30)[known:])].set(0)
        assert np.all(penalised(value, some) >= penalised(value, all_of_them))


@pytest.mark.parametrize("aggregation", ["statewise", "sum"])
def test_slack_grows_to_the_end_of_the_plan_and_is_charged_and_not_judged(aggregation):
    """Four steps cost 0, 0.2, 0.4 and 0.6 more than they do; feasibility knows nothing of it."""
    found = excess_of(problem(Only(line(0.9)), aggregation=aggregation), slack=0.6)
    for charged, beyond, plan in zip(*found, PLANS, strict=True):
        costs = step_costs(plan, 0.9)[0]
        np.testing.assert_allclose(beyond, max(total(costs, aggregation) - 1.5, 0), rtol=1e-12)
        with_slack = costs + np.array([0, 0.2, 0.4, 0.6])
        np.testing.assert_allclose(charged, max(total(with_slack, aggregation) - 1.5, 0), rtol=1e-12)
    assert np.any((found.charged > 0) & (found.beyond == 0))


def test_without_slack_what_is_charged_is_what_is_too_much():
    found = excess_of(problem(Only(line(1.3))))
    assert np.any(found.beyond > 0)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("slack", [0.0, 0.6])
def test_a_trajectory_that_is_not_a_number_is_infinitely_too_much(slack):
    found = excess_of(problem(Only(line(np.nan))), slack=slack)
    assert isinstance(found, Excess)
    np.testing.assert_array_equal(found, np.full((2, 7), np.inf))


def test_a_weight_of_zero_forgives_even_what_is_not_a_number():
    free = Penalties(cost=0.0, exploration=0.0)
    np.testing.assert_array_equal(penalties(free, jnp.array([1.0, np.inf])), [0, 0])


def test_demanding_changes_the_threshold_and_its_steps_only():
    before = problem(None, threshold=3.0)
    after = before.demanding(jnp.array(1.0), 2)
    assert (float(before.threshold), float(after.threshold)) == (3.0, 1.0)
    assert (int(before.steps), int(after.steps)) == (4, 2)
    assert after.bounds is before.bounds


BOUNDS = np.array([2.3, 1.9])


def two_costs(aggregations=("statewise", "sum"), **changes):
    """A bound on where the point is at every step, and one on the sum of squared actions."""
    return problem(lines(TWO), bounds=jnp.asarray(BOUNDS), aggregations=aggregations, **changes)


def surplus_by_hand(aggregations, slack=0.0):
    """J_c - d of every sample, cost and plan."""
    grown = np.linspace(0, slack, 4)
    return np.array(
        [
            [
                [total(costs + grown, how) for costs, how in zip(step_costs(plan, gain), aggregations, strict=True)]
                for plan in PLANS
            ]
            for gain in GAINS
        ]
    ).swapaxes(1, 2) - BOUNDS[:, None]  # fmt: skip


@pytest.mark.parametrize("slack", [0.0, 0.6])
@pytest.mark.parametrize("aggregations", [("statewise", "sum"), ("sum", "sum")])
def test_of_several_costs_the_sum_is_charged_and_the_largest_decides(aggregations, slack):
    """Each is aggregated in its own way and has its own bound; slack is charged for each."""
    p = two_costs(aggregations)
    beyond = np.maximum(surplus_by_hand(aggregations), 0)
    charged = np.maximum(surplus_by_hand(aggregations, slack), 0)
    assert np.any((beyond > 0).all(axis=1))  # some plans exceed both bounds
    for m in range(3):
        found = excess_of(p, m, slack)
        np.testing.assert_allclose(found.charged, charged[m].sum(axis=0), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(found.beyond, beyond[m].max(axis=0), rtol=1e-12, atol=1e-15)


def test_a_plan_is_feasible_only_if_every_cost_is_on_every_sample():
    """Among the plans are some that fail for the first cost only, for the second only, for both, and for none."""
    beyond = surplus_by_hand(("statewise", "sum")) > 0
    first, second = beyond[:, 0].any(axis=0), beyond[:, 1].any(axis=0)
    assert {*zip(first.tolist(), second.tolist(), strict=True)} == {
        (a, b) for a in (True, False) for b in (True, False)
    }
    got = evaluate(two_costs())
    np.testing.assert_array_equal(feasible(got), ~first & ~second)
    hinges = np.maximum(surplus_by_hand(("statewise", "sum")), 0)
    np.testing.assert_allclose(got.violation, hinges.max(axis=(0, 1)), rtol=1e-12, atol=1e-15)
    returns, _ = nominal_returns(two_costs(), jnp.asarray(X), jnp.asarray(COLUMNS))
    np.testing.assert_allclose(got.value, returns - 1000 * hinges.sum(axis=(0, 1)), rtol=1e-12)


def test_one_cost_that_is_not_a_number_is_enough():
    def half_broken(x, a, y):
        return jnp.stack([jnp.zeros(()), jnp.where(a[0] > 0, jnp.nan, 0.0)])

    p = problem(Only(line(0.9, Signals(reward, half_broken))), bounds=jnp.ones(2), aggregations=("sum", "sum"))
    broken = np.any(PLANS > 0, axis=(1, 2))
    assert broken.sum() > 0
    np.testing.assert_array_equal(excess_of(p).beyond, np.where(broken, np.inf, 0))


@pytest.mark.parametrize("slack", [0.0, 0.6])
def test_a_bound_on_the_mean_is_one_constraint_whose_excess_is_the_hinge_of_the_mean(slack):
    aggregations = ("statewise", "sum")
    p = two_costs(constraint="mean")
    assert (p.constraint_count, two_costs().constraint_count) == (1, 3)
    found = excess_of(p, 0, slack)
    charged, beyond = (np.maximum(surplus_by_hand(aggregations, s).mean(axis=0), 0) for s in (slack, 0.0))
    np.testing.assert_allclose(found.charged, charged.sum(axis=0), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.beyond, beyond.max(axis=0), rtol=1e-12, atol=1e-15)
    of_hinges = np.maximum(surplus_by_hand(aggregations), 0).mean(axis=0)
    assert np.any(of_hinges.max(axis=0) > beyond.max(axis=0) + 0.01)  # not the mean of hinges
    assert np.any(feasible(evaluate(p)) & ~np.asarray(feasible(evaluate(two_costs()))))


def test_without_samples_there_is_no_constraint():
    assert [problem(None, constraint=how).constraint_count for how in ("each", "mean")] == [0, 0]


class Shaken(eqx.Module):
    """x' = g x + a + 0.3 e with e ~ N(0, I): a model that draws, of two states."""

    gain: jnp.ndarray

    @property
    def stochastic(self):
        return True

    def __call__(self, x, a):
        return self.gain * x + a

    def draw(self, x, a, key):
        return self(x, a) + 0.3 * jax.random.normal(key, x.shape, x.dtype)

    def reward(self, x, a, y):
        return reward(x, a, y)

    def costs(self, x, a, y):
        return size(x, a, y)[:1]


class Shakens(eqx.Module):
    gains: jnp.ndarray

    def __len__(self):
        return len(self.gains)

    def member(self, m):
        return Shaken(self.gains[m])


PLANE = jnp.array([1.0, -0.5])


def noise_of(model, actions, key):
    """What the draws added, of every step, state and candidate."""
    states = drawn_rollouts(model, PLANE, jnp.asarray(actions), key)
    return np.asarray(states[1:] - (model.gain * states[:-1] + jnp.asarray(actions)))


def test_a_model_that_draws_has_the_same_noise_for_all_candidates_and_another_at_every_step(getkey):
    noise = noise_of(Shaken(jnp.array(0.9)), COLUMNS, getkey())
    assert noise.shape == (4, 2, 7)
    np.testing.assert_allclose(noise, np.broadcast_to(noise[..., :1], noise.shape), atol=1e-12)
    each = noise[..., 0].ravel()
    assert len(np.unique(each.round(6))) == 8  # every step and every state has its own
    assert 0.1 < np.std(each) < 0.6


def test_the_noise_of_a_candidate_does_not_depend_on_its_company(getkey):
    """Lazy evaluation asks for candidates in chunks."""
    key, model = getkey(), Shaken(jnp.array(0.9))
    all_of_them = drawn_rollouts(model, PLANE, jnp.asarray(COLUMNS), key)
    alone = drawn_rollouts(model, PLANE, jnp.asarray(COLUMNS[..., 3:5]), key)
    np.testing.assert_array_equal(all_of_them[..., 3:5], alone)


def test_a_model_that_is_a_function_needs_no_key(getkey):
    a, b = (drawn_rollouts(line(0.9), jnp.asarray(X), jnp.asarray(COLUMNS), getkey()) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a, rollouts(line(0.9), jnp.asarray(X), jnp.asarray(COLUMNS)))


def excesses(p, candidates=COLUMNS):
    return np.array([excess(p, jnp.asarray(m), PLANE, jnp.asarray(candidates)).beyond for m in range(3)])


def test_every_sample_has_noise_of_its_own_that_is_fixed_within_a_problem():
    """Three samples with the same gain differ; the same problem asked again does not; another key does."""
    alike = Shakens(jnp.full(3, 0.9))
    p = problem(alike, bounds=jnp.array([0.0]))
    found = excesses(p)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.all(np.abs(found[one] - found[other]) > 1e-6)
    np.testing.assert_array_equal(found, excesses(p))
    assert np.all(found != excesses(problem(alike, bounds=jnp.array([0.0]), key=jax.random.key(4))))


def test_costs_of_models_that_draw_are_those_of_their_noise():
    """By hand in numpy, with the noise that is seen along one candidate, for all others."""
    p = problem(Shakens(jnp.asarray(GAINS)), bounds=jnp.array([0.0]), aggregation="sum")
    found = excesses(p)
    for m, gain in enumerate(GAINS):
        key = jax.random.fold_in(p.key, m)
        noise = noise_of(Shaken(jnp.asarray(gain)), COLUMNS[..., :1], key)[..., 0]
        for i, plan in enumerate(PLANS):
            x, cost = np.asarray(PLANE), 0.0
            for a, e in zip(plan, noise, strict=True):
                x = gain * x + a + e
                cost += abs(x[0])
            np.testing.assert_allclose(found[m, i], cost, rtol=1e-9)
