"""Data whose episodes cost more than the budget on average are named."""

import numpy as np
import pytest

from sbsrl.costs import Cost, total
from sbsrl.recorded_costs import beyond_budget
from sbsrl.transitions import Transitions


def data(*episodes):
    """Episodes with these costs per step, of two costs each."""
    parts = []
    for number, charged in enumerate(episodes):
        costs = np.array(charged, float)
        states = 100 * number + np.arange(len(costs) + 1.0)[:, None]
        rows = len(costs)
        parts.append(
            Transitions(states[:-1], np.zeros((rows, 1)), states[1:], np.zeros(rows), costs, np.zeros(rows, bool))
        )
    return Transitions(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


COSTS = (Cost("effort", 3.0), Cost("speed", 2.0, "statewise"))


def test_means_are_over_episodes_of_aggregated_costs():
    """Effort 2 and 6, 4 on average; speeds of at most 1 and 2, 1.5 on average."""
    recorded = data([[1, 1], [1, 0]], [[2, 2], [2, 0], [2, 1]])
    ((cost, mean),) = beyond_budget(COSTS, recorded)
    assert (cost.name, mean) == ("effort", 4.0)


def test_data_within_the_budget_are_not():
    assert beyond_budget(COSTS, data([[1, 1], [1, 0]])) == []


@pytest.mark.parametrize(("how", "wanted"), [("sum", 6.0), ("statewise", 3.0)])
def test_a_total_is_formed_as_the_task_says(how, wanted):
    assert total(np.array([1.0, 3.0, 2.0]), how) == wanted
    assert total(np.zeros(0), how) == 0
