"""First episodes, of which a prior is made: what is known to be safe, a little unrest on top, and an early end."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import jax
import numpy as np
from jaxtyping import Float

from ..costs import Cost
from ..policy import Metrics, Policy
from ..types import PRNGKey

__all__ = ["CUT", "Cautious", "EarlyEnd", "Share", "seed_of", "strength"]

FIRST, GROWTH, LEAST, MOST = 0.1, 1.6, 0.05, 0.5
"""Of the unrest, as shares of half the action range: in the first episode, its growth, at least and at most."""
HOLD = 3
"""Control steps for which it is held: shorter ones average out and go nowhere."""
CALM = 0.3
"""Share of a budget in use beyond which the unrest rests."""
CUT = 0.5
"""Share of a budget in use beyond which an episode without a controller to rely on is over; with one it is all."""


def strength(quiet: Sequence[bool]) -> float:
    """Of the unrest after episodes that were quiet or not: it grows after a quiet one, and is halved after another."""
    found = FIRST
    for each in quiet:
        found = min(MOST, found * GROWTH) if each else max(LEAST, found / 2)
    return found


class Share:
    """The share of each budget that an episode has in use.

    Of a sum it is the sum's share. Where every step counts, a cost may be any quantity that must not grow too large,
    such as a temperature: its share is that of the way from the lowest value so far, in all episodes, to the budget.
    """

    def __init__(self, costs: Sequence[Cost], floors: Sequence[float]) -> None:
        """`floors` are the lowest costs of steps in earlier episodes, infinite where there were none."""
        self._costs, self._floors = costs, list(floors)
        self._sums = [0.0] * len(costs)

    def add(self, charged: Sequence[float]) -> float:
        """The largest share after a step that cost this."""
        found = []
        for i, (cost, value) in enumerate(zip(self._costs, charged, strict=True)):
            self._sums[i] += value
            self._floors[i] = min(self._floors[i], value)
            sums = cost.aggregation == "sum"
            found.append(_share(self._sums[i] if sums else value, 0.0 if sums else self._floors[i], cost.budget))
        return max(found)


def _share(now: float, floor: float, budget: float) -> float:
    if budget > floor:
        return (now - floor) / (budget - floor)
    return 0.0 if now <= budget else np.inf


class EarlyEnd(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The system, but an episode is cut short when too much of one of the budgets is in use."""

    def __init__(
        self, env: gymnasium.Env[Any, Any], costs: Sequence[Cost], floors: Sequence[float], most: float = CUT
    ) -> None:
        super().__init__(env)
        self._begin = lambda: Share(costs, floors)
        self._share, self._count, self._most = self._begin(), len(costs), most
        self.cut = False
        """Whether the last episode was."""

    def reset(self, **options: Any) -> Any:
        self._share, self.cut = self._begin(), False
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        """Whatever is no step of Gymnasium with costs is passed on: whoever asked complains."""
        outcome: Any = self.env.step(action)
        if not isinstance(outcome, tuple) or len(outcome) != 5 or "cost" not in (outcome[4] or ()):
            return outcome
        *others, truncated, info = outcome
        charged = [float(value) for value in np.atleast_1d(info["cost"])]
        self.cut = len(charged) == self._count and self._share.add(charged) > self._most
        return *others, bool(truncated) or self.cut, info


class Cautious:
    """A controller, or one action, with unrest that rests while too much of a budget is in use.

    Its state is the number of the step, what the controller remembers, and whether the unrest rests.
    """

    def __init__(
        self,
        base: Policy | Float[np.ndarray, " da"],
        low: Sequence[float],
        high: Sequence[float],
        share: Share,
        unrest: float,
        seed: int,
    ) -> None:
        """For one episode, of which `share` keeps account."""
        self._base, self._share = base, share
        self._low, self._high = np.array(low, float), np.array(high, float)
        self._unrest, self._seed = unrest, seed

    def init(self) -> tuple[int, Any, bool]:
        return 0, None if isinstance(self._base, np.ndarray) else self._base.init(), False

    def act(self, x: Any, state: tuple[int, Any, bool], key: PRNGKey) -> tuple[Any, tuple[int, Any, bool], Metrics]:
        """The unrest depends on the seed and the number of the step alone."""
        step, inner, rests = state
        if isinstance(self._base, np.ndarray):
            action = self._base.copy()
        else:
            given, inner, _ = self._base.act(x, inner, key)
            action = np.array(given, float)
        if not rests:
            rng = np.random.default_rng((self._seed, step // HOLD))
            action = action + self._unrest * rng.uniform(-1, 1, action.shape) * (self._high - self._low) / 2
        return np.clip(action, self._low, self._high), (step + 1, inner, rests), {}

    def observe(
        self, state: tuple[int, Any, bool], reward: float, costs: Float[np.ndarray, " k"]
    ) -> tuple[int, Any, bool]:
        """Notes what a step cost."""
        return (*state[:2], self._share.add([float(cost) for cost in costs]) > CALM)


def seed_of(key: PRNGKey) -> int:
    """A number for the unrest of an episode, and for its reset."""
    return int(jax.random.bits(key)) & 0x7FFFFFFF
