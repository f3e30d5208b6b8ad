"""Finding the best K of many candidates while evaluating only those that can be among them. Exact.

A candidate's nominal return bounds its value from above, since penalties only lower it. Candidates are taken in the
order of their bounds, a chunk at a time, until the next bound is below both the K-th best value found and the best
feasible one: neither the elites nor the plan that will be followed can change any more.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..problem import Evaluation, feasible
from ..types import Flag, Index

__all__ = ["evaluate_lazily"]


def evaluate_lazily(
    bounds: Float[Array, " P"],
    known: Evaluation,
    evaluate: Callable[[Int[Array, " C"]], Evaluation],
    best: int,
    chunk: int,
) -> tuple[Evaluation, Index]:
    """Values of all candidates that can be among the `best`, and how many were evaluated.

    `known` holds -inf where a value is not known yet; a bound of -inf marks a candidate that needs no evaluation.
    As long as no feasible candidate was found, the search goes on to the end: "infeasible" is no matter of order.
    """
    size = bounds.shape[0]
    padding = -size % chunk
    order = jnp.argsort(-bounds)
    # Padding repeats the last candidate: writing the same numbers to the same place twice is harmless.
    order = jnp.concatenate([order, jnp.broadcast_to(order[-1], (padding,))])
    chunks = order.shape[0] // chunk

    def worthwhile(state: tuple[Index, Evaluation]) -> Flag:
        i, found = state
        next_bound = bounds[order[jnp.minimum(i, chunks - 1) * chunk]]
        cutoff = jax.lax.top_k(found.value, best)[0][-1]
        best_feasible = jnp.max(jnp.where(feasible(found), found.value, -jnp.inf))
        return (i < chunks) & (next_bound > jnp.minimum(cutoff, best_feasible))

    def evaluate_chunk(state: tuple[Index, Evaluation]) -> tuple[Index, Evaluation]:
        i, found = state
        rows = jax.lax.dynamic_slice_in_dim(order, i * chunk, chunk)
        wanted = jnp.isfinite(bounds[rows])
        new = evaluate(rows)
        merged = [old.at[rows].set(jnp.where(wanted, fresh, old[rows])) for old, fresh in zip(found, new, strict=True)]
        return i + 1, Evaluation(*merged)

    used, found = jax.lax.while_loop(worthwhile, evaluate_chunk, (jnp.zeros((), jnp.int32), known))
    return found, jnp.minimum(used * chunk, jnp.sum(jnp.isfinite(bounds), dtype=jnp.int32))
