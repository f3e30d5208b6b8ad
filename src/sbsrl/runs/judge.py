"""What a policy is really worth: its mean return and cost over many initial states, by simulation.

The paper's constraint is on an expectation, of which an episode is one draw. A task with equations can be asked for the
expectation without touching the true system; nothing that is found is shown to the learner.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._jax import EXACT
from ..costs import Aggregation, aggregate
from ..monitor import INTERVENED
from ..policy import Policy, told
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

    Empty where the task has no equations.
    """
    if task.equations is None:
        return {}
    aggregations = tuple(cost.aggregation for cost in task.costs)
    rewards, costs, intervened = _simulated(
        task.equations, policy, aggregations, task.horizon, jax.random.split(key, count)
    )
    found = {"true_return": float(np.mean(rewards))}
    for i, cost in enumerate(task.costs):
        found[f"true_cost/{cost.name}" if len(task.costs) > 1 else "true_cost"] = float(np.mean(costs[:, i]))
    budgets = np.array([cost.budget for cost in task.costs])
    found["true_violations"] = float(np.mean(np.any(np.asarray(costs) > budgets, axis=1)))
    if intervened is not None:
        found["true_interventions"] = float(np.mean(intervened))
    return found


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
