"""What recorded episodes cost."""

from collections.abc import Sequence

import numpy as np

from .costs import Cost, total
from .transitions import Transitions, split_episodes

__all__ = ["beyond_budget"]


def beyond_budget(costs: Sequence[Cost], data: Transitions) -> list[tuple[Cost, float]]:
    """Those costs of which an episode of these data has more than the budget on average, and how much."""
    played = split_episodes(data)
    means = [float(np.mean([total(each.costs[:, i], c.aggregation) for each in played])) for i, c in enumerate(costs)]
    return [(cost, mean) for cost, mean in zip(costs, means, strict=True) if mean > cost.budget]
