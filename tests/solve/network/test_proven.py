"""What is come back to: the newest policy whose episodes really cost little on average."""

import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.leaves import check_form
from sbsrl.networks import Layer
from sbsrl.solve.network.proven import MOST, added, best, is_newest, newest, nothing_proven, played_again

LITTLE = np.array([10.0, 1.0], np.float32)


def policy(number):
    """A network of one layer, all of whose numbers are this one."""
    value = jnp.float32(number)
    return (Layer(jnp.full((2, 3), value), jnp.full(3, value)),)


def costs(*values):
    return np.array(values, np.float32)


def number_of(proven):
    return int(newest(proven)[0].bias[0])


@pytest.fixture
def none():
    return nothing_proven(policy(0), 2)


def test_at_first_there_is_none(none):
    assert not none.any
    assert not is_newest(none, policy(0))  # an empty place is no policy, even of the same numbers


def test_the_newest_is_come_back_to_and_all_keep_their_form(none):
    two = added(added(none, policy(1), costs(3, 0), 5.0), policy(2), costs(4, 0), 5.0)
    check_form("the memory", none, two)
    assert number_of(two) == 2
    assert is_newest(two, policy(2))
    assert not is_newest(two, policy(1))


def test_the_mean_of_its_episodes_decides_whether_it_stays(none):
    """6 and 13 are 9.5 on average, which is little; with another 13 they are 10.67, which is not."""
    one = added(added(none, policy(1), costs(3, 0), 5.0), policy(2), costs(6, 0), 5.0)
    two = played_again(one, costs(13, 0), 5.0, LITTLE)
    np.testing.assert_allclose(two.costs[0], [9.5, 0])
    assert (number_of(two), int(two.episodes[0])) == (2, 2)
    gone = played_again(two, costs(13, 0), 5.0, LITTLE)
    check_form("the memory", none, gone)
    assert number_of(gone) == 1
    np.testing.assert_allclose(gone.costs[0], [3, 0])


def test_every_cost_counts(none):
    one = added(none, policy(1), costs(3, 0.9), 5.0)
    assert not played_again(one, costs(3, 1.2), 5.0, LITTLE).any


def test_when_all_are_forgotten_there_is_none(none):
    assert not played_again(added(none, policy(1), costs(9, 0), 5.0), costs(12, 0), 5.0, LITTLE).any


def test_the_oldest_is_forgotten_if_there_are_too_many(none):
    many = none
    for i in range(1, MOST + 3):
        many = added(many, policy(i), costs(1, 0), 5.0)
    for expected in range(MOST + 2, 2, -1):
        assert number_of(many) == expected
        many = played_again(many, costs(1e6, 0), 5.0, LITTLE)
    assert not many.any


def test_the_best_is_the_one_that_really_earned_most_on_average(none):
    """4 and 8 are 6 on average, less than 7; an empty place has earned nothing, not 0."""
    two = added(added(none, policy(1), costs(1, 0), 7.0), policy(2), costs(1, 0), 4.0)
    assert best(two).earned == 7.0
    again = played_again(two, costs(1, 0), 8.0, LITTLE)
    np.testing.assert_allclose(again.returns[:2], [6.0, 7.0])
    assert int(best(again).network[0].bias[0]) == 1
    assert best(added(none, policy(1), costs(1, 0), -3.0)).earned == -3.0
