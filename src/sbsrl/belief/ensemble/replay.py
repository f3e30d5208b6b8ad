"""The data of an ensemble: all episodes so far, and how much each counts for each member.

Every member has its own bootstrap of whole episodes: an episode counts Poisson(1) times. Transitions of one episode
are alike, so that a bootstrap of single transitions would make members that agree too much.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..._jax import PLAN
from ...transitions import Transitions, split_episodes
from ...types import Index, PRNGKey

__all__ = ["Batch", "Replay"]


class Batch(eqx.Module):
    """Transitions for each member."""

    states: Float[Array, "M b dx"]
    actions: Float[Array, "M b da"]
    changes: Float[Array, "M b p"]
    rewards: Float[Array, "M b"]
    costs: Float[Array, "M b k"]


class Replay(eqx.Module):
    """Episodes one after the other, in arrays with room for all that will come."""

    states: Float[Array, "N dx"]
    actions: Float[Array, "N da"]
    changes: Float[Array, "N p"]
    """Of the part of the state that is predicted."""
    rewards: Float[Array, " N"]
    costs: Float[Array, "N k"]
    rows: Index
    """How many transitions there are."""
    first: Int[Array, " E"]
    """Where each episode begins."""
    length: Int[Array, " E"]
    """How many transitions it has; 0 for those that are still to come."""
    counts: Int[Array, "M E"]
    """How often each episode is in the bootstrap of each member."""
    new: Bool[Array, " E"]
    """Whether the episode was played in this run, and not before."""
    episodes: Index
    costly: Int[Array, " N"]
    """The rows that cost something, then anything."""
    costly_rows: Index

    @classmethod
    def create(cls, rows: int, episodes: int, sizes: tuple[int, int, int, int], members: int) -> "Replay":
        """With room for so many transitions and episodes; `sizes` are those of state, action, part and costs."""
        dx, da, p, k = sizes
        none = jnp.zeros((), jnp.int32)
        return cls(
            states=jnp.zeros((rows, dx), PLAN),
            actions=jnp.zeros((rows, da), PLAN),
            changes=jnp.zeros((rows, p), PLAN),
            rewards=jnp.zeros(rows, PLAN),
            costs=jnp.zeros((rows, k), PLAN),
            rows=none,
            first=jnp.zeros(episodes, jnp.int32),
            length=jnp.zeros(episodes, jnp.int32),
            counts=jnp.zeros((members, episodes), jnp.int32),
            new=jnp.zeros(episodes, bool),
            episodes=none,
            costly=jnp.zeros(rows, jnp.int32),
            costly_rows=none,
        )

    def add(self, data: Transitions, part: tuple[int, ...], new: bool, key: PRNGKey) -> "Replay":
        """With these episodes as well, each counted Poisson(1) times for each member, and at least once for one."""
        replay = self
        for i, episode in enumerate(split_episodes(data)):
            replay = replay._add_one(episode, np.array(part), new, jax.random.fold_in(key, i))
        return replay

    def _add_one(self, data: Transitions, part: Int[np.ndarray, " p"], new: bool, key: PRNGKey) -> "Replay":
        start, steps, number = int(self.rows), len(data.actions), int(self.episodes)
        place = slice(start, start + steps)
        costly = np.flatnonzero(np.any(data.costs > 0, axis=1)) + start
        before = int(self.costly_rows)
        count = _bootstrap(key, self.counts.shape[0])
        return Replay(
            states=_write(self.states, place, data.states),
            actions=_write(self.actions, place, data.actions),
            changes=_write(self.changes, place, (data.next_states - data.states)[:, part]),
            rewards=_write(self.rewards, place, data.rewards),
            costs=_write(self.costs, place, data.costs),
            rows=jnp.asarray(start + steps, jnp.int32),
            first=_write(self.first, number, start),
            length=_write(self.length, number, steps),
            counts=_write(self.counts, (slice(None), number), count),
            new=_write(self.new, number, new),
            episodes=jnp.asarray(number + 1, jnp.int32),
            costly=_write(self.costly, slice(before, before + len(costly)), costly),
            costly_rows=jnp.asarray(before + len(costly), jnp.int32),
        )

    def shares(self, new_share: float, without: Bool[Array, " E"]) -> Float[Array, "M E"]:
        """With which probability a transition of a member's batch comes from each episode, some left out.

        In proportion to length and count; all episodes of this run together have `new_share`, once there are any. A
        member whose bootstrap is empty has every episode once.
        """
        mass = jnp.where(without[None], 0, self.counts * self.length[None]).astype(PLAN)
        every = jnp.where(without, 0, self.length).astype(PLAN)
        mass = jnp.where(jnp.sum(mass, axis=1, keepdims=True) > 0, mass, every[None])
        groups = [jnp.where(self.new[None] == kind, mass, 0) for kind in (False, True)]
        old, new = (jnp.sum(group, axis=1, keepdims=True) for group in groups)
        share = jnp.where(new == 0, 0.0, jnp.where(old == 0, 1.0, new_share))
        parts = [(1 - share) * groups[0] / jnp.maximum(old, 1), share * groups[1] / jnp.maximum(new, 1)]
        return parts[0] + parts[1]

    def batch(self, shares: Float[Array, "M E"], size: int, costly: int, key: PRNGKey) -> Batch:
        """A batch for each member, of which so many rows are ones that cost something, if there are any for it."""
        M = shares.shape[0]
        which, where, rare = jax.random.split(key, 3)
        edges = jnp.cumsum(shares, axis=1)
        points = jax.random.uniform(which, (M, size), PLAN) * edges[:, -1:] * np.float32(1 - 1e-6)
        episode = jax.vmap(lambda edge, point: jnp.searchsorted(edge, point, side="right"))(edges, points)
        offset = jax.random.uniform(where, (M, size), PLAN) * self.length[episode].astype(PLAN)
        rows = self.first[episode] + jnp.minimum(offset.astype(jnp.int32), self.length[episode] - 1)
        if costly:
            rows = rows.at[:, :costly].set(self._costly(shares, rows[:, :costly], rare))
        return self.take(rows)

    def _costly(self, shares: Float[Array, "M E"], others: Int[Array, "M c"], key: PRNGKey) -> Int[Array, "M c"]:
        """Rows that cost something and that the member has; in the place of one that it has not, the other row."""
        drawn = jax.random.randint(key, others.shape, 0, jnp.maximum(self.costly_rows, 1))
        rows = self.costly[drawn]
        begun = jnp.where(self.length > 0, self.first, jnp.iinfo(jnp.int32).max)
        episode = jnp.searchsorted(begun, rows, side="right") - 1
        has = (jnp.take_along_axis(shares, episode, axis=1) > 0) & (self.costly_rows > 0)
        return jnp.where(has, rows, others)

    def take(self, rows: Int[Array, "M b"]) -> Batch:
        """These rows."""
        parts = (self.states, self.actions, self.changes, self.rewards, self.costs)
        return Batch(*(part[rows] for part in parts))


def _bootstrap(key: PRNGKey, members: int) -> Int[Array, " M"]:
    counts = jax.random.poisson(key, 1.0, (members,), jnp.int32)
    lucky = jax.random.randint(key, (), 0, members)
    return jnp.where(jnp.sum(counts) > 0, counts, jnp.zeros_like(counts).at[lucky].set(1))


def _write(array: Array, place: Any, values: Any) -> Array:
    """A copy with these values at that place. It is made outside of JAX: episodes differ in length."""
    copy = np.array(array)
    copy[place] = values
    return jnp.asarray(copy)
