"""A simulator that JAX cannot trace, as a function that it can: fitted to the simulator's answers.

    y ~ x + W phi(z),   phi(z) = (1, z, cos(Omega z + b)),

z the standardised (observation, action), W by ridge regression, Omega of a squared exponential whose length is chosen
on answers that were held out.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT
from ..errors import UserError
from ..numerics import cos
from ..types import Action, State

__all__ = ["Answers", "Distilled", "ask", "distil"]

FEATURES = 384
RIDGE = 1e-8
LENGTHS = (0.7, 1.0, 1.5, 2.5, 4.0)
"""Of the squared exponential, in units of the spread of z times the square root of its size."""


class Answers(NamedTuple):
    """What a simulator said."""

    states: Float[np.ndarray, "N dx"]
    actions: Float[np.ndarray, "N da"]
    next_states: Float[np.ndarray, "N dx"]


def ask(
    simulator: Callable[..., Any],
    first: Float[np.ndarray, "K dx"],
    low: tuple[float, ...],
    high: tuple[float, ...],
    steps: int,
    count: int,
    seed: int = 0,
) -> Answers:
    """So many steps of episodes of random actions, each held for a while, from these states on the simulator.

    An episode that runs away is given up; a simulator that never answers with numbers is refused.
    """
    rng = np.random.default_rng(seed)
    least, most = np.array(low), np.array(high)
    rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    tries = 0
    while len(rows) < count and tries < 50 + count:
        x, hold, action = first[rng.integers(len(first))].copy(), 0, least
        tries += 1
        for _ in range(steps):
            if hold == 0:
                hold, action = int(rng.integers(1, 8)), rng.uniform(least, most)
            hold -= 1
            y = _answer(simulator, x, action)
            if not np.all(np.isfinite(y)) or np.abs(y - x).max() > FAR * (1 + np.abs(x).max()):
                break
            rows.append((x, action, y))
            x = y
            if len(rows) >= count:
                break
    if not rows:
        raise UserError("the simulator answers with NaN or runs away from the states where episodes begin; mend it.")
    return Answers(*(np.stack(part) for part in zip(*rows, strict=True)))


FAR = 1e3
"""A step that leads this many times farther than the state is large is an explosion."""


def _answer(simulator: Callable[..., Any], x: np.ndarray, a: np.ndarray) -> np.ndarray:
    try:
        y = np.array(simulator(x.copy(), a.copy()), float).reshape(-1)
    except Exception as error:
        raise UserError(
            f"the simulator raised {error!r} at the observation {x.tolist()} and the action {a.tolist()}; it must be a "
            "function of (observation, action) that returns the next observation."
        ) from error
    if y.shape != x.shape:
        raise UserError(f"the simulator answers with {y.size} numbers, and an observation has {x.size}.")
    return y


class Distilled(eqx.Module):
    """The fitted function."""

    centre: Float[Array, " dz"]
    spread: Float[Array, " dz"]
    frequencies: Float[Array, "F dz"]
    phases: Float[Array, " F"]
    weights: Float[Array, "P dx"]

    def __call__(self, x: State, a: Action) -> State:
        z = (jnp.concatenate([x, a]) - self.centre.astype(x.dtype)) / self.spread.astype(x.dtype)
        waves = cos(self.frequencies.astype(x.dtype) @ z + self.phases.astype(x.dtype))
        return x + jnp.concatenate([jnp.ones((1,), x.dtype), z, waves]) @ self.weights.astype(x.dtype)


def distil(answers: Answers, seed: int = 0) -> tuple[Distilled, Float[np.ndarray, " dx"]]:
    """The best function, and the root mean square of its error on a fifth of the answers, which it was not shown."""
    rng = np.random.default_rng(seed)
    z = np.concatenate([answers.states, answers.actions], axis=1)
    moves = answers.next_states - answers.states
    centre, spread = z.mean(axis=0), z.std(axis=0) + 1e-9
    shown = rng.permutation(len(z)) >= len(z) // 5
    normal, phases = rng.normal(size=(FEATURES, z.shape[1])), rng.uniform(0, 2 * np.pi, FEATURES)
    best, least = None, np.inf
    for length in LENGTHS:
        frequencies = normal / (length * np.sqrt(z.shape[1]))
        columns = _columns((z - centre) / spread, frequencies, phases)
        weights = _ridge(columns[shown], moves[shown])
        errors = np.sqrt(np.mean((columns[~shown] @ weights - moves[~shown]) ** 2, axis=0))
        relative = float(np.max(errors / (moves.std(axis=0) + 1e-12)))
        if relative < least:
            least, best = relative, (frequencies, weights, errors)
    assert best is not None
    frequencies, weights, errors = best
    arrays = (jnp.asarray(part, EXACT) for part in (centre, spread, frequencies, phases, weights))
    return Distilled(*arrays), errors


def _columns(z: np.ndarray, frequencies: np.ndarray, phases: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ones((len(z), 1)), z, np.cos(z @ frequencies.T + phases)], axis=1)


def _ridge(columns: np.ndarray, targets: np.ndarray) -> np.ndarray:
    gram = columns.T @ columns
    return np.linalg.solve(gram + RIDGE * len(columns) * np.eye(len(gram)), columns.T @ targets)
