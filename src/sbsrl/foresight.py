"""What every sample foretells for actions that were really taken: forecasts to lay behind a trajectory."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._jax import PLAN
from .belief.protocol import Samples
from .transitions import Episode
from .types import Index, PRNGKey

__all__ = ["Forecast", "foretell"]


class Forecast(NamedTuple):
    """The states after each step, and its costs, as M samples foretell them.

    A forecast begins anew at the true state every `window` steps: so far a planner looks ahead.
    """

    states: Float[np.ndarray, "M T dx"]
    costs: Float[np.ndarray, "M T k"]
    window: int


def foretell(samples: Samples, episode: Episode, window: int, key: PRNGKey) -> Forecast:
    """Forecasts of all samples for the actions of an episode."""
    steps, window = len(episode.actions), max(1, min(window, len(episode.actions)))
    more = -steps % window
    begins = jnp.asarray(episode.states[:-1][::window], PLAN)
    padded = np.pad(episode.actions, ((0, more), (0, 0)), mode="edge")
    actions = jnp.asarray(padded.reshape(len(begins), window, -1), PLAN)
    states, costs = _followed(samples, begins, actions, key)
    shape = (len(samples), steps + more, -1)
    foretold, charged = (np.asarray(part, float).reshape(shape)[:, :steps] for part in (states, costs))
    return Forecast(foretold, charged, window)


@eqx.filter_jit
def _followed(
    samples: Samples, begins: Float[Array, "S dx"], actions: Float[Array, "S W da"], key: PRNGKey
) -> tuple[Float[Array, "M S W dx"], Float[Array, "M S W k"]]:
    """Every sample from every beginning."""

    def of_sample(m: Index) -> tuple[Array, Array]:
        model = samples.member(m)

        def step(x: Array, now: tuple[Array, PRNGKey]) -> tuple[Array, tuple[Array, Array]]:
            a, noise = now
            y = model.draw(x, a, noise)
            return y, (y, model.costs(x, a, y))

        def follow(x: Array, a: Array, noise: PRNGKey) -> tuple[Array, Array]:
            _, along = jax.lax.scan(step, x, (a, jax.random.split(noise, len(a))))
            return along

        return jax.vmap(follow)(begins, actions, jax.random.split(jax.random.fold_in(key, m), len(begins)))

    return jax.lax.map(of_sample, jnp.arange(len(samples), dtype=jnp.int32))
