import jax.numpy as jnp
import numpy as np
import pytest

from sbsrl.task import Episode, aggregate, violation


def test_aggregation_sums_or_takes_the_worst_step():
    costs = jnp.array([1.0, 3.0, 2.0])
    assert aggregate(costs, "sum") == 6
    assert aggregate(costs, "statewise") == 3


@pytest.mark.parametrize(("cost", "expected"), [(5.0, 0.0), (6.0, 0.0), (6.5, 0.5)])
def test_violation_is_the_excess_over_the_budget(cost, expected):
    assert violation(cost, 6.0) == expected


def test_transitions_pair_each_state_with_its_successor():
    states = np.arange(8.0).reshape(4, 2)
    episode = Episode(states, np.zeros((3, 1)), np.zeros(3), np.zeros(3))
    before, _, after = episode.transitions
    assert np.array_equal(before, states[:3])
    assert np.array_equal(after, states[1:])
