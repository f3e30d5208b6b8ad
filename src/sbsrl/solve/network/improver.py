"""What makes a network a better one between two checks, in one of several ways."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...networks import Network
from ...problem import Problem
from ...transitions import Episode
from ...types import PRNGKey, Scalar
from .choices import NetworkChoices
from .domain import Domain
from .forecast import Forecast, cost_units

__all__ = ["OPTIMISER", "Improver", "Listening", "Trained", "Weights", "information_unit", "signal_units", "weights_of"]

OPTIMISER = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.99))
"""Of policies."""


class Trained(NamedTuple):
    """What changes with every update."""

    network: Network
    moments: Any
    multipliers: Float[Array, "C k"]
    """Of the safety constraints."""
    curiosity: Scalar
    """The multiplier of the exploration constraint."""


class Weights(NamedTuple):
    """What the parts of the objective are worth."""

    kind: str
    """Of the penalty."""
    return_scale: float
    """The unit of J_r."""
    total: float
    """Of all safety constraints together, whether they are many or a single one on the mean."""
    curvature: float
    """c."""
    multiplier_rate: float
    multiplier_limit: float
    trust: float
    """An upper bound on J_s; 0 sets none."""
    trust_weight: float


def weights_of(choices: NetworkChoices, return_scale: float) -> Weights:
    """As they were chosen."""
    return Weights(
        kind=choices.penalty,
        return_scale=return_scale,
        total=choices.safety_weight,
        curvature=choices.curvature,
        multiplier_rate=choices.multiplier_rate,
        multiplier_limit=choices.multiplier_limit,
        trust=choices.trust,
        trust_weight=choices.trust_weight,
    )


def information_unit(problem: Problem, weights: Weights) -> float:
    """Of J_s: what bounds it, from above or from below."""
    return weights.trust or float(problem.threshold) or 1.0


def signal_units(problem: Problem, domain: Domain, weights: Weights) -> Float[Array, " v"]:
    """The unit per step of reward, costs and uncertainty: of an episode it is that of the whole."""
    units = [weights.return_scale, *np.asarray(cost_units(problem), float), information_unit(problem, weights)]
    return jnp.asarray(np.array(units) / domain.horizon, PLAN)


@runtime_checkable
class Improver(Protocol):
    """Improves a network on the samples of a problem. What it remembers is passed in and out."""

    def init(self, key: PRNGKey) -> Any:
        """What it remembers at first: a tree of arrays, whose shapes do not change."""
        ...

    def improve(
        self, problem: Problem, trained: Trained, memory: Any, bounds: Float[Array, " k"], rate: Scalar, key: PRNGKey
    ) -> tuple[Trained, Any, Forecast]:
        """One round of updates with this learning rate, while costs are held to these bounds.

        Returns what was trained, what is remembered, and what was predicted for the policy meanwhile.
        """
        ...


@runtime_checkable
class Listening(Improver, Protocol):
    """One that wants to know where the true system has been."""

    def observed(self, memory: Any, episode: Episode) -> Any:
        """What it remembers after an episode on the true system."""
        ...
