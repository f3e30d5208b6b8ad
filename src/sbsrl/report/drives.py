"""A policy driven on every sample and in truth, from the same initial states; and where samples expect costs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT, PLAN
from ..belief.protocol import Forgetful, Rows, SideBySide, Steps
from ..policy import Observant, Policy
from ..task import Equations
from ..tasks.race_car import COMMAND, FRAMES, MASS, NEWEST, SIZE
from ..types import PRNGKey

__all__ = ["Drives", "believed_charge", "drive_samples", "drive_truth"]


class Drives(NamedTuple):
    """Episodes of the race car on each of n models, every sample or the truth alone, from k initial states each."""

    states: Float[np.ndarray, "n k T1 dx"]
    rewards: Float[np.ndarray, "n k T"]
    costs: Float[np.ndarray, "n k T"]

    @property
    def positions(self) -> Float[np.ndarray, "n k T1 2"]:
        """Where the car is, in metres."""
        return self.states[..., NEWEST][..., :2]

    @property
    def headings(self) -> Float[np.ndarray, "n k T1"]:
        """Where it points, in radians."""
        sine, cosine = (self.states[..., NEWEST.start + i] for i in (2, 3))
        return np.arctan2(sine, cosine)

    @property
    def spent(self) -> Float[np.ndarray, "n k T1"]:
        """The cost so far."""
        return np.concatenate([np.zeros_like(self.costs[..., :1]), np.cumsum(self.costs, axis=-1)], axis=-1)

    @property
    def totals(self) -> Float[np.ndarray, "n k"]:
        """The cost of each episode."""
        return self.costs.sum(axis=-1)

    @property
    def returns(self) -> Float[np.ndarray, "n k"]:
        """The return of each episode."""
        return self.rewards.sum(axis=-1)

    @property
    def dearest(self) -> int:
        """The model with the largest mean cost over the initial states, which is what the budget bounds."""
        return int(np.argmax(self.totals.mean(axis=1)))


class _Truth(Forgetful, eqx.Module):
    """The true equations as models side by side, one for each row."""

    equations: Equations = eqx.field(static=True)
    keys: Any

    def noises(self, key: PRNGKey, steps: int, training: bool) -> Float[Array, "T n 0"]:
        """None: what the equations draw follows from the keys."""
        return jnp.zeros((steps, len(self.keys), 0), EXACT)

    def steps(
        self, x: Float[Array, "n dx"], a: Float[Array, "n da"], noise: Float[Array, "n 0"]
    ) -> tuple[Steps, Float[Array, " n"]]:
        """A step of every row; nothing is uncertain."""
        y = jax.vmap(self.equations.step)(x, a, self.keys)
        reward, costs = (jax.vmap(signal)(x, a, y) for signal in self.equations.signals)
        return Steps(y, reward, costs), jnp.zeros(len(x), EXACT)


def drive_truth(
    equations: Equations, policy: Policy, starts: Float[np.ndarray, "k dx"], horizon: int, key: PRNGKey
) -> Drives:
    """An episode of the true equations from each of these states. They must be free of noise, as the car's are."""
    return _drive(_Truth(equations, jax.random.split(key, len(starts))), policy, starts, horizon, EXACT, key)


def drive_samples(
    samples: SideBySide, policy: Policy, starts: Float[np.ndarray, "k dx"], horizon: int, key: PRNGKey
) -> Drives:
    """An episode on every sample from each of these states, as forecasts are made."""
    everywhere = np.tile(starts, (len(samples), 1))
    return _drive(samples.beside(len(starts), 0), policy, everywhere, horizon, PLAN, key, len(samples))


def _drive(
    rows: Rows,
    policy: Policy,
    starts: Float[np.ndarray, "r dx"],
    horizon: int,
    precision: Any,
    key: PRNGKey,
    models: int = 1,
) -> Drives:
    """An episode of every row, whose starts are sorted by model. Every row has a policy with a memory of its own."""
    step, noises = eqx.filter_jit(rows.advanced), rows.noises(key, horizon, training=False)
    x, memories = jnp.asarray(starts, precision), _joined([policy.init()] * len(starts))
    own = rows.begun(len(starts))
    states, rewards, costs = [np.asarray(x)], [], []
    for noise, now in zip(noises, jax.random.split(key, horizon), strict=True):
        actions, memories = _act(policy, x.astype(EXACT), memories, now)
        moved, _, own = step(x, actions.astype(precision), noise, own)
        memories = _observe(policy, memories, moved)
        x = moved.states
        states.append(np.asarray(x))
        rewards.append(np.asarray(moved.rewards))
        costs.append(np.asarray(moved.costs[:, 0]))
    parts = (np.stack(part, axis=1).astype(float) for part in (states, rewards, costs))
    return Drives(*(part.reshape(models, -1, *part.shape[1:]) for part in parts))


@eqx.filter_jit
def _act(policy: Policy, x: Float[Array, "r dx"], memories: Any, key: PRNGKey) -> tuple[Float[Array, "r da"], Any]:
    """The action of every row, and what its policy remembers."""
    return jax.vmap(lambda x, memory: policy.act(x, memory, key)[:2])(x, memories)


def _observe(policy: Policy, memories: Any, moved: Steps) -> Any:
    """What the policies remember after each was told what its step earned and cost, if they want to know."""
    if not isinstance(policy, Observant):
        return memories
    told = zip(np.asarray(moved.rewards, float), np.asarray(moved.costs, float), strict=True)
    parts = (jax.tree.map(lambda leaf, i=i: leaf[i], memories) for i in range(len(moved.rewards)))
    return _joined(
        [policy.observe(part, float(reward), costs) for part, (reward, costs) in zip(parts, told, strict=True)]
    )


def _joined(memories: Sequence[Any]) -> Any:
    """One tree, whose leaves have a row for each of these."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *memories)


SPEED = 1.0
"""m/s at which samples are asked what a place costs: what they charge is a share of the energy, at any speed."""


def believed_charge(samples: SideBySide, places: Float[np.ndarray, "p 2"]) -> Float[np.ndarray, "n p"]:
    """Which share of its kinetic energy each sample charges a car at these places, in a step."""
    n, p = len(samples), len(places)
    rows, x = samples.beside(p, 0), jnp.asarray(np.tile(_passing(places), (n, 1)), PLAN)
    noise = rows.noises(jax.random.key(0), 1, training=False)[0]
    moved, *_ = eqx.filter_jit(rows.advanced)(x, jnp.zeros((n * p, COMMAND), PLAN), noise, rows.begun(n * p))
    return np.asarray(moved.costs[:, 0], float).reshape(n, p) / (0.5 * MASS * SPEED**2)


def _passing(places: Float[np.ndarray, "p 2"]) -> Float[np.ndarray, "p dx"]:
    """Windows of cars that pass these places, straight to the left."""
    none = np.zeros(len(places))
    frame = np.stack([*places.T, none, none - 1, none - SPEED, none, none], axis=1)
    commands = np.zeros((len(places), SIZE - NEWEST.stop))
    return np.concatenate([np.tile(frame, (1, FRAMES)), commands], axis=1)
