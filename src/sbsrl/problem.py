"""Problem (1) of the paper (label pb:1), and the value that appendix F gives to a sequence of actions.

    maximise  J_r(pi, mu_n)
    subject to  J_c(pi, f_n^m) <= d - Delta_zeta   for every m = 1 .. M       (safety)
                J_{s_n}(pi, mu_n) >= d_sigma^n                                (exploration)

with fixed penalties:

    J_r(mu_n) - lambda_c sum_m max(J_c(f_n^m) - d + Delta_zeta, 0) - lambda_sigma max(d_sigma^n - J_s(mu_n), 0)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .belief.protocol import Samples, Uncertainty
from .task import Aggregation, aggregate
from .types import Actions, Dynamics, Flag, Index, Scalar, State, States, TransitionFunction

__all__ = [
    "Candidates",
    "Evaluation",
    "Only",
    "Penalties",
    "Problem",
    "Trajectories",
    "excess",
    "explored",
    "feasible",
    "information",
    "nominal_returns",
    "penalised",
    "penalties",
    "rollout",
    "rollouts",
]


@dataclass(frozen=True)
class Penalties:
    """The fixed weights of appendix F."""

    cost: float
    """lambda_c."""
    exploration: float
    """lambda_sigma."""


class Only(eqx.Module):
    """A set of samples with a single member: safety on the nominal dynamics, or on none but the true one."""

    dynamics: Dynamics

    def __len__(self) -> int:
        return 1

    def member(self, m: Index) -> Dynamics:
        return self.dynamics


class Problem(eqx.Module):
    """What is to be solved before an episode: an objective and two constraints."""

    reward: TransitionFunction
    """r, or what a method maximises in its place."""
    nominal: Dynamics
    """mu_n: the objective and the exploration constraint are judged on it."""
    cost: TransitionFunction
    aggregation: Aggregation = eqx.field(static=True)
    samples: Samples | None
    """f_n^1 .. f_n^M: safety is demanded on each; None demands nothing."""
    bound: Scalar
    """d - Delta_zeta."""
    uncertainty: Uncertainty
    """s_n."""
    threshold: Scalar
    """d_sigma^n; 0 demands nothing."""
    steps: Index
    """How many steps of a plan gather information: what lies beyond the end of the episode teaches nothing."""
    exploring: Flag
    """Whether the method asks for exploration, by the threshold or by its objective."""
    penalties: Penalties = eqx.field(static=True)

    def demanding(self, threshold: Scalar, steps: int) -> "Problem":
        """The same problem, with so much information to be gathered in so many steps."""
        fields = lambda problem: (problem.threshold, problem.steps)  # noqa: E731
        return eqx.tree_at(fields, self, (threshold, jnp.asarray(steps, jnp.int32)))

    @property
    def sample_count(self) -> int:
        """M."""
        return 0 if self.samples is None else len(self.samples)


Candidates = Float[Array, "H da C"]
"""Sequences of actions."""

Trajectories = Float[Array, "H1 dx C"]


class Evaluation(NamedTuple):
    """What is known of a sequence of actions, or, with a leading axis, of many."""

    value: Float[Array, "..."]
    """The penalised objective, or -inf where it was not needed."""
    violation: Float[Array, "..."]
    """max_m max(J_c(f_n^m) - d + Delta_zeta, 0)."""
    information: Float[Array, "..."]
    """J_{s_n}(mu_n), or 0 where no exploration is demanded."""


def feasible(evaluation: Evaluation) -> Bool[Array, "..."]:
    """Whether the safety constraint holds on every sample."""
    return evaluation.violation <= 0


def rollout(dynamics: Dynamics, x: State, actions: Actions) -> States:
    """x_0 .. x_H under these actions."""

    def step(x: State, a: Array) -> tuple[State, State]:
        y = dynamics(x, a)
        return y, y

    _, after = jax.lax.scan(step, x, actions)
    return jnp.concatenate([x[None, :], after])


# What follows is for C candidates at once. Their axis comes last: what a step needs of all of them is then contiguous.


def at_many(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of (x, a), for columns of states and actions: its own method `many`, if it has one, is faster."""
    return getattr(function, "many", None) or jax.vmap(function, in_axes=-1, out_axes=-1)


def rollouts(dynamics: Dynamics, x: State, actions: Candidates) -> Trajectories:
    """x_0 .. x_H of every candidate."""
    many = at_many(dynamics)

    def step(x: Float[Array, "dx C"], a: Float[Array, "da C"]) -> tuple[Float[Array, "dx C"], Float[Array, "dx C"]]:
        y = many(x, a)
        return y, y

    start = jnp.broadcast_to(x[:, None], (x.shape[0], actions.shape[-1]))
    _, after = jax.lax.scan(step, start, actions)
    return jnp.concatenate([start[None], after])


def along(g: TransitionFunction, states: Trajectories, actions: Candidates) -> Float[Array, "H C"]:
    """g at every step of every candidate."""
    return jax.vmap(jax.vmap(g, in_axes=-1))(states[:-1], actions, states[1:])


def nominal_returns(problem: Problem, x: State, actions: Candidates) -> tuple[Float[Array, " C"], Trajectories]:
    """J_r(mu_n), which bounds the value from above since penalties only lower it, and the nominal trajectories."""
    states = rollouts(problem.nominal, x, actions)
    reward = jnp.sum(along(problem.reward, states, actions), axis=0)
    return jnp.where(jnp.isnan(reward), -jnp.inf, reward), states


def information(problem: Problem, states: Trajectories, actions: Candidates) -> Float[Array, " C"]:
    """J_{s_n}(mu_n): what the nominal trajectories would teach."""
    steps, _, count = actions.shape
    flat = (jnp.moveaxis(part, 1, 0).reshape(part.shape[1], -1) for part in (states[:-1], actions))
    gained = at_many(problem.uncertainty)(*flat).reshape(steps, count)
    gained = jnp.where(jnp.isnan(gained), 0, gained)  # what is not a number teaches nothing
    return jnp.sum(jnp.where((jnp.arange(steps, dtype=jnp.int32) < problem.steps)[:, None], gained, 0), axis=0)


def excess(problem: Problem, dynamics: Dynamics, x: State, actions: Candidates) -> Float[Array, " C"]:
    """max(J_c(f) - d + Delta_zeta, 0) for one dynamics."""
    costs = along(problem.cost, rollouts(dynamics, x, actions), actions)
    total = jax.vmap(lambda c: aggregate(c, problem.aggregation), in_axes=-1)(costs)
    hinge = jnp.maximum(total - problem.bound, 0)
    return jnp.where(jnp.isnan(hinge), jnp.inf, hinge)  # a trajectory that is not a number is not safe


def explored(problem: Problem, returns: Float[Array, "..."], gathered: Float[Array, "..."]) -> Float[Array, "..."]:
    """The value but for the cost: J_r - lambda_sigma max(d_sigma - J_s, 0)."""
    return returns - problem.penalties.exploration * jnp.maximum(problem.threshold - gathered, 0)


def penalties(problem: Problem, hinges: Float[Array, "..."]) -> Float[Array, "..."]:
    """lambda_c max(J_c(f^m) - d + Delta_zeta, 0)."""
    weight = problem.penalties.cost
    return weight * hinges if weight > 0 else jnp.zeros_like(hinges)


def penalised(value: Float[Array, "..."], penalties: Float[Array, "... M"]) -> Float[Array, "..."]:
    """The value less the penalties of all samples, summed in their order.

    The sum is monotone in each penalty, also after rounding. So with zeros in the place of those that are not known yet
    it is an upper bound.
    """
    return value - jnp.sum(penalties, axis=-1)
