"""A monitor: it looks ahead during an episode, and hands over to another policy before the budget is exceeded.

Every few steps the rest of the episode is predicted on every sample. If on any of them the cost so far and the rest
together exceed a budget, the first of the ways out that keeps it on all of them acts from then on; if none does, the
one whose rest would exceed it least, if that is any better. There is no way back in an episode.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ._jax import PLAN
from .belief.protocol import SideBySide
from .costs import Aggregation, charged, nothing_charged
from .policy import Metrics, Policy, told
from .prediction import final_costs
from .systems.episode import Played
from .transitions import Episode
from .types import Action, Index, PRNGKey, State

__all__ = ["INTERVENED", "Monitored", "Watch", "before_takeover"]

INTERVENED = "intervened"
"""The metric of policies that are watched: the share of the steps in which another policy acted instead."""


TAKEN_OVER = "another policy took over"


class Watch(NamedTuple):
    """What the monitor remembers of an episode."""

    memories: tuple[Any, ...]
    """The states of all policies, which all see the whole episode."""
    costs: Float[Array, " k"]
    """The cost so far, aggregated."""
    t: Int[Array, ""]
    acting: Index
    """The number of the policy that acts: 0 is the one that is watched."""


class Monitored(eqx.Module):
    """A policy under watch."""

    policies: tuple[Policy, ...]
    """The one that is watched, then the ways out: which to prefer comes first."""
    samples: SideBySide
    budgets: Float[Array, " k"]
    aggregations: tuple[Aggregation, ...] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    every: int = eqx.field(static=True)
    """Steps between two looks ahead."""

    @property
    def watched(self) -> Policy:
        return self.policies[0]

    def init(self) -> Watch:
        nothing = nothing_charged(1, self.aggregations)[0]
        begun = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)
        return Watch(tuple(policy.init() for policy in self.policies), nothing, *begun)

    def act(self, x: State, state: Watch, key: PRNGKey) -> tuple[Action, Watch, Metrics]:
        action, after, said = _act(self, x, state, key)
        own = {f"watched/{name}": value for name, value in said.items()}
        return action, after, {**own, INTERVENED: after.acting > 0}

    def observe(self, state: Watch, reward: Any, costs: Any) -> Watch:
        """Charges what the step really cost."""
        return _observe(self, state, jnp.asarray(reward), jnp.asarray(costs))


def before_takeover(played: Played) -> Episode:
    """The episode up to where another policy took over, which interrupted it; all of it where none did."""
    episode, watched = played.episode, played.metrics.get(INTERVENED, [])
    own = next((t for t, taken_over in enumerate(watched) if taken_over), None)
    if own is None:
        return episode
    parts = {name: getattr(episode, name)[:own] for name in ("actions", "rewards", "costs")}
    return episode._replace(states=episode.states[: own + 1], ended="interrupted", reason=TAKEN_OVER, **parts)


@eqx.filter_jit
def _act(monitor: Monitored, x: State, state: Watch, key: PRNGKey) -> tuple[Action, Watch, Metrics]:
    look_key, *act_keys = jax.random.split(key, 1 + len(monitor.policies))
    due = state.t % monitor.every == 0  # not who acts: of many episodes at once, some will be watched still
    acting = jax.lax.cond(due, lambda: _handed_over(monitor, x, state, look_key), lambda: state.acting)
    decided = [
        policy.act(x, memory, each)
        for policy, memory, each in zip(monitor.policies, state.memories, act_keys, strict=True)
    ]
    action = jnp.stack([a for a, _, _ in decided])[acting]
    return action, Watch(tuple(memory for _, memory, _ in decided), state.costs, state.t + 1, acting), decided[0][2]


def _handed_over(monitor: Monitored, x: State, state: Watch, key: PRNGKey) -> Index:
    """Who acts from now on: whoever does, or the first after it that keeps the budgets on all samples.

    If none does, it is whoever's rest exceeds them least, by itself: what is past is the same for all. Where nothing is
    known of any of them it is the last resort.
    """
    pairs = zip(monitor.policies, state.memories, strict=True)
    rests = [_rest(monitor, policy, memory, x, state, key) for policy, memory in pairs]
    count = len(rests)
    left = jnp.arange(count, dtype=jnp.int32) >= state.acting
    keeps = left & jnp.stack([_excess(monitor, _total(monitor, state, rest)) <= 0 for rest in rests])
    excess = jnp.stack([_excess(monitor, rest) for rest in rests])
    known = jnp.where(left & ~jnp.isnan(excess), excess, jnp.inf)
    best = jnp.where(jnp.all(jnp.isinf(known)), count - 1, jnp.argmin(known))
    return jnp.where(jnp.any(keeps), jnp.argmax(keeps), best).astype(jnp.int32)


def _rest(monitor: Monitored, policy: Policy, memory: Any, x: State, state: Watch, key: PRNGKey) -> Float[Array, "S k"]:
    """What the rest of the episode costs on every sample if this policy acts from now on."""
    end, nothing = jnp.asarray(monitor.horizon, jnp.int32), nothing_charged(1, monitor.aggregations)[0]
    return final_costs(
        monitor.samples, policy, memory, x, nothing, state.t, end, monitor.horizon, monitor.aggregations, key
    )


def _total(monitor: Monitored, state: Watch, rest: Float[Array, "S k"]) -> Float[Array, "S k"]:
    """What the whole episode costs, then."""
    return charged(jnp.broadcast_to(state.costs, rest.shape), rest, monitor.aggregations)


def _excess(monitor: Monitored, costs: Float[Array, "S k"]) -> Float[Array, ""]:
    """By how much the dearest sample exceeds a budget; no number if one of them has none."""
    return jnp.max(costs - monitor.budgets[None])


@eqx.filter_jit
def _observe(monitor: Monitored, state: Watch, reward: Float[Array, ""], costs: Float[Array, " k"]) -> Watch:
    after = charged(state.costs[None], costs.astype(PLAN)[None], monitor.aggregations)[0]
    memories = tuple(
        told(policy, memory, reward, costs) for policy, memory in zip(monitor.policies, state.memories, strict=True)
    )
    return state._replace(memories=memories, costs=after)
