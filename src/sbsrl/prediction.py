"""What an episode will cost on every sample, under a policy of any kind, from anywhere in it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ._jax import EXACT, PLAN
from .belief.protocol import SideBySide
from .costs import Aggregation, charged, nothing_charged
from .policy import Policy, told
from .types import Index, PRNGKey

__all__ = ["costs_in_pieces", "final_costs"]


@eqx.filter_jit
def final_costs(
    samples: SideBySide,
    policy: Policy,
    memory: Any,
    x: Float[Array, " dx"],
    before: Float[Array, " k"],
    first: Index,
    end: Index,
    horizon: int,
    aggregations: tuple[Aggregation, ...],
    key: PRNGKey,
) -> Float[Array, "S k"]:
    """The costs of an episode on every sample, after it was charged `before` in its steps before `first`.

    It is at x, the policy remembers `memory`, and it goes on up to step `end`, of at most `horizon`.
    """
    rows, count = samples.beside(1, 0), len(samples)
    noise_key, act_key = jax.random.split(key)
    noises, keys = rows.noises(noise_key, horizon, training=False), jax.random.split(act_key, horizon)

    def beside(leaf: Any) -> Array:
        return jnp.broadcast_to(leaf, (count, *jnp.shape(leaf)))

    def step(t: Index, now: Any) -> Any:
        x, own, memory, costs = now
        decide = lambda x, memory: policy.act(x, memory, keys[t])[:2]  # noqa: E731
        a, memory = jax.vmap(decide)(x.astype(EXACT), memory)
        moved, _, own = rows.advanced(x, a.astype(PLAN), noises[t], own)
        memory = jax.vmap(lambda *each: told(policy, *each))(memory, moved.rewards, moved.costs)
        return moved.states, own, memory, charged(costs, moved.costs, aggregations).astype(PLAN)

    begun = (beside(x.astype(PLAN)), rows.begun(count), jax.tree.map(beside, memory), beside(before.astype(PLAN)))
    return jax.lax.fori_loop(first, end, step, begun)[-1]


@eqx.filter_jit
def costs_in_pieces(
    samples: SideBySide,
    policy: Policy,
    states: Float[Array, "P dx"],
    steps: Int[Array, " P"],
    longest: int,
    aggregations: tuple[Aggregation, ...],
    key: PRNGKey,
) -> Float[Array, "S k"]:
    """The summed costs of so many pieces of an episode on every sample, each from a state of its own.

    A piece has so many steps, of at most `longest`; a policy with a memory begins anew in each.
    """
    nothing, first = nothing_charged(1, aggregations)[0], jnp.asarray(0, jnp.int32)

    def piece(x: Array, end: Array, key: PRNGKey) -> Float[Array, "S k"]:
        return final_costs(samples, policy, policy.init(), x, nothing, first, end, longest, aggregations, key)

    return jnp.sum(jax.vmap(piece)(states, steps, jax.random.split(key, len(states))), axis=0)
