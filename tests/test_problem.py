"""The penalised value against plain loops."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.problem import (
    Evaluation,
    Excess,
    Only,
    Penalties,
    Problem,
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


class Line(eqx.Module):
    """x' = g x + a."""

    gain: jnp.ndarray

    def __call__(self, x, a):
        return self.gain * x + a


class Lines(eqx.Module):
    gains: jnp.ndarray

    def __len__(self):
        return len(self.gains)

    def member(self, m):
        return Line(self.gains[m])


def problem(samples, threshold=0.0, aggregation="statewise", steps=4, slack=0.0):
    return Problem(
        reward=lambda x, a, y: -jnp.sum(x**2) - 0.1 * jnp.sum(a**2),
        nominal=Line(jnp.array(0.9)),
        cost=lambda x, a, y: jnp.abs(y[0]),
        aggregation=aggregation,
        samples=samples,
        bound=jnp.array(1.5),
        uncertainty=lambda x, a: jnp.abs(x[0]),
        threshold=jnp.array(threshold),
        steps=jnp.array(steps, jnp.int32),
        exploring=jnp.array(threshold > 0),
        penalties=Penalties(cost=1000.0, exploration=10.0, slack=slack),
    )


X = np.array([1.0])
PLANS = np.random.default_rng(0).uniform(-1, 1, (7, 4, 1))


def by_hand(plan, gains, threshold, aggregation):
    x, reward, information = X[0], 0.0, 0.0
    for (a,) in plan:
        reward += -(x**2) - 0.1 * a**2
        information += abs(x)
        x = 0.9 * x + a
    hinges = []
    for gain in gains:
        x, costs = X[0], []
        for (a,) in plan:
            x = gain * x + a
            costs.append(abs(x))
        total = max(costs) if aggregation == "statewise" else sum(costs)
        hinges.append(max(total - 1.5, 0.0))
    value = reward - 1000 * sum(hinges) - 10 * max(threshold - information, 0)
    return value, max(hinges, default=0.0), information if threshold > 0 else 0.0


def evaluate(p):
    """The parts of the value put together: return, exploration, then every sample."""
    x, plans = jnp.asarray(X), jnp.moveaxis(jnp.asarray(PLANS), 0, -1)
    returns, states = nominal_returns(p, x, plans)
    gathered = information(p, states, plans) if p.threshold > 0 else jnp.zeros(len(PLANS))
    hinges = [excess(p, p.samples.member(m), x, plans).beyond for m in jnp.arange(p.sample_count)]
    hinges = jnp.stack(hinges, axis=-1) if hinges else jnp.zeros((len(PLANS), 0))
    value = penalised(explored(p, returns, gathered), penalties(p, hinges))
    return Evaluation(value, jnp.max(hinges, axis=-1, initial=0), gathered)


@pytest.mark.parametrize("aggregation", ["statewise", "sum"])
@pytest.mark.parametrize("threshold", [0.0, 3.0])
@pytest.mark.parametrize("gains", [GAINS, ()])
def test_value_violation_and_information_are_those_computed_by_hand(gains, threshold, aggregation):
    samples = Lines(jnp.asarray(GAINS)) if len(gains) else None
    got = evaluate(problem(samples, threshold, aggregation))
    expected = [by_hand(plan, gains, threshold, aggregation) for plan in PLANS]
    for part, column in zip(got, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(part, column, rtol=1e-12, atol=1e-12)


def test_the_nominal_return_bounds_the_value():
    p = problem(Lines(jnp.asarray(GAINS)), threshold=3.0)
    returns, _ = nominal_returns(p, jnp.asarray(X), jnp.moveaxis(jnp.asarray(PLANS), 0, -1))
    assert np.all(evaluate(p).value <= returns)


def test_information_beyond_the_end_of_the_episode_does_not_count():
    shortened = evaluate(problem(None, threshold=3.0, steps=2)).information
    expected = [abs(X[0]) + abs(0.9 * X[0] + plan[0, 0]) for plan in PLANS]
    np.testing.assert_allclose(shortened, expected)


def test_a_single_member_stands_for_all():
    only = Only(Line(jnp.array(0.9)))
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
    plans = jnp.moveaxis(jnp.asarray(PLANS), 0, -1)
    many = rollouts(Line(jnp.array(0.9)), jnp.asarray(X), plans)
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


def excess_of(p, dynamics):
    return excess(p, dynamics, jnp.asarray(X), jnp.moveaxis(jnp.asarray(PLANS), 0, -1))


@pytest.mark.parametrize("aggregation", ["statewise", "sum"])
def test_slack_grows_to_the_end_of_the_plan_and_is_charged_and_not_judged(aggregation):
    """Four steps cost 0, 0.2, 0.4 and 0.6 more than they do; feasibility knows nothing of it."""
    p = problem(None, aggregation=aggregation, slack=0.6)
    found = excess_of(p, Line(jnp.array(0.9)))
    total = max if aggregation == "statewise" else sum
    for charged, beyond, plan in zip(*found, PLANS, strict=True):
        x, costs = X[0], []
        for (a,) in plan:
            x = 0.9 * x + a
            costs.append(abs(x))
        np.testing.assert_allclose(beyond, max(total(costs) - 1.5, 0), rtol=1e-12)
        with_slack = [c + s for c, s in zip(costs, (0, 0.2, 0.4, 0.6), strict=True)]
        np.testing.assert_allclose(charged, max(total(with_slack) - 1.5, 0), rtol=1e-12)
    assert np.any((found.charged > 0) & (found.beyond == 0))


def test_without_slack_what_is_charged_is_what_is_too_much():
    found = excess_of(problem(None), Line(jnp.array(1.3)))
    assert np.any(found.beyond > 0)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("slack", [0.0, 0.6])
def test_a_trajectory_that_is_not_a_number_is_infinitely_too_much(slack):
    found = excess_of(problem(None, slack=slack), Line(jnp.array(np.nan)))
    assert isinstance(found, Excess)
    np.testing.assert_array_equal(found, np.full((2, 7), np.inf))


def test_a_weight_of_zero_forgives_even_what_is_not_a_number():
    free = eqx.tree_at(lambda p: p.bound, problem(None), jnp.array(1.5))
    free = Problem(**{**vars(free), "penalties": Penalties(cost=0.0, exploration=0.0)})
    np.testing.assert_array_equal(penalties(free, jnp.array([1.0, np.inf])), [0, 0])


def test_demanding_changes_the_threshold_and_its_steps_only():
    before = problem(None, threshold=3.0)
    after = before.demanding(jnp.array(1.0), 2)
    assert (float(before.threshold), float(after.threshold)) == (3.0, 1.0)
    assert (int(before.steps), int(after.steps)) == (4, 2)
    assert after.bound is before.bound
