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
        """Where so many rows begin in training: draws from rho_0, or of states that were visited (`placed`)."""
        return self._drawn(problem.starts[: len(problem.starts) // 2], count, key)

    def unseen(self, problem: Problem, count: int, key: PRNGKey) -> Float[Array, "n dx"]:
        """Where so many rows begin in a check: other draws, or states of episodes that training begins none at."""
        return self._drawn(problem.starts[len(problem.starts) // 2 :], count, key)

    def _drawn(self, pool: Float[Array, "pool dx"], count: int, key: PRNGKey) -> Float[Array, "n dx"]:
        if not self.pieces:
            return draw_starts(self.start, count, key).astype(PLAN)
        return pool[jax.random.randint(key, (count,), 0, len(pool))].astype(PLAN)


def outlook_of(domain: Domain, choices: NetworkChoices) -> Outlook:
    """As it was chosen for a task."""
    return Outlook(domain.start, domain.horizon, min(choices.pieces, domain.horizon))


EPISODES, PER_EPISODE = 12, 256
"""How many of the last episodes are remembered, and by how many states each."""
POOL = 1024
"""States that a problem is given for training, and as many for checks."""
APART = 3
"""Of so many episodes one is for checks alone: the first, and of data the last part."""


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
    """The problem with visited states as its starts: a pool for training, then one for checks.

    The share `recent` of each is from the last episodes, once there are any for it, and the rest from the offline data.
    No episode is in both, but the one of the data that the boundary between their parts goes through.
    """
    count = min(int(visited.episodes), len(visited.states))
    episodes = np.asarray(visited.states)[:count]
    numbers = int(visited.episodes) - 1 - np.arange(count)
    apart, end = numbers % APART == 0, len(recorded) - len(recorded) // APART
    parts = ((recorded[:end], episodes[~apart]), (recorded[end:] if end < len(recorded) else recorded, episodes[apart]))
    pools = [_pool(*part, recent, each) for part, each in zip(parts, jax.random.split(key), strict=True)]
    return eqx.tree_at(lambda tree: tree.starts, problem, jnp.asarray(np.concatenate(pools)))


def _pool(
    recorded: Float[np.ndarray, "N dx"], episodes: Float[np.ndarray, "E P dx"], recent: float, key: PRNGKey
) -> Float[np.ndarray, "K dx"]:
    keys = jax.random.split(key)
    pool = recorded[np.asarray(jax.random.randint(keys[0], (POOL,), 0, len(recorded)))].astype(np.float32)
    if not len(episodes):
        return pool
    known = episodes.reshape(-1, pool.shape[1])
    count = round(recent * POOL)
    pool[:count] = known[np.asarray(jax.random.randint(keys[1], (count,), 0, len(known)))]
    return pool
