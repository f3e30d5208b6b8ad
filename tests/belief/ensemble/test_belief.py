"""The ensemble as a belief: it learns what the data say, judges itself, and keeps its form."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slider

from sbsrl.behaviours import record
from sbsrl.belief import protocol
from sbsrl.belief.ensemble import EnsembleSettings
from sbsrl.belief.ensemble.model import Samples
from sbsrl.costs import nothing_charged
from sbsrl.errors import UserError
from sbsrl.leaves import check_form
from sbsrl.prediction import final_costs
from sbsrl.prior import Prior
from sbsrl.spread import middle, spread
from sbsrl.structure import CostStructure
from sbsrl.task import Task
from sbsrl.transitions import Episode

SMALL = {name.partition(".")[2]: value for name, value in slider.SMALL.items() if name.startswith("ensemble.")}


def make_task(data) -> Task:
    return slider.make(Prior("data", informative=True, data=data))


@pytest.fixture(scope="module")
def data():
    return record(slider.make(), slider.pusher, 15, jax.random.key(0))


@pytest.fixture(scope="module")
def fresh(data):
    return EnsembleSettings(**SMALL, noisy="never").create(make_task(data), 3, jax.random.key(1))


@pytest.fixture(scope="module")
def learned(fresh):
    return fresh.prepared(jax.random.key(2))


def test_it_keeps_the_protocols_and_has_no_confidence_sets(fresh):
    for kind in (protocol.Belief, protocol.Prepared, protocol.Tested):
        assert isinstance(fresh, kind)
    assert not isinstance(fresh, protocol.Calibrated)


def test_it_learns_dynamics_reward_and_cost(learned):
    """One step from states of the data: 0.02 in place and speed, 0.05 in reward and cost."""
    belief, metrics = learned
    model = belief.nominal()
    for place, speed, push in ((0.1, 0.0, 0.5), (0.4, 0.05, -0.5), (0.6, 0.02, 0.1)):
        x, a = jnp.array([place, speed]), jnp.array([push])
        y = slider.dynamics(x, a)
        np.testing.assert_allclose(model(x, a), y, atol=0.02)
        np.testing.assert_allclose(model.reward(x, a, y), slider.reward(x, a, y), atol=0.05)
        np.testing.assert_allclose(model.costs(x, a, y), slider.costs(x, a, y), atol=0.05)
    assert metrics["model_updates"] >= 50
    assert 0 < metrics["held_out_loss"] < 0.3


def test_it_is_less_sure_where_there_are_no_data(learned):
    belief, _ = learned
    uncertainty = belief.uncertainty()
    near, far = (float(uncertainty(jnp.array(x), jnp.array([0.0]))) for x in ([0.3, 0.0], [-3.0, 0.8]))
    assert far > 3 * near


def test_learning_keeps_the_form_and_the_same_key_gives_the_same(fresh, learned):
    check_form("the belief", fresh, learned[0])
    again, _ = fresh.prepared(jax.random.key(2))
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(learned[0]), strict=True):
        if isinstance(one, jax.Array):
            np.testing.assert_array_equal(one, other)


@pytest.fixture
def far_episode():
    """The sled goes farther than any of the data, with the pushes of a policy that always pushes."""
    x, states, costs = jnp.array([0.0, 0.0]), [], []
    for _ in range(slider.HORIZON):
        states.append(x)
        y = slider.dynamics(x, jnp.array([0.4]))
        costs.append(slider.costs(x, None, y))
        x = y
    return Episode(
        np.array([*states, x]),
        np.full((slider.HORIZON, 1), 0.4),
        np.array([s[0] for s in states]),
        np.array(costs),
    )


class Always(eqx.Module):
    push: float

    def init(self):
        return ()

    def act(self, x, state, key):
        return jnp.full(1, self.push, x.dtype), (), {}


def test_an_update_goes_on_from_what_was_learned(learned, far_episode):
    """The new episode is predicted better afterwards, and the range of what is believed possible grows with it."""
    belief, _ = learned
    after = belief.update(far_episode.transitions, jax.random.key(3))
    check_form("the belief", belief, after)
    x, a = far_episode.states[-2], far_episode.actions[-1]
    errors = [
        np.abs(np.asarray(b.nominal()(jnp.array(x), jnp.array(a))) - far_episode.states[-1]).max()
        for b in (belief, after)
    ]
    assert errors[1] < errors[0]
    assert float(after.ensemble.range.high[0]) > float(belief.ensemble.range.high[0])
    assert int(after.replay.episodes) == int(belief.replay.episodes) + 1


def test_samples_are_drawn_anew_after_each_update(learned, far_episode):
    belief, _ = learned
    key = jax.random.key(9)
    after = belief.update(far_episode.transitions, jax.random.key(3))
    one, again, other = (b.samples(key, 4).weights for b in (belief, belief, after))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).min() > 0


def test_a_cost_beyond_all_predictions_widens_the_samples(learned, far_episode):
    belief, _ = learned
    costly = far_episode._replace(costs=far_episode.costs + 5.0)
    after, metrics = belief.tested(Always(0.4), costly, jax.random.key(4))
    assert metrics["covered"] == 0
    assert float(after.kappa) > float(belief.kappa)
    np.testing.assert_allclose(metrics["kappa"], belief.kappa, rtol=1e-6)


def test_a_cost_within_the_predictions_lets_them_shrink(learned):
    """Without a tolerance an episode of which anything is foretold is a test, and one that costs nothing passes it."""
    belief, _ = learned
    strict = dataclasses.replace(belief, choices=dataclasses.replace(belief.choices, tolerance=0.0))
    free = Episode(np.full((21, 2), 0.6), np.full((20, 1), 0.4), np.zeros(20), np.zeros((20, 1)))
    after, metrics = strict.tested(Always(0.4), free, jax.random.key(4))
    assert metrics["covered"] == 1
    assert 0 < metrics["predicted_mean"] <= metrics["predicted_most"]
    assert float(after.kappa) < float(belief.kappa)


def test_what_a_step_may_cost_grows_with_what_one_has_cost(data, far_episode):
    """Else no sample could ever foresee a cost that was seen. The slider's own limit is taken away here."""
    task = make_task(data)
    unlimited = dataclasses.replace(task, costs=(dataclasses.replace(task.costs[0], limits=(0.0, np.inf)),))
    belief = EnsembleSettings(**SMALL, cost_cap=0.01).create(unlimited, 3, jax.random.key(1))
    assert float(belief.ensemble.caps[0]) == pytest.approx(data.costs.max())
    dear = far_episode.transitions._replace(costs=np.full_like(far_episode.costs, 7.0))
    after = belief.update(dear, jax.random.key(3))
    assert float(after.ensemble.caps[0]) == 7.0
    check_form("the belief", belief, after)


def test_costs_below_zero_are_refused(data):
    lowered = data._replace(costs=data.costs - 0.5)
    with pytest.raises(UserError, match=r"costs down to -0\.5, and networks learn costs of 0 and more"):
        EnsembleSettings(**SMALL).create(make_task(lowered), 3, jax.random.key(1))


def test_that_nothing_costs_anything_is_no_test(learned):
    """Below the tolerance, of ten budgets here, real and predicted costs are the same: kappa stays."""
    belief, _ = learned
    tolerant = dataclasses.replace(belief, choices=dataclasses.replace(belief.choices, tolerance=10.0))
    still = Episode(np.zeros((21, 2)), np.zeros((20, 1)), np.zeros(20), np.zeros((20, 1)))
    after, metrics = tolerant.tested(Always(0.0), still, jax.random.key(4))
    assert "covered" not in metrics
    assert float(after.kappa) == float(belief.kappa)


def test_an_episode_of_which_nothing_was_played_says_nothing(learned):
    belief, _ = learned
    nothing = Episode(np.zeros((1, 2)), np.zeros((0, 1)), np.zeros(0), np.zeros((0, 1)))
    after, metrics = belief.tested(Always(0.0), nothing, jax.random.key(4))
    assert (after, metrics) == (belief, {})


def test_without_data_or_without_cost_in_them_it_refuses(data):
    with pytest.raises(UserError, match="starts from offline data"):
        EnsembleSettings(**SMALL).create(make_task(None), 3, jax.random.key(1))
    free = data._replace(costs=np.zeros_like(data.costs))
    with pytest.raises(UserError, match="no transition of the offline data of slider costs anything"):
        EnsembleSettings(**SMALL).create(make_task(free), 3, jax.random.key(1))


def test_one_episode_is_not_enough(data):
    few = type(data)(*(part[:20] for part in data))._replace(costs=np.ones((20, 1)))
    belief = EnsembleSettings(**SMALL).create(make_task(few), 3, jax.random.key(1))
    with pytest.raises(UserError, match="at least two episodes"):
        belief.prepared(jax.random.key(2))


def test_swapped_limits_of_kappa_are_refused():
    with pytest.raises(UserError, match="swap them"):
        EnsembleSettings(kappa_least=3.0, kappa_most=1.0)


def choosing(belief, **choices):
    return dataclasses.replace(belief, choices=dataclasses.replace(belief.choices, **choices))


def predicted(belief, episode, **choices):
    """On five samples, by a policy that always pushes as that episode did."""
    samples = Samples.draw(belief.ensemble, 5, jnp.float32(1.0), False, jax.random.key(5))
    return np.asarray(choosing(belief, **choices)._predicted(samples, Always(0.4), episode, jax.random.key(6)))


def by_pieces(belief, episode, length):
    """The sum of what is predicted of each piece by itself."""
    samples = Samples.draw(belief.ensemble, 5, jnp.float32(1.0), False, jax.random.key(5))
    nothing, first = nothing_charged(1, ("sum",))[0], jnp.asarray(0, jnp.int32)
    total, steps = 0, len(episode.actions)
    for begin in range(0, steps, length):
        x, end = jnp.asarray(episode.states[begin], jnp.float32), jnp.asarray(min(length, steps - begin), jnp.int32)
        total += final_costs(
            samples, Always(0.4), (), x, nothing, first, end, slider.HORIZON, ("sum",), jax.random.key(0)
        )
    return np.asarray(total)


@pytest.mark.parametrize("played", [20, 9, 1])
@pytest.mark.parametrize("length", [1, 7, 20, 500])
def test_an_episode_is_tested_piece_by_piece_if_so_chosen(learned, far_episode, length, played):
    """Each from a state that it came to; also of one that ended early. Samples are functions here: 1e-4."""
    parts = far_episode._replace(states=far_episode.states[: played + 1])
    short = parts._replace(**{name: getattr(parts, name)[:played] for name in ("actions", "rewards", "costs")})
    found = predicted(learned[0], short, test_steps=length)
    np.testing.assert_allclose(found, by_pieces(learned[0], short, min(length, slider.HORIZON)), rtol=1e-4, atol=1e-5)


def test_by_default_all_of_an_episode_is_predicted_from_its_first_state(learned, far_episode):
    belief, _ = learned
    whole = predicted(belief, far_episode)
    np.testing.assert_array_equal(whole, predicted(belief, far_episode, test_steps=slider.HORIZON))
    assert np.abs(whole - predicted(belief, far_episode, test_steps=1)).max() > 1e-3


def test_costs_that_are_not_summed_are_predicted_as_a_whole(learned, far_episode):
    belief = dataclasses.replace(learned[0], aggregations=("statewise",))
    np.testing.assert_array_equal(predicted(belief, far_episode, test_steps=5), predicted(belief, far_episode))


def test_samples_that_are_tested_piece_by_piece_are_not_widened_beforehand(fresh):
    """Without that the samples are widened to what the held-out episodes ask for, here by a share of 0.01."""
    narrow = choosing(fresh, kappa=0.5, kappa_least=0.5, kappa_most=10.0, state_share=0.01)
    kappas = [float(choosing(narrow, test_steps=n).prepared(jax.random.key(2))[0].kappa) for n in (0, 5)]
    assert kappas[0] > 0.6
    assert kappas[1] == pytest.approx(0.5)


@pytest.mark.parametrize("units", ["deviation", "quantiles"])
def test_states_are_seen_in_the_units_that_were_chosen(data, units):
    belief = EnsembleSettings(**SMALL, units=units).create(make_task(data), 3, jax.random.key(1))
    scales = belief.ensemble.scales
    np.testing.assert_allclose(scales.input_mean, middle(data.states, units), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(scales.input_std, spread(data.states, units), rtol=1e-5)
    np.testing.assert_allclose(scales.change_std[0], (data.next_states - data.states)[:, 0].std() + 1e-3, rtol=1e-4)


def test_costs_are_learned_from_the_features_that_decide_them(data):
    """How far beyond the line: networks of one input, which see it and learn it; 0.05."""
    known = CostStructure((0, 1), features=lambda seen: (seen[:1] + 0.8 * seen[1:] - slider.LINE) / 0.1)
    task = dataclasses.replace(make_task(data), cost_structure=known)
    belief, _ = EnsembleSettings(**SMALL, noisy="never").create(task, 3, jax.random.key(1)).prepared(jax.random.key(2))
    assert belief.ensemble.nets.members.cost[0].weights.shape[-2] == 1
    model = belief.nominal()
    for place in (0.1, 0.5, 0.6, 0.7):
        x, a = jnp.array([place, 0.02]), jnp.array([0.0])
        y = slider.dynamics(x, a)
        np.testing.assert_allclose(model.costs(x, a, y), slider.costs(x, a, y), atol=0.05)
