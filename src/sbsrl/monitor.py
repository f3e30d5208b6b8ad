"""A monitor: it looks ahead during an episode, and hands over to the prior policy before the budget is exceeded.

Every few steps the rest of the episode is predicted on every sample. If on any of them the cost so far and the rest
together exceed a budget, the prior policy acts for the rest of the episode, unless by the same prediction that would
cost more.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ._jax import PLAN
from .belief.protocol import SideBySide
from .costs import Aggregation, charged, nothing_charged
from .policy import Metrics, Policy, told
from .prediction import final_costs
from .systems.episode import Played
from .transitions import Episode
from .types import Action, Flag, PRNGKey, State

__all__ = ["INTERVENED", "Monitored", "Watch", "before_takeover"]

INTERVENED = "intervened"
"""The metric of policies that are watched: the share of the steps in which the prior policy acted instead."""


TAKEN_OVER = "the prior policy took over"


class Watch(NamedTuple):
    """What the monitor remembers of an episode."""

    policy: Any
    """The state of the policy that is watched."""
    prior: Any
    """The state of the prior policy, which sees the whole episode too."""
    costs: Float[Array, " k"]
    """The cost so far, aggregated."""
    t: Int[Array, ""]
    taken_over: Bool[Array, ""]


class Monitored(eqx.Module):
    """A policy under watch."""

    policy: Policy
    prior: Policy
    samples: SideBySide
    budgets: Float[Array, " k"]
    aggregations: tuple[Aggregation, ...] = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    every: int = eqx.field(static=True)
    """Steps between two looks ahead."""

    def init(self) -> Watch:
        nothing = nothing_charged(1, self.aggregations)[0]
        begun = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
        return Watch(self.policy.init(), self.prior.init(), nothing, *begun)

    def act(self, x: State, state: Watch, key: PRNGKey) -> tuple[Action, Watch, Metrics]:
        action, after, said = _act(self, x, state, key)
        own = {f"watched/{name}": value for name, value in said.items()}
        return action, after, {**own, INTERVENED: after.taken_over}

    def observe(self, state: Watch, reward: Any, costs: Any) -> Watch:
        """Charges what the step really cost."""
        return _observe(self, state, jnp.asarray(reward), jnp.asarray(costs))


def before_takeover(played: Played) -> Episode:
    """The episode up to where the prior policy took over, which interrupted it; all of it where it did not."""
    episode, watched = played.episode, played.metrics.get(INTERVENED, [])
    own = next((t for t, taken_over in enumerate(watched) if taken_over), None)
    if own is None:
        return episode
    parts = {name: getattr(episode, name)[:own] for name in ("actions", "rewards", "costs")}
    return episode._replace(states=episode.states[: own + 1], ended="interrupted", reason=TAKEN_OVER, **parts)


@eqx.filter_jit
def _act(monitor: Monitored, x: State, state: Watch, key: PRNGKey) -> tuple[Action, Watch, Metrics]:
    look_key, act_key, prior_key = jax.random.split(key, 3)
    due = state.t % monitor.every == 0  # not whether it has taken over: of many episodes at once, some will not have
    exceeds = jax.lax.cond(due, lambda: _exceeds(monitor, x, state, look_key), lambda: jnp.zeros((), bool))
    taken_over = state.taken_over | exceeds
    own, policy, said = monitor.policy.act(x, state.policy, act_key)
    instead, prior, _ = monitor.prior.act(x, state.prior, prior_key)
    action = jnp.where(taken_over, instead, own)
    return action, Watch(policy, prior, state.costs, state.t + 1, taken_over), said


def _exceeds(monitor: Monitored, x: State, state: Watch, key: PRNGKey) -> Flag:
    """Whether the episode would cost more than a budget on one of the samples if the policy went on, and no more than
    that under the prior policy."""
    own = _excess(monitor, monitor.policy, state.policy, x, state, key)
    instead = _excess(monitor, monitor.prior, state.prior, x, state, key)
    return ~(own <= 0) & ~(instead > own)  # what is not a number is not within the budget


def _excess(monitor: Monitored, policy: Policy, memory: Any, x: State, state: Watch, key: PRNGKey) -> Float[Array, ""]:
    """By how much the dearest sample exceeds a budget in the end, if this policy acts from now on."""
    end = jnp.asarray(monitor.horizon, jnp.int32)
    costs = final_costs(
        monitor.samples, policy, memory, x, state.costs, state.t, end, monitor.horizon, monitor.aggregations, key
    )
    return jnp.max(costs - monitor.budgets[None])


@eqx.filter_jit
def _observe(monitor: Monitored, state: Watch, reward: Float[Array, ""], costs: Float[Array, " k"]) -> Watch:
    after = charged(state.costs[None], costs.astype(PLAN)[None], monitor.aggregations)[0]
    policy = told(monitor.policy, state.policy, reward, costs)
    return state._replace(policy=policy, prior=told(monitor.prior, state.prior, reward, costs), costs=after)
