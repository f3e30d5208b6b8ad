"""The trust region: what lies within, how it moves and changes its size, and what it says of costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_problems import units

from sbsrl.leaves import check_form
from sbsrl.networks import equal, init_network
from sbsrl.recorded_costs import mean_costs
from sbsrl.solve.network.region import (
    LARGEST,
    SMALLEST,
    Region,
    after_another,
    difference,
    moved,
    shortfall,
    shrunk,
    within,
)
from sbsrl.transitions import Transitions

UNITS = units(dx=2, low=-3.0, high=1.0)
STATES = np.random.default_rng(0).normal(size=(300, 2))


def network(seed, last=1.0):
    return init_network(jax.random.key(seed), (2, 16, 1), last=last)


def region(radius, costs=(3.0, 1.0)):
    return Region(network(0), jnp.float32(radius), jnp.array(costs, jnp.float32), jnp.float32(1))


def apart(one, other=None):
    return float(difference(one, network(0) if other is None else other, UNITS, jnp.asarray(STATES, jnp.float32)))


def test_the_difference_is_the_root_mean_square_in_halves_of_the_range():
    """One always acts 0.5 higher than the other, and half the range is 2; 1e-6."""
    zero = jax.tree.map(jnp.zeros_like, network(0))
    higher = (*zero[:-1], zero[-1]._replace(bias=jnp.arctanh(jnp.full(1, 0.25, jnp.float32))))
    assert apart(higher, zero) == pytest.approx(0.25, abs=1e-6)


def test_what_lies_within_is_left_as_it_is():
    """But for rounding, since it is the reference and the whole way: 1e-6."""
    other = network(1)
    found = within(other, region(1.01 * apart(other)), UNITS, jnp.asarray(STATES))
    for one, wanted in zip(jax.tree.leaves(found), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(one, wanted, atol=1e-6)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
def test_what_lies_outside_is_drawn_to_the_boundary(share):
    """On the straight way to the reference, never beyond the radius, and within 1 % of it after 12 halvings."""
    other = network(1)
    radius = share * apart(other)
    found = within(other, region(radius), UNITS, jnp.asarray(STATES))
    assert 0.99 * radius - 1e-3 * apart(other) <= apart(found) <= radius * (1 + 1e-5)
    ways = [
        (np.asarray(here - old), np.asarray(new - old))
        for here, old, new in zip(*(jax.tree.leaves(each) for each in (found, network(0), other)), strict=True)
    ]
    shares = [np.sum(way * whole) / np.sum(whole**2) for way, whole in ways if np.any(whole)]
    np.testing.assert_allclose(shares, shares[0], rtol=1e-3)


def test_without_room_nothing_but_the_reference_is_left():
    assert equal(within(network(1), region(0.0), UNITS, jnp.asarray(STATES)), network(0))


def test_it_moves_to_a_policy_that_proved_itself_and_grows():
    before = region(0.1)
    after = moved(before, network(1), np.array([2.0, 5.0], np.float32))
    check_form("the region", before, after)
    assert equal(after.reference, network(1))
    assert float(after.radius) == pytest.approx(0.125)
    np.testing.assert_array_equal(after.costs, [2, 5])
    assert float(after.episodes) == 1


def test_it_stays_and_shrinks_after_one_that_did_not():
    before = region(0.1)
    after = shrunk(before, 0.1)
    check_form("the region", before, after)
    assert equal(after.reference, before.reference)
    assert float(after.radius) == pytest.approx(0.05)
    np.testing.assert_array_equal(after.costs, before.costs)


def test_its_radius_has_limits():
    wide = narrow = region(0.1)
    for _ in range(40):
        wide, narrow = moved(wide, network(1), np.zeros(2, np.float32)), shrunk(narrow, 0.1)
    assert float(wide.radius) == LARGEST
    assert float(narrow.radius) == pytest.approx(0.1 * SMALLEST)


def test_only_what_the_reference_costs_more_than_foretold_is_its_shortfall():
    np.testing.assert_allclose(shortfall(region(0.1, (3.0, 1.0)), jnp.array([2.0, 4.0], jnp.float32)), [1, 0])


def test_the_costs_of_the_reference_are_the_mean_over_its_episodes():
    found = moved(region(0.1), network(1), np.array([2.0, 8.0], np.float32))
    for costs in ([4.0, 2.0], [6.0, 2.0]):
        found = after_another(found, np.array(costs, np.float32))
    check_form("the region", region(0.1), found)
    np.testing.assert_allclose(found.costs, [4, 4])
    assert (float(found.episodes), float(found.radius)) == (3, pytest.approx(0.125))


def test_the_mean_costs_of_data_are_those_of_their_episodes_and_not_of_their_steps():
    """Episodes of 2 and of 3 steps; the second cost is that of the worst step."""
    places = np.array([0.0, 1, 5, 6, 7])[:, None]
    costs = np.array([[1.0, 4], [2, 0], [1, 1], [1, 2], [7, 1]])
    data = Transitions(places, 0 * places, places + 1, np.zeros(5), costs, np.zeros(5, bool))
    assert mean_costs(("sum", "statewise"), data) == [(3 + 9) / 2, (4 + 2) / 2]
