"""Policies, with their state passed in and out; and the same for a user, who passes observations only."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._jax import EXACT
from .errors import UserError
from .types import Action, PRNGKey, State

__all__ = ["Controller", "Memoryless", "Metrics", "Observant", "Policy", "told"]

Metrics = Mapping[str, Any]
"""What a policy can say of a decision: scalars by name. The ledger has their mean over the episode."""


@runtime_checkable
class Policy(Protocol):
    """pi. It needs nothing but itself: not the problem it solves, nor the solver that found it."""

    def init(self) -> Any:
        """Its state at the beginning of an episode."""
        ...

    def act(self, x: State, state: Any, key: PRNGKey) -> tuple[Action, Any, Metrics]:
        """The action at x, the state for the next step, and what can be said of the decision."""
        ...


@runtime_checkable
class Observant(Policy, Protocol):
    """A policy that wants to know what its actions really earned and cost, as filters with a budget do."""

    def observe(self, state: Any, reward: float, costs: Float[np.ndarray, " k"]) -> Any:
        """The state for the next step, after what the step of the last action earned and cost."""
        ...


@runtime_checkable
class Memoryless(Policy, Protocol):
    """A policy that is a function of the state alone, which can stand without this program."""

    def actions(self, x: Float[Array, "n dx"]) -> Float[Array, "n da"]:
        """The actions at these states, in single precision."""
        ...


def told(policy: Policy, state: Any, reward: Any, costs: Any) -> Any:
    """The policy's state after it was told of a step, if it wants to know."""
    return policy.observe(state, reward, costs) if isinstance(policy, Observant) else state


class Controller:
    """A policy that is called with an observation and returns an action. It remembers the state of its episode."""

    def __init__(self, policy: Policy, seed: int = 0, unobserved: int = 0) -> None:
        """`unobserved` numbers at the end of a state, on which nothing depends, are not part of an observation."""
        self.policy = policy
        self._seed, self._unobserved = seed, unobserved
        self.metrics: Metrics = {}
        """What the policy said of its last decision."""
        self.reset()

    def reset(self) -> None:
        """Begins an episode. Every episode of a controller has the same randomness."""
        self._key = jax.random.key(self._seed)
        self._state = self.policy.init()
        self._untold = False

    def observe(self, reward: float, costs: Any) -> None:
        """Tells the policy what its last action earned and cost; most do not need to know."""
        self._state = told(self.policy, self._state, float(reward), np.atleast_1d(np.asarray(costs, float)))
        self._untold = False

    def __call__(self, observation: Any) -> Float[np.ndarray, " da"]:
        """The action at an observation. A policy that spends a budget over the episode must know what steps cost."""
        if self._untold and getattr(self.policy, "spends", False):
            raise UserError(
                "this policy spends a budget over the episode, and was not told what its last step cost: call "
                "observe(reward, costs) after every step, and reset() at the beginning of an episode."
            )
        self._untold = True
        self._key, key = jax.random.split(self._key)
        x = jnp.asarray(np.pad(np.asarray(observation, float), (0, self._unobserved)), EXACT)
        action, self._state, self.metrics = self.policy.act(x, self._state, key)
        return np.array(action, float)
