"""New candidates from good ones by gradients: prox-linear steps on the penalised objective of appendix F.

Around a plan, all is linear in its change d, in units of half the action range, but for the kinks of the penalties:

    maximise over d   g . d  -  sum_j w_j max(h_j + G_j . d, 0)  -  |d|^2 / (2 alpha)

    g         the gradient of J_r(mu_n)
    h_j, G_j  J_c(f^m) - d + Delta of a few samples m, with w_j = lambda_c,
              and d_sigma - J_s(mu_n), with w_j = lambda_sigma; and their gradients

The kinks stay as they are because the weights are large: the gradient of a penalty would throw a plan from one side of
a constraint to the other. The solution is d = alpha (g - G^T l) with the multipliers 0 <= l <= w that minimise

    alpha / 2 |g - G^T l|^2 - h . l

A plan at a constraint slides along it; a plan that violates one is led back. How far this model can be trusted is not
known, so steps of several lengths are proposed. What they are worth the planner finds out as for any other candidate.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._jax import PLAN
from ..model import Model
from ..problem import Candidates, Penalties, Problem, Trajectories, information, nominal_return, surplus
from ..types import Actions, Index, PRNGKey, Scalar, State
from .tangent import tangent_rollouts

__all__ = ["Linearisation", "Refinement", "linearise", "multipliers", "prox_linear_step"]


class Linearisation(NamedTuple):
    """A plan of n numbers to first order; with a leading axis, many."""

    gain: Float[Array, "*K n"]
    """g."""
    excess: Float[Array, "*K q"]
    """h: by how much each constraint is missed; negative where there is room."""
    slopes: Float[Array, "*K q n"]
    """G."""
    weights: Float[Array, "*K q"]
    """w."""


class Refinement(eqx.Module):
    """Which candidates are improved, and with how much care."""

    parents: int = eqx.field(static=True)
    """So many of the best candidates are improved in each iteration."""
    samples: int = eqx.field(static=True, default=8)
    """So many samples are linearised: those that were violated most often."""
    lengths: tuple[float, ...] = eqx.field(static=True, default=(1.0, 0.3, 0.1, 0.03, 0.01, 0.003))
    """Root mean square changes of an action, in units of half its range, if no constraint were near."""

    @property
    def count(self) -> int:
        """How many candidates are proposed at once."""
        return self.parents * len(self.lengths)

    def propose(
        self,
        problem: Problem,
        penalties: Penalties,
        x: State,
        plans: Float[Array, "K H da"],
        box: tuple[Actions, Actions],
        members: Int[Array, " q"],
    ) -> Float[Array, "N H da"]:
        """A step of every length from each plan, with the constraints of these samples."""
        low, high = box
        half_range = (high - low) / 2

        def from_one(plan: Actions, linear: Linearisation) -> Float[Array, "L H da"]:
            free = _free(plan, linear.gain.reshape(plan.shape), low, high)
            steps = jax.vmap(lambda length: prox_linear_step(linear, free.ravel(), length))(
                jnp.asarray(self.lengths, PLAN)
            )
            return jnp.clip(plan[None] + half_range[None] * steps.reshape(-1, *plan.shape), low[None], high[None])

        linear = linearise(problem, penalties, x, jnp.moveaxis(plans, 0, -1), half_range, members)
        return jax.vmap(from_one)(plans, linear).reshape(-1, *plans.shape[1:])


def linearise(
    problem: Problem, penalties: Penalties, x: State, actions: Candidates, unit: Actions, members: Int[Array, " q"]
) -> Linearisation:
    """J_r, J_s and every cost on these samples to first order, for every candidate, in multiples of `unit`."""
    costs = len(problem.aggregations)

    def missing(actions: Candidates) -> Float[Array, " C"]:
        return problem.threshold - information(problem, tangent_rollouts(problem.nominal, x, actions), actions)

    def of_constraint(m: Index, cost: int) -> tuple[Float[Array, " C"], Float[Array, "n C"]]:
        def exceeded(actions: Candidates) -> Float[Array, " C"]:
            def roll(model: Model, key: PRNGKey) -> Trajectories:
                return tangent_rollouts(model, x, actions)

            return surplus(problem, m, roll, actions, penalties.slack)[cost]

        return _slope(exceeded, actions, unit)

    reward = lambda a: nominal_return(problem, tangent_rollouts(problem.nominal, x, a), a)  # noqa: E731
    _, gain = _slope(reward, actions, unit)
    nothing = jnp.zeros(actions.shape[-1], PLAN), jnp.zeros_like(gain)
    explored = jax.lax.cond(problem.threshold > 0, lambda: _slope(missing, actions, unit), lambda: nothing)
    excess, slopes = (part[None] for part in explored)
    if len(members):
        sampled = [jax.vmap(lambda m, i=i: of_constraint(m, i))(members) for i in range(costs)]
        excess, slopes = (jnp.concatenate(all_of_it) for all_of_it in zip((excess, slopes), *sampled, strict=True))
    weights = np.array([penalties.exploration] + [penalties.cost] * len(members) * costs)
    return Linearisation(
        gain.T, excess.T, jnp.moveaxis(slopes, -1, 0), jnp.broadcast_to(jnp.asarray(weights, PLAN), excess.T.shape)
    )


def _slope(
    function: Callable[[Candidates], Float[Array, " C"]], actions: Candidates, unit: Actions
) -> tuple[Float[Array, " C"], Float[Array, "n C"]]:
    """A function of every candidate and its gradient; where that is not finite, it is taken for 0.

    Candidates do not depend on each other, so the gradient of the sum has that of each as a column.
    """

    def summed(actions: Candidates) -> tuple[Scalar, Float[Array, " C"]]:
        values = function(actions)
        return jnp.sum(values), values

    (_, values), slopes = jax.value_and_grad(summed, has_aux=True)(actions)
    finite = jnp.where(jnp.isfinite(slopes), slopes, 0) * unit[:, :, None]
    return jnp.where(jnp.isfinite(values), values, 0), finite.reshape(-1, finite.shape[-1])


def _free(plan: Actions, gain: Actions, low: Actions, high: Actions) -> Bool[Array, "H da"]:
    """Which actions may move: not those at an end of their range that the gradient would push beyond it."""
    return ~(((plan >= high) & (gain > 0)) | ((plan <= low) & (gain < 0)))


SMALLEST_GAIN = 1e-6
"""A gradient below this is no direction: it would be stretched to any length."""


def prox_linear_step(linear: Linearisation, free: Bool[Array, " n"], length: Scalar) -> Float[Array, " n"]:
    """d = alpha (g - G^T l), with the alpha for which alpha g has the given length, by root mean square."""
    g, G = jnp.where(free, linear.gain, 0), jnp.where(free[None, :], linear.slopes, 0)
    alpha = length * jnp.sqrt(jnp.asarray(len(g), g.dtype)) / jnp.maximum(jnp.linalg.norm(g), SMALLEST_GAIN)
    multiplier = multipliers(alpha * (G @ G.T), linear.excess + alpha * (G @ g), linear.weights)
    return alpha * (g - G.T @ multiplier)


SWEEPS = 20


def multipliers(Q: Float[Array, "q q"], b: Float[Array, " q"], w: Float[Array, " q"]) -> Float[Array, " q"]:
    """The minimiser of l . Q l / 2 - b . l over 0 <= l <= w, one coordinate after the other (Hildreth 1957)."""

    def sweep(_: Index, l: Float[Array, " q"]) -> Float[Array, " q"]:  # noqa: E741
        for j in range(len(b)):
            moved = l[j] + (b[j] - Q[j] @ l) / jnp.maximum(Q[j, j], jnp.finfo(Q.dtype).tiny)
            l = l.at[j].set(jnp.clip(moved, 0, w[j]))  # noqa: E741
        return l

    return jax.lax.fori_loop(0, SWEEPS, sweep, jnp.zeros_like(b))
