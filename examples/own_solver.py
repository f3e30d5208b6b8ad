"""A solver of your own: at every step the best of some random sequences of actions that are safe on every sample.

sbsrl train pendulum --set solver=own_solver:ShootingSettings --set shots=500
"""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from sbsrl.errors import UserError
from sbsrl.problem import Evaluation, Problem, excess, nominal_returns
from sbsrl.solve.protocol import Solution
from sbsrl.validation import Whole, declared, validate


class Shooting(eqx.Module):
    """The policy, and what chooses its actions. It remembers nothing."""

    problem: Problem
    shots: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)

    def init(self):
        return ()

    def act(self, x, state, key):
        action, violation = self.best(x, key)
        return action, state, {"violation": violation}

    @eqx.filter_jit
    def best(self, x, key):
        x = x.astype(jnp.float32)
        low, high = (jnp.array(part, jnp.float32)[None, :, None] for part in (self.low, self.high))
        drawn = jax.random.uniform(key, (self.steps, len(self.low), self.shots), jnp.float32)
        actions = low + drawn * (high - low)
        returns, _ = nominal_returns(self.problem, x, actions)
        samples = jnp.arange(self.problem.constraint_count, dtype=jnp.int32)
        beyond = jax.lax.map(lambda m: excess(self.problem, m, x, actions).beyond, samples)
        worst = jnp.max(beyond, axis=0, initial=0.0)
        chosen = jnp.argmax(jnp.where(worst > 0, -1e9 - worst, returns))  # for want of a safe one, the least unsafe
        return actions[0, :, chosen], worst[chosen]


class ShootingSolver(eqx.Module):
    """Turns a problem into the policy."""

    settings: "ShootingSettings" = eqx.field(static=True)
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)

    def init(self, key):
        return ()

    def solve(self, problem, state, key):
        policy = Shooting(problem, self.settings.shots, self.settings.ahead, self.low, self.high)
        _, violation = policy.best(problem.starts[0], key)
        nothing = jnp.zeros((), jnp.float32)
        return Solution(policy, Evaluation(nothing, violation, nothing), demand=0.0), state


@dataclass(frozen=True)
class ShootingSettings:
    """Random sequences of actions."""

    name: ClassVar[str] = "own_solver:ShootingSettings"
    shots: int = declared(Whole(1), 500, "sequences that are tried at every step")
    ahead: int = declared(Whole(1), 12, "steps of a sequence")

    def __post_init__(self):
        validate(self, "solver.")

    def create(self, task):
        if any(cost.aggregation == "sum" for cost in task.costs):
            raise UserError("a plan of a few steps may spend no more than its share of a summed cost: use solver=icem.")
        return ShootingSolver(self, task.action_low, task.action_high)

    def cost_error(self, task):
        return 0.0

    def against_safety(self, task):
        yield "actions are drawn at random at every step; the theorem is about a policy for an episode."

    def against_optimality(self, task):
        yield "a few random sequences are no optimum."
