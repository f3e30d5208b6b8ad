"""Problem (1) of the paper (label pb:1), and the value that appendix F gives to a sequence of actions.

    maximise  J_r(pi, mu_n)
    subject to  J_c(pi, f_n^m) <= d - Delta_zeta   for every m = 1 .. M       (safety)
                J_{s_n}(pi, mu_n) >= d_sigma^n                                (exploration)

with fixed penalties:

    J_r(mu_n) - lambda_c sum_m max(J_c(f_n^m) - d + Delta_zeta, 0) - lambda_sigma max(d_sigma^n - J_s(mu_n), 0)
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .belief.protocol import Samples, Uncertainty
from .task import Aggregation, aggregate
from .types import Actions, Dynamics, Flag, Index, Scalar, State, States, TransitionFunction

__all__ = ["Evaluation", "Only", "Penalties", "Problem", "feasible", "rollout"]


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


def total(g: TransitionFunction, states: States, actions: Actions) -> Scalar:
    """J_g: the sum of g along a trajectory."""
    return jnp.sum(jax.vmap(g)(states[:-1], actions, states[1:]))


def nominal_return(problem: Problem, x: State, actions: Actions) -> tuple[Scalar, States]:
    """J_r(mu_n), which bounds the value from above since penalties only lower it, and the nominal trajectory."""
    states = rollout(problem.nominal, x, actions)
    reward = total(problem.reward, states, actions)
    return jnp.where(jnp.isnan(reward), -jnp.inf, reward), states


def information(problem: Problem, states: States, actions: Actions) -> Scalar:
    """J_{s_n}(mu_n): what the nominal trajectory would teach."""
    gained = jax.vmap(problem.uncertainty)(states[:-1], actions)
    return jnp.sum(jnp.where(jnp.arange(len(actions), dtype=jnp.int32) < problem.steps, gained, 0))


def excess(problem: Problem, dynamics: Dynamics, x: State, actions: Actions) -> Scalar:
    """max(J_c(f) - d + Delta_zeta, 0) for one dynamics."""
    states = rollout(dynamics, x, actions)
    costs = jax.vmap(problem.cost)(states[:-1], actions, states[1:])
    hinge = jnp.maximum(aggregate(costs, problem.aggregation) - problem.bound, 0)
    return jnp.where(jnp.isnan(hinge), jnp.inf, hinge)  # a trajectory that is not a number is not safe


def penalise(
    problem: Problem,
    x: State,
    actions: Float[Array, "C H da"],
    returns: Float[Array, " C"],
    states: Float[Array, "C H1 dx"],
) -> Evaluation:
    """Evaluates both constraints for C candidates whose nominal returns and trajectories are known.

    The samples are taken one after another, each for all candidates: what one sample needs stays in the cache.
    """
    nothing = jnp.zeros_like(returns)
    gathered = jax.lax.cond(
        problem.threshold > 0,
        lambda: jax.vmap(lambda s, a: information(problem, s, a))(states, actions),
        lambda: nothing,
    )
    value = returns - problem.penalties.exploration * jnp.maximum(problem.threshold - gathered, 0)
    samples = problem.samples
    if samples is None:
        return Evaluation(value, nothing, gathered)

    def add_sample(
        carry: tuple[Float[Array, " C"], Float[Array, " C"]], m: Index
    ) -> tuple[tuple[Float[Array, " C"], Float[Array, " C"]], None]:
        dynamics = samples.member(m)
        hinge = jax.vmap(lambda a: excess(problem, dynamics, x, a))(actions)
        summed, worst = carry
        return (summed + hinge, jnp.maximum(worst, hinge)), None

    (summed, worst), _ = jax.lax.scan(add_sample, (nothing, nothing), jnp.arange(len(samples)))
    return Evaluation(value - problem.penalties.cost * summed, worst, gathered)
