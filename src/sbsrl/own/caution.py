"""First episodes, of which a prior is made: what is known to be safe, a little unrest on top, and an early end."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
from jaxtyping import Float

from ..costs import Cost
from ..policy import Metrics, Policy
from ..types import PRNGKey

__all__ = ["Cautious", "EarlyEnd", "seed_of", "strength", "used"]

FIRST, GROWTH, MOST = 0.1, 1.6, 0.5
"""Of the unrest, as shares of half the action range: in the first episode, its growth from one to the next, at most."""
HOLD = 3
"""Control steps for which it is held: shorter ones average out and go nowhere."""
CALM = 0.3
"""Share of a budget in use beyond which the unrest rests."""
CUT = 0.5
"""Share of a budget in use beyond which an episode without a controller to rely on is over."""


def strength(number: int) -> float:
    """Of the unrest in the first episode of that number, from 0, as a share of half the action range."""
    return min(MOST, FIRST * GROWTH**number)


def used(cost: Cost, seen: Sequence[float]) -> float:
    """The share of a budget that an episode with these costs of its steps has in use.

    Of a sum it is the sum's share. Where every step counts, a cost may be any quantity that must not grow too large,
    such as a temperature: its share is that of the way from the lowest value of the episode to the budget.
    """
    floor = 0.0 if cost.aggregation == "sum" else min(seen)
    now = sum(seen) if cost.aggregation == "sum" else seen[-1]
    if cost.budget > floor:
        return (now - floor) / (cost.budget - floor)
    return 0.0 if now <= cost.budget else np.inf


class EarlyEnd(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The system, but an episode is cut short when half of one of the budgets is in use."""

    def __init__(self, env: gymnasium.Env[Any, Any], costs: Sequence[Cost]) -> None:
        super().__init__(env)
        self._costs, self._seen = costs, [[] for _ in costs]  # type: Sequence[Cost], list[list[float]]

    def reset(self, **options: Any) -> Any:
        self._seen = [[] for _ in self._costs]
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        """Whatever is no step of Gymnasium with costs is passed on: whoever asked complains."""
        outcome: Any = self.env.step(action)
        if not isinstance(outcome, tuple) or len(outcome) != 5 or "cost" not in (outcome[4] or ()):
            return outcome
        *others, truncated, info = outcome
        for column, value in zip(self._seen, np.atleast_1d(info["cost"]), strict=False):
            column.append(float(value))
        beyond = any(seen and used(cost, seen) > CUT for cost, seen in zip(self._costs, self._seen, strict=True))
        return *others, bool(truncated) or beyond, info


class Watched(NamedTuple):
    """How far an episode is."""

    step: int
    seen: tuple[tuple[float, ...], ...]
    """What every step so far cost, for each cost."""
    inner: Any


class Cautious:
    """A controller, or one action, with unrest that rests while too much of a budget is in use."""

    def __init__(
        self,
        base: Policy | Float[np.ndarray, " da"],
        low: Sequence[float],
        high: Sequence[float],
        costs: Sequence[Cost],
        strength: float,
        seed: int,
    ) -> None:
        self._base, self._costs = base, costs
        self._low, self._high = np.array(low, float), np.array(high, float)
        self._strength, self._seed = strength, seed

    def init(self) -> Watched:
        inner = None if isinstance(self._base, np.ndarray) else self._base.init()
        return Watched(0, ((),) * len(self._costs), inner)

    def act(self, x: Any, state: Watched, key: PRNGKey) -> tuple[Any, Watched, Metrics]:
        """The unrest depends on the seed and the number of the step alone."""
        inner = state.inner
        if isinstance(self._base, np.ndarray):
            action = self._base.copy()
        else:
            given, inner, _ = self._base.act(x, inner, key)
            action = np.array(given, float)
        if not any(seen and used(cost, seen) > CALM for cost, seen in zip(self._costs, state.seen, strict=True)):
            rng = np.random.default_rng((self._seed, state.step // HOLD))
            action = action + self._strength * rng.uniform(-1, 1, action.shape) * (self._high - self._low) / 2
        after = state._replace(step=state.step + 1, inner=inner)
        return np.clip(action, self._low, self._high), after, {}

    def observe(self, state: Watched, reward: float, costs: Float[np.ndarray, " k"]) -> Watched:
        """Notes what a step cost."""
        seen = tuple((*before, float(cost)) for before, cost in zip(state.seen, costs, strict=True))
        return state._replace(seen=seen)


def seed_of(key: PRNGKey) -> int:
    """A number for the unrest of an episode, and for its reset."""
    return int(jax.random.bits(key)) & 0x7FFFFFFF
