"""A model of the system: how it moves, what it earns, what it costs. Known functions, or learned ones."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Float

from .types import Action, Dynamics, PRNGKey, Scalar, State, TransitionFunction

__all__ = ["CostFunction", "KnownModel", "KnownSignals", "Model", "Signals"]

CostFunction = Callable[[State, Action, State], Float[Array, " k"]]
"""The k costs of a transition (x_t, a_t, x_{t+1})."""


class Signals(NamedTuple):
    """Reward and costs of a transition as known functions."""

    reward: TransitionFunction
    costs: CostFunction


class KnownSignals(NamedTuple):
    """Which of reward and costs are known functions; what is None is learned."""

    reward: TransitionFunction | None = None
    costs: CostFunction | None = None


@runtime_checkable
class Model(Protocol):
    """One model: the nominal one, or a sample. It owns dynamics, reward and costs."""

    @property
    def stochastic(self) -> bool:
        """Whether `draw` is random. If not, the model is a function: `draw` is `__call__`."""
        ...

    def __call__(self, x: State, a: Action) -> State:
        """The next state, or its expectation."""
        ...

    def draw(self, x: State, a: Action, key: PRNGKey) -> State:
        """One draw of the next state."""
        ...

    def reward(self, x: State, a: Action, y: State) -> Scalar: ...

    def costs(self, x: State, a: Action, y: State) -> Float[Array, " k"]: ...


class KnownModel(eqx.Module):
    """A dynamics that is a function, with known reward and costs: equations, a simulator."""

    dynamics: Dynamics
    signals: Signals = eqx.field(static=True)

    @property
    def stochastic(self) -> bool:
        return False

    def __call__(self, x: State, a: Action) -> State:
        return self.dynamics(x, a)

    def draw(self, x: State, a: Action, key: PRNGKey) -> State:
        return self.dynamics(x, a)

    def reward(self, x: State, a: Action, y: State) -> Scalar:
        return self.signals.reward(x, a, y)

    def costs(self, x: State, a: Action, y: State) -> Float[Array, " k"]:
        return self.signals.costs(x, a, y)
