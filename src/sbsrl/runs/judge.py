"""What a policy is really worth: its mean return and cost over many initial states, by simulation.

The paper's constraint is on an expectation, of which an episode is one draw. A task with equations can be asked for the
expectation without touching the true system; of one that is simulated, another copy is played. Nothing that is found is
shown to the learner.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._jax import EXACT
from ..costs import Aggregation, aggregate, total
from ..errors import UserError
from ..monitor import INTERVENED
from ..policy import Policy, told
from ..systems.episode import ResetFault, run_episode
from ..systems.faults import Guard
from ..task import Equations, Task
from ..types import PRNGKey

__all__ = ["judge", "judging_key"]


JUDGING = 64_000
"""The seed of the initial states by which policies are judged: the same for all runs."""


def judging_key(episode: int) -> PRNGKey:
    """Of the initial states by which the policy of this episode is judged; -1 is before the first."""
    return jax.random.fold_in(jax.random.key(JUDGING), episode + 1)


def judge(task: Task, policy: Policy, count: int, key: PRNGKey) -> dict[str, float]:
    """Mean return, mean of each cost, and the share of episodes beyond a budget, over so many initial states.

    Of a policy that is watched also the share of episodes in which another policy acted at some time.

    Empty where the task has no equations and is no simulation.
    """
    aggregations = tuple(cost.aggregation for cost in task.costs)
    keys = jax.random.split(key, count)
    if task.equations is not None:
        simulated = _simulated(task.equations, policy, aggregations, task.horizon, keys)
        rewards, costs, intervened = jax.device_get(simulated)
    elif task.simulated:
        rewards, costs, intervened = _played(task, policy, keys)
    else:
        return {}
    found = {"true_return": float(np.mean(rewards))}
    for i, cost in enumerate(task.costs):
        found[f"true_cost/{cost.name}" if len(task.costs) > 1 else "true_cost"] = float(np.mean(costs[:, i]))
    budgets = np.array([cost.budget for cost in task.costs])
    found["true_violations"] = float(np.mean(np.any(np.asarray(costs) > budgets, axis=1)))
    if intervened is not None:
        found["true_interventions"] = float(np.mean(intervened))
    return found


def _played(
    task: Task, policy: Policy, keys: Any
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n k"], Bool[np.ndarray, " n"] | None]:
    """The same by playing another copy of the system."""
    env, seeds = task.open(), np.asarray(jax.random.bits(keys[0], (len(keys),))) % 2**31
    guard = Guard.of(task, 0.0)
    try:
        each = [
            run_episode(env, policy, int(seed), key, task.horizon, guard=guard)
            for seed, key in zip(seeds, keys, strict=True)
        ]
    except ResetFault as fault:
        raise UserError(f"the simulation of {task.name} failed while a policy was judged: {fault}.") from None
    finally:
        env.close()
    if faults := [played.episode.reason for played in each if played.episode.ended == "fault"]:
        raise UserError(f"the simulation of {task.name} failed while a policy was judged: {faults[0]}.")
    totals = [[total(played.episode.costs[:, i], c.aggregation) for i, c in enumerate(task.costs)] for played in each]
    rewards = np.array([np.sum(played.episode.rewards) for played in each])
    watched = [np.any(played.metrics[INTERVENED]) for played in each if INTERVENED in played.metrics]
    return rewards, np.array(totals), np.array(watched) if watched else None


@eqx.filter_jit
def _simulated(
    equations: Equations, policy: Policy, aggregations: tuple[Aggregation, ...], horizon: int, keys: Any
) -> tuple[Float[Array, " n"], Float[Array, "n k"], Bool[Array, " n"] | None]:
    """Return and costs of an episode for each key, and of a policy that is watched whether it was stopped."""

    def episode(key: PRNGKey) -> tuple[Array, Array, Array | None]:
        start_key, step_key, act_key = jax.random.split(key, 3)

        def step(carry: Any, t: Array) -> Any:
            x, memory = carry
            a, memory, said = policy.act(x, memory, jax.random.fold_in(act_key, t))
            a = a.astype(EXACT)
            y = equations.step(x, a, jax.random.fold_in(step_key, t))
            signals = equations.signals.reward(x, a, y), equations.signals.costs(x, a, y)
            return (y, told(policy, memory, *signals)), (*signals, said.get(INTERVENED))

        start = jnp.asarray(equations.start(start_key), EXACT), policy.init()
        _, (rewards, costs, intervened) = jax.lax.scan(step, start, jnp.arange(horizon, dtype=jnp.uint32))
        totals = jnp.stack([aggregate(costs[:, i], how) for i, how in enumerate(aggregations)])
        return jnp.sum(rewards), totals, None if intervened is None else jnp.any(intervened)

    return jax.vmap(episode)(keys)
