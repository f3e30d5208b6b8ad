"""What recorded episodes cost."""

from collections.abc import Sequence

import numpy as np

from .costs import Aggregation, Cost, total
from .transitions import Transitions, split_episodes

__all__ = ["beyond_budget", "mean_costs"]


def mean_costs(aggregations: Sequence[Aggregation], data: Transitions) -> list[float]:
    """What an episode of these data costs on average, of each cost."""
    played = split_episodes(data)
    return [float(np.mean([total(each.costs[:, i], how) for each in played])) for i, how in enumerate(aggregations)]


def beyond_budget(costs: Sequence[Cost], data: Transitions) -> list[tuple[Cost, float]]:
    """Those costs of which an episode of these data has more than the budget on average, and how much."""
    means = mean_costs([cost.aggregation for cost in costs], data)
    return [(cost, mean) for cost, mean in zip(costs, means, strict=True) if mean > cost.budget]
