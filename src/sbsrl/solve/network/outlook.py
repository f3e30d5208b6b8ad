"""Where and for how long models are followed to see what a policy earns and costs.

Either for whole episodes from rho_0, as J_r and J_c are defined; or, where models are not to be trusted for that long,
for pieces of H steps from states that the true system came to, lately under policies that are nearly the same. Sums
over a piece are then taken T / H times: with H = T and starts from rho_0 both are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._jax import PLAN
from ...problem import Problem
from ...starts import draw_starts
from ...types import PRNGKey, State
from .choices import NetworkChoices
from .domain import Domain

__all__ = ["Outlook", "Visited", "added_to", "nothing_visited", "outlook_of", "placed"]


@dataclass(frozen=True, eq=False)
class Outlook:
    """Whole episodes from rho_0, or pieces of them from states that were visited."""

    start: Callable[[PRNGKey], State]
    """Draws an initial state."""
    horizon: int
    """T."""
    pieces: int
    """H; 0: whole episodes."""

    @property
    def steps(self) -> int:
        """For how long a model is followed."""
        return self.pieces or self.horizon

    @property
    def times(self) -> float:
        """How often that is in an episode."""
        return self.horizon / self.steps

    def starts(self, problem: Problem, count: int, key: PRNGKey) -> Float[Array, "n dx"]:
        """Where so many rows begin: draws from rho_0, or of the states that the problem was given (`placed`)."""
        if not self.pieces:
            return draw_starts(self.start, count, key).astype(PLAN)
        return problem.starts[jax.random.randint(key, (count,), 0, len(problem.starts))].astype(PLAN)


def outlook_of(domain: Domain, choices: NetworkChoices) -> Outlook:
    """As it was chosen for a task."""
    return Outlook(domain.start, domain.horizon, min(choices.pieces, domain.horizon))


EPISODES, PER_EPISODE = 8, 256
"""How many of the last episodes are remembered, and by how many states each."""
POOL = 1024
"""States that a problem is given."""


class Visited(NamedTuple):
    """States of the last episodes on the true system, those of the newest first."""

    states: Float[Array, "E P dx"]
    episodes: Int[Array, ""]
    """How many there were so far; places beyond are empty."""


def nothing_visited(size: int, pieces: int) -> Visited:
    """Before the first episode. Without pieces nobody asks, and nothing is remembered."""
    kept = (EPISODES, PER_EPISODE) if pieces else (1, 1)
    return Visited(jnp.zeros((*kept, size), PLAN), jnp.zeros((), jnp.int32))


def added_to(visited: Visited, states: Float[np.ndarray, "T dx"]) -> Visited:
    """With states of an episode, evenly spaced, in the place of the oldest one's."""
    before = np.asarray(visited.states)
    if not len(states):
        return visited
    chosen = states[np.linspace(0, len(states) - 1, before.shape[1]).round().astype(int)].astype(np.float32)
    after = np.concatenate([chosen[None], before[:-1]])
    return Visited(jnp.asarray(after), visited.episodes + 1)


def placed(
    problem: Problem, visited: Visited, recorded: Float[np.ndarray, "N dx"], recent: float, key: PRNGKey
) -> Problem:
    """The problem with a pool of visited states as its starts.

    The share `recent` of them is from the last episodes, once there are any, and the rest from the offline data.
    """
    keys = jax.random.split(key)
    old = np.asarray(jax.random.randint(keys[0], (POOL,), 0, len(recorded)))
    pool = recorded[old].astype(np.float32)
    episodes = min(int(visited.episodes), len(visited.states))
    if episodes:
        known = np.asarray(visited.states)[:episodes].reshape(-1, pool.shape[1])
        new = known[np.asarray(jax.random.randint(keys[1], (POOL,), 0, len(known)))]
        count = round(recent * POOL)
        pool = np.concatenate([new[:count], pool[count:]])
    return eqx.tree_at(lambda tree: tree.starts, problem, jnp.asarray(pool))
