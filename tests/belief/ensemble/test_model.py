"""Models made of an ensemble are what their formulas say."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nets import array, make_ensemble

from sbsrl.belief.ensemble.model import Combination, Disagreement, Samples, combine
from sbsrl.belief.ensemble.nets import Range, cost_of
from sbsrl.belief.protocol import Renewable, Rows, SideBySide
from sbsrl.model import KnownSignals, Model
from sbsrl.structure import CostStructure


def inputs(getkey, n=6):
    return jax.random.normal(getkey(), (n, 2), jnp.float32), jax.random.normal(getkey(), (n, 1), jnp.float32)


def member(ensemble, m):
    """Member m alone: mu + (f_m - mu)."""
    return Combination(ensemble, jnp.eye(ensemble.nets.count, dtype=jnp.float32)[m])


def test_they_keep_the_protocols(ensemble, getkey):
    samples = Samples.draw(ensemble, 3, jnp.float32(2.0), False, getkey())
    assert isinstance(samples.member(jnp.int32(0)), Model)
    assert isinstance(samples, Renewable)
    assert isinstance(samples, SideBySide)
    assert isinstance(samples.beside(1, 1), Rows)


def test_a_member_says_what_its_own_network_says(ensemble, getkey):
    """Change in units of the data, reward likewise, cost as it is; the rest of the state follows."""
    (x,), (a,) = inputs(getkey, 1)
    said = ensemble.outputs(x[None], a[None])
    for m in range(4):
        model = member(ensemble, m)
        y = model(x, a)
        np.testing.assert_allclose(y, [x[1], x[1] + 0.5 * said.change[m, 0, 0] + 0.05], rtol=1e-5)
        np.testing.assert_allclose(model.reward(x, a, y), 2 * said.reward[m, 0] + 0.3, rtol=1e-4)
        np.testing.assert_allclose(model.costs(x, a, y), said.costs[m, 0], rtol=1e-4)


def test_the_nominal_model_is_the_mean_of_the_members(ensemble, getkey):
    (x,), (a,) = inputs(getkey, 1)
    nominal = Combination(ensemble, jnp.zeros(4, jnp.float32))
    each = np.array([member(ensemble, m)(x, a) for m in range(4)])
    np.testing.assert_allclose(nominal(x, a), each.mean(axis=0), atol=1e-5)


def test_samples_have_kappa_squared_times_the_covariance_of_the_members(ensemble, getkey):
    """20,000 samples: 5 % of the covariance."""
    (x,), (a,) = inputs(getkey, 1)
    said = ensemble.outputs(x[None], a[None])
    parts = np.stack([said.change[:, 0, 0], said.reward[:, 0], said.costs[:, 0, 0]], axis=1)
    samples = Samples.draw(ensemble, 20_000, jnp.float32(2.5), False, getkey())
    drawn = parts.mean(axis=0) + np.asarray(samples.weights) @ (parts - parts.mean(axis=0))
    np.testing.assert_allclose(drawn.mean(axis=0), parts.mean(axis=0), atol=0.05 * 2.5 * parts.std(axis=0).max())
    wanted = 2.5**2 * np.cov(parts.T)
    np.testing.assert_allclose(np.cov(drawn.T), wanted, atol=0.05 * np.abs(wanted).max())


def test_members_as_samples_are_the_members_and_stay_so(ensemble, getkey):
    (x,), (a,) = inputs(getkey, 1)
    samples = Samples.draw(ensemble, 99, jnp.float32(1.0), True, getkey())
    assert len(samples) == 4
    for m in range(4):
        np.testing.assert_allclose(samples.member(jnp.int32(m))(x, a), member(ensemble, m)(x, a), rtol=1e-6)
    np.testing.assert_array_equal(samples.renewed(getkey()).weights, samples.weights)


def test_renewed_samples_are_others_of_the_same_number(ensemble, getkey):
    samples = Samples.draw(ensemble, 7, jnp.float32(2.0), False, getkey())
    renewed = samples.renewed(getkey())
    assert renewed.weights.shape == samples.weights.shape
    assert np.abs(renewed.weights - samples.weights).min() > 0


def test_rows_side_by_side_are_single_models(ensemble, getkey):
    samples = Samples.draw(ensemble, 2, jnp.float32(2.0), False, getkey())
    rows = samples.beside(2, 1)
    x, a = inputs(getkey, 5)
    moved, spread = rows.steps(x, a, jnp.zeros((5, 0), jnp.float32))
    models = [samples.member(jnp.int32(s)) for s in (0, 0, 1, 1)] + [Combination(ensemble, jnp.zeros(4, jnp.float32))]
    uncertainty = Disagreement(ensemble)
    for i, model in enumerate(models):
        y = model(x[i], a[i])
        np.testing.assert_allclose(moved.states[i], y, atol=1e-5)
        np.testing.assert_allclose(moved.rewards[i], model.reward(x[i], a[i], y), atol=1e-5)
        np.testing.assert_allclose(moved.costs[i], model.costs(x[i], a[i], y), atol=1e-5)
        np.testing.assert_allclose(spread[i], uncertainty(x[i], a[i]), atol=1e-5)


def test_the_uncertainty_is_the_spread_of_the_members(ensemble, getkey):
    x, a = inputs(getkey)
    said = ensemble.outputs(x, a)
    wanted = np.sqrt(np.var(np.asarray(said.change)[..., 0], axis=0) + 1e-8)
    np.testing.assert_allclose(Disagreement(ensemble).many(x.T, a.T), wanted, rtol=1e-5)


def test_predictions_stay_within_what_the_data_support(getkey):
    narrow = Range(array(-0.2), array(0.3), jnp.float32(-0.1), jnp.float32(0.1))
    ensemble = make_ensemble(range=narrow)
    rows = Samples.draw(ensemble, 50, jnp.float32(30.0), False, getkey()).beside(1, 0)
    moved, _ = rows.steps(*inputs(getkey, 50), jnp.zeros((50, 0), jnp.float32))
    assert moved.states[:, 1].min() >= np.float32(-0.2)
    assert moved.states[:, 1].max() <= np.float32(0.3)
    assert np.abs(moved.rewards).max() <= np.float32(0.1)
    assert moved.costs.min() >= 0
    assert moved.costs.max() <= 8
    assert moved.costs.max() > 4  # some combinations do say so


def test_what_is_known_is_not_predicted(getkey):
    known = KnownSignals(costs=lambda x, a, y: 3 * y[:1])
    model = member(make_ensemble(known=known), 0)
    (x,), (a,) = inputs(getkey, 1)
    y = model(x, a)
    np.testing.assert_allclose(model.costs(x, a, y), 3 * y[:1])


def test_a_noisy_model_draws_with_the_predicted_variance(getkey):
    """4,000 draws: 10 % of the deviation."""
    ensemble = make_ensemble(noisy="always")
    model = Combination(ensemble, jnp.zeros(4, jnp.float32))
    (x,), (a,) = inputs(getkey, 1)
    drawn = jax.vmap(lambda key: model.draw(x, a, key))(jax.random.split(getkey(), 4000))
    raw = np.mean(np.asarray(ensemble.outputs(x[None], a[None]).spread)[:, 0, 0])
    deviation = 0.5 * np.exp(0.5 * (-14 + 15 / (1 + np.exp(-raw))))
    assert model.stochastic
    np.testing.assert_allclose(np.std(drawn[:, 1]), deviation, rtol=0.1)
    np.testing.assert_allclose(np.mean(drawn[:, 1]), model(x, a)[1], atol=4 * deviation / np.sqrt(4000))


@pytest.mark.parametrize("logit", [-40.0, -2.0, 0.0, 3.0, 200.0])
def test_costs_lie_between_nothing_and_their_cap_and_rise_with_the_logit(logit):
    low, high = (cost_of(array(value), array(4.0))[0] for value in (logit, logit + 0.5))
    assert 0 <= low <= high <= 4


def test_noise_for_training_only_is_left_out_of_forecasts(getkey):
    rows = Samples.draw(make_ensemble(noisy="training"), 2, jnp.float32(1.0), False, getkey()).beside(1, 1)
    assert rows.noises(getkey(), 5, training=True).shape == (5, 3, 1)
    assert float(jnp.std(rows.noises(getkey(), 50, training=True))) > 0.5
    np.testing.assert_array_equal(rows.noises(getkey(), 5, training=False), np.zeros((5, 3, 1)))
    never = Samples.draw(make_ensemble(noisy="never"), 2, jnp.float32(1.0), False, getkey()).beside(1, 1)
    assert never.noises(getkey(), 5, training=True).shape == (5, 3, 0)


def test_samples_of_the_dynamics_may_be_spread_less_than_those_of_the_cost(getkey):
    """A share of 0.4: changes and rewards are 0.4 times as far from the mean, costs are as they were."""
    said = make_ensemble().outputs(*inputs(getkey, 3))
    weights = jax.random.normal(getkey(), (3, 4), jnp.float32)
    mean, full, near = combine(said, 0 * weights), combine(said, weights), combine(said, weights, 0.4)
    for part in ("change", "reward"):
        wanted = getattr(mean, part) + 0.4 * (getattr(full, part) - getattr(mean, part))
        np.testing.assert_allclose(getattr(near, part), wanted, atol=1e-6)
    np.testing.assert_array_equal(near.costs, full.costs)


def test_costs_are_told_only_what_decides_them(getkey):
    """With inputs (1,) neither the first state nor the action makes a difference; with none declared both do."""
    (x, other), (a, push) = inputs(getkey, 2)
    moved = jnp.stack([other[0], x[1]])
    for structure, same in ((CostStructure((1,)), True), (None, False)):
        ensemble = make_ensemble(cost_structure=structure)
        costs = [ensemble.outputs(*(part[None] for part in pair)).costs for pair in ((x, a), (moved, push))]
        assert np.allclose(*costs, atol=1e-6) == same


def test_a_step_costs_at_most_what_the_task_says(getkey):
    """c <= |x_1|, however far samples are spread; and at x_1 = 0 nothing."""
    ensemble = make_ensemble(cost_structure=CostStructure((0,), most=lambda x: jnp.abs(x[1:])))
    rows = Samples.draw(ensemble, 50, jnp.float32(30.0), False, getkey()).beside(1, 0)
    x, a = inputs(getkey, 50)
    x = x.at[0, 1].set(0.0)
    moved, _ = rows.steps(x, a, jnp.zeros((50, 0), jnp.float32))
    assert np.all(moved.costs[:, 0] <= np.abs(x[:, 1]))
    assert float(moved.costs[0, 0]) == 0
    assert float(jnp.max(moved.costs)) > 0.5


def test_where_all_members_agree_that_nothing_costs_no_sample_says_otherwise(getkey):
    """Members that are sure, by logits from -20 to -60: these differ, the costs do not."""
    ensemble = make_ensemble()
    bias = jnp.linspace(-20, -60, 4, dtype=jnp.float32)[:, None]
    silent = jax.tree.map(jnp.zeros_like, ensemble.nets.members.cost)
    sure = eqx.tree_at(
        lambda e: (e.nets.members.cost, e.nets.prior_scale),
        ensemble,
        ((*silent[:-1], silent[-1]._replace(bias=bias)), jnp.float32(0.0)),
    )
    rows = Samples.draw(sure, 200, jnp.float32(3.0), False, getkey()).beside(1, 0)
    moved, _ = rows.steps(*inputs(getkey, 200), jnp.zeros((200, 0), jnp.float32))
    assert float(jnp.max(moved.costs)) < 1e-6


def squared(seen):
    """The second of two inputs does not matter, nor does the sign of the first."""
    return seen[:1] ** 2


def test_costs_are_told_only_the_features_of_what_decides_them(getkey):
    """Of x_1 and the action only x_1 squared: the members and their random priors see nothing else."""
    ensemble = make_ensemble(cost_structure=CostStructure((1, 2), features=squared))
    assert ensemble.nets.members.cost[0].weights.shape[-2] == 1
    (x, _), (a, push) = inputs(getkey, 2)
    same, other = jnp.stack([x[0] + 3, -x[1]]), jnp.stack([x[0], x[1] + 1])
    wanted, found, different = (
        ensemble.outputs(where[None], what[None]).costs for where, what in ((x, a), (same, push), (other, a))
    )
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert float(jnp.max(jnp.abs(different - wanted))) > 1e-3


def test_features_are_seen_in_their_own_units_and_not_beyond_five():
    """The units of the data, here (1, 2) about (0.1, 0.2), do not matter: x_1^2 = 36 and 49 are the same, 5."""
    ensemble = make_ensemble(cost_structure=CostStructure((1,), features=squared))
    at = lambda place: ensemble.outputs(array(0.0, place)[None], array(0.0)[None]).costs  # noqa: E731
    np.testing.assert_array_equal(at(6.0), at(7.0))
    np.testing.assert_allclose(at(np.sqrt(5.0)), at(7.0), atol=1e-5)
    assert float(jnp.max(jnp.abs(at(1.0) - at(2.0)))) > 1e-3


def test_the_dynamics_are_told_everything_whatever_costs_are_told(getkey):
    x, a = inputs(getkey, 3)
    plain, told = (make_ensemble(cost_structure=known) for known in (None, CostStructure((1,), features=squared)))
    np.testing.assert_array_equal(plain.outputs(x, a).change, told.outputs(x, a).change)
