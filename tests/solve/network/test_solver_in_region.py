"""The solver with pieces of episodes and a trust region: where it begins, how far it goes, and when it turns back."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_problems import Parametric, known, make_problem, solver

from sbsrl.leaves import check_form
from sbsrl.networks import equal
from sbsrl.solve.network.gate import KEPT, RESTING, TRAINED
from sbsrl.solve.network.improver import OPTIMISER
from sbsrl.solve.network.outlook import POOL
from sbsrl.solve.network.region import difference
from sbsrl.solve.network.state import COMPARED
from sbsrl.transitions import Episode, Transitions

HORIZON, RADIUS, COST = 8, 0.05, 0.5


def at_rest(key):
    return jnp.zeros(1)


def model(price):
    """Pushing right earns; every step costs its price, whatever is done."""
    return known(lambda x, a: 0.5 * x + 0.1 * a, lambda x, a, y: a[0], lambda x, a, y: price + 0 * y)


PROBLEM = make_problem(
    model(0.1),
    Parametric(jnp.array([0.05, 0.15], jnp.float32), model),
    2.0,
    HORIZON,
    uncertainty=lambda x, a: 0.0 * a[0],
)


def recorded():
    """Ten episodes that hardly push, each of which cost 0.5; states are of no episode that follows here."""
    x = np.tile(np.linspace(7, 8, HORIZON), 10)[:, None]
    costs = np.full((len(x), 1), COST / HORIZON)
    after = np.where(x < 8, np.roll(x, -1), 8.1)
    return Transitions(x, 0.1 * np.cos(9 * x), after, np.cos(x[:, 0]), costs, np.zeros(len(x), bool))


def same(one, other):
    """Of whatever trees."""
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


@cache
def in_region(**choices):
    usual = {
        "budget": 2.0,
        "return_scale": HORIZON,
        "data": recorded(),
        "pieces": 4,
        "segment": 4,
        "radius": RADIUS,
        "checks": 1,
        "updates": 10,
        "cloning_updates": 50,
        "offline_blocks": 0,
    }
    return solver(at_rest, HORIZON, **{**usual, **choices})


@cache
def solved():
    """After the offline phase and a solve whose policy passed."""
    chosen = in_region()
    state, _ = chosen.prepare(PROBLEM, chosen.init(jax.random.key(0)), jax.random.key(1))
    solution, after = chosen.solve(PROBLEM, state, jax.random.key(2))
    assert (int(after.origin), bool(after.cleared)) == (TRAINED, True)
    return solution, state, after


def episode(cost, earned, ended="horizon"):
    """Its states are all 3."""
    steps = np.ones((HORIZON, 1))
    states = np.full((HORIZON + 1, 1), 3.0)
    return Episode(states, steps, steps[:, 0] * earned / HORIZON, steps * cost / HORIZON, ended)


def good():
    _, _, after = solved()
    return episode(COST, float(after.promised))


def test_the_region_is_at_first_about_the_clone_and_knows_what_its_data_cost():
    _, state, _ = solved()
    assert equal(state.region.reference, state.cloned)
    np.testing.assert_allclose(state.region.costs, [COST], rtol=1e-6)
    assert float(state.region.radius) == pytest.approx(RADIUS)


def test_what_is_trained_stays_within_the_radius_and_goes_as_far():
    """At states that pieces may begin at; 1 %. The reward is of pushing, so that the boundary is where to go."""
    solution, state, after = solved()
    chosen = in_region()
    pool = chosen._placed(PROBLEM, state, jax.random.key(2)).starts
    assert pool.shape == (2 * POOL, 1)
    apart = float(difference(after.played, state.region.reference, chosen.domain.units, pool))
    assert 0.9 * RADIUS < apart <= 1.01 * RADIUS
    assert solution.metrics["radius"] == pytest.approx(RADIUS)


def test_after_an_episode_that_did_what_was_foretold_the_region_is_about_its_policy_and_wider():
    _, _, solved_state = solved()
    after = in_region().observed(solved_state, good())
    check_form("the state", solved_state, after)
    assert equal(after.region.reference, solved_state.played)
    assert not equal(after.region.reference, solved_state.cloned)
    assert float(after.region.radius) == pytest.approx(1.25 * RADIUS)
    np.testing.assert_allclose(after.region.costs, [COST])
    assert equal(after.network, solved_state.played)  # and training goes on from there


def test_what_was_trained_and_not_played_is_forgotten():
    """What was played is the policy from before training: there training goes on, within the region about it."""
    _, _, solved_state = solved()
    kept = jax.tree.map(lambda leaf: 1.01 * leaf, solved_state.cloned)
    state = solved_state._replace(played=kept, origin=jnp.asarray(KEPT, jnp.int32))
    after = in_region().observed(state, good())
    assert equal(after.region.reference, kept)
    assert float(after.region.radius) == pytest.approx(1.25 * RADIUS)
    assert equal(after.network, kept)


@pytest.mark.parametrize(("cost", "lost"), [(1.2, 0.0), (COST, 0.6 * HORIZON)])
def test_after_one_that_did_not_training_begins_anew_at_the_reference_and_the_radius_is_smaller(cost, lost):
    """It cost more than is good, half the budget; or earned less than was promised, by more than a collapse."""
    _, before, solved_state = solved()
    after = in_region().observed(solved_state, episode(cost, float(solved_state.promised) - lost))
    check_form("the state", solved_state, after)
    assert equal(after.region.reference, before.region.reference)
    assert equal(after.network, before.region.reference)
    assert same(after.moments, OPTIMISER.init(after.network))
    assert float(after.region.radius) == pytest.approx(RADIUS / 2)


def test_a_policy_that_failed_the_gate_moves_nothing():
    _, _, solved_state = solved()
    after = in_region().observed(solved_state._replace(cleared=jnp.asarray(False)), good())
    assert same(after.region, solved_state.region)
    assert equal(after.network, solved_state.region.reference)


def test_another_episode_of_the_reference_tells_what_it_costs():
    _, _, solved_state = solved()
    played = solved_state._replace(played=solved_state.region.reference)
    after = in_region().observed(played, episode(1.5, 0.0))
    np.testing.assert_allclose(after.region.costs, [(COST + 1.5) / 2])
    assert float(after.region.radius) == pytest.approx(RADIUS)
    assert equal(after.region.reference, played.region.reference)


@pytest.mark.parametrize("ended", ["fault", "interrupted"])
def test_an_episode_that_was_cut_short_says_nothing(ended):
    _, _, solved_state = solved()
    assert same(in_region().observed(solved_state, good()._replace(ended=ended)), solved_state)


@pytest.mark.parametrize(("radius", "remembered"), [(RADIUS, [1, 0]), (0.0, [1, 1])])
def test_with_a_region_pieces_begin_where_episodes_succeeded(radius, remembered):
    """An episode at 3 that costs little, and one that costs too much; without a region both show where it goes."""
    chosen = in_region(radius=radius)
    for cost, counted in zip((COST, 1.9), remembered, strict=True):
        after = chosen.observed(chosen.init(jax.random.key(0)), episode(cost, 0.0))
        assert int(after.visited.episodes) == counted
        assert bool(np.all(after.visited.states[0] == 3)) == counted


def test_new_pieces_begin_at_states_of_that_episode():
    """Half of them, which is what is usual: the others are recorded, between 7 and 8. The first is for the gate."""
    chosen = in_region()
    after = chosen.init(jax.random.key(0))
    for _ in range(2):
        after = chosen.observed(after, good())
    starts = np.asarray(chosen._placed(PROBLEM, after, jax.random.key(3)).starts)
    assert np.mean(starts == 3) == 0.5
    assert np.mean(starts >= 7) == 0.5


@pytest.mark.parametrize(("really", "lowered"), [(1.3, 0.5), (0.8, 0.0), (0.1, 0.0)])
def test_bounds_are_lowered_by_what_the_reference_really_costs_more_than_is_foretold(really, lowered):
    """The samples say 8 x 0.05 and 8 x 0.15, in the mean 0.8; 1e-5."""
    chosen, (_, state, _) = in_region(), solved()
    state = state._replace(region=state.region._replace(costs=jnp.array([really], jnp.float32)))
    placed = chosen._placed(PROBLEM, state, jax.random.key(3))
    found = chosen._anchored(placed, state, jax.random.key(3))
    np.testing.assert_allclose(found.bounds, [2.0 - lowered], atol=1e-5)
    solution, _ = chosen.solve(PROBLEM, state, jax.random.key(3))
    assert solution.metrics["bound"] == pytest.approx(2.0 - lowered, abs=1e-5)


FORETOLD = 8 * 0.1
"""By the samples, of any policy: 8 x 0.05 and 8 x 0.15, in the mean."""


def in_doubt():
    """Without a region, with what was really paid."""
    return in_region(radius=0.0, corrected=True)


def test_at_first_the_data_say_how_many_times_more_is_paid_than_foretold():
    """Of a clone of episodes that cost 0.5: less, which lowers no bound; 1e-5."""
    chosen = in_doubt()
    state, _ = chosen.prepare(PROBLEM, chosen.init(jax.random.key(0)), jax.random.key(1))
    np.testing.assert_allclose(state.compared, np.broadcast_to([[COST], [FORETOLD]], (COMPARED, 2, 1)), atol=1e-5)
    np.testing.assert_allclose(chosen._anchored(PROBLEM, state, jax.random.key(2)).bounds, [2.0])


@pytest.mark.parametrize(
    ("paid", "times"), [([1.6] * COMPARED, 2.0), ([1.6, 0.0] * (COMPARED // 2), 1.0), ([2.4] * (COMPARED // 2), 3.0)]
)
def test_bounds_are_divided_by_how_many_times_dearer_than_foretold_the_last_policies_were(paid, times):
    """Over the last sixteen episodes; of those that are missing nothing is known. Within 1e-5."""
    chosen = in_doubt()
    solution, state = chosen.solve(PROBLEM, chosen.init(jax.random.key(0)), jax.random.key(1))
    assert solution.metrics["bound"] == 2.0
    np.testing.assert_allclose(state.foretold, [FORETOLD], rtol=1e-5)
    for cost in paid:
        after = chosen.observed(state, episode(cost, 0.0))
        check_form("the state", state, after)
        state = state._replace(compared=after.compared)
    bounds = chosen._anchored(PROBLEM, state, jax.random.key(2)).bounds
    np.testing.assert_allclose(bounds, [2.0 / times], rtol=1e-5)


@pytest.mark.parametrize("change", [{"cleared": False}, {"origin": RESTING}])
def test_policies_that_the_gate_never_passed_say_nothing_of_its_forecasts(change):
    chosen = in_doubt()
    _, state = chosen.solve(PROBLEM, chosen.init(jax.random.key(0)), jax.random.key(1))
    state = state._replace(**{name: jnp.asarray(value) for name, value in change.items()})
    assert same(chosen.observed(state, episode(1.9, 0.0)).compared, state.compared)


def test_without_pieces_and_radius_nothing_of_this_happens():
    """Problems are what they were, training goes on from where it came to, and nothing is remembered of it."""
    chosen = in_region(pieces=0, segment=0, radius=0.0)
    state = chosen.init(jax.random.key(0))
    assert chosen._placed(PROBLEM, state, jax.random.key(1)) is PROBLEM
    assert chosen._anchored(PROBLEM, state, jax.random.key(1)) is PROBLEM
    _, solved_state = chosen.solve(PROBLEM, state, jax.random.key(1))
    assert not equal(solved_state.network, state.network)
    for cost in (COST, 1.9):
        after = chosen.observed(solved_state, episode(cost, 0.0))
        assert equal(after.network, solved_state.network)
        assert same((after.visited, after.region), (solved_state.visited, solved_state.region))
