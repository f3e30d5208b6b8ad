"""Draws of initial states."""

from collections.abc import Callable
from functools import partial

import jax
from jaxtyping import Array, Float

from .types import PRNGKey, State

__all__ = ["draw_starts"]


@partial(jax.jit, static_argnums=(0, 1))
def draw_starts(start: Callable[[PRNGKey], State], count: int, key: PRNGKey) -> Float[Array, "n dx"]:
    """So many initial states as the learner expects them; the true system is not asked."""
    return jax.vmap(start)(jax.random.split(key, count))
