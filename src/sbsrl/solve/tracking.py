"""A plan for a whole episode that is followed with feedback: what an episode does not go as planned for is corrected.

    a_t = clip(a^_t + K_t (x_t - x^_t)),   x^ the nominal trajectory of the actions a^

K_t is the regulator of the dynamics linearised along that trajectory: it minimises the sum over the episode of

    sum_i (dx_i / s_i)^2 + effort sum_j (da_j / h_j)^2,   s the size of a mismatch of one step, h half the action range

With A_t, B_t the derivatives of mu_n, Q = diag(1 / s^2) and R = effort diag(1 / h^2), backwards from P_T = Q:

    K_t = -(R + B^T P B)^-1 B^T P A,   P <- Q + A^T P (A + B K_t)
"""

from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._jax import EXACT, PLAN
from ..kernels.base import cast
from ..model import Model
from ..policy import Metrics
from ..problem import (
    Candidates,
    Excess,
    Penalties,
    Problem,
    Trajectories,
    at_many,
    information,
    nominal_returns,
    over_costs,
    path_costs,
    surplus_of,
)
from ..types import Action, Actions, Index, PRNGKey, State, States
from .scoring import NOMINAL_BLOCK, Pool, Scores, counted, nominal_in_blocks
from .tangent import jacobians

__all__ = ["Plans", "Regulator", "Tracked", "Tracking", "tracked_rollouts"]

Gains = Float[Array, "H da dx C"]


class Regulator(eqx.Module):
    """How deviations are weighed against the actions that correct them."""

    size: tuple[float, ...] = eqx.field(static=True)
    """s: what a deviation of each state is compared with."""
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)
    effort: float = eqx.field(static=True, default=1.0)

    def gains(self, problem: Problem, states: Trajectories, actions: Candidates) -> Gains:
        """K_0 .. K_{H-1} of every candidate, about its nominal trajectory."""
        dx = states.shape[1]
        slopes = jnp.transpose(jacobians(problem.nominal, states, actions), (0, 3, 2, 1)).astype(
            EXACT
        )  # [H, C, dx, dz]
        half = (jnp.asarray(self.high, EXACT) - jnp.asarray(self.low, EXACT)) / 2
        q, r = jnp.diag(1 / jnp.asarray(self.size, EXACT) ** 2), jnp.diag(self.effort / half**2)

        def back(p: Float[Array, "C dx dx"], slope: Float[Array, "C dx dz"]) -> tuple[Array, Array]:
            a, b = slope[:, :, :dx], slope[:, :, dx:]
            turned = jnp.swapaxes(b, 1, 2) @ p
            k = -jnp.linalg.solve(r[None] + turned @ b, turned @ a)
            after = q[None] + jnp.swapaxes(a, 1, 2) @ p @ (a + b @ k)
            return (after + jnp.swapaxes(after, 1, 2)) / 2, k

        last = jnp.broadcast_to(q[None], (states.shape[-1], dx, dx))
        _, k = jax.lax.scan(back, last, slopes, reverse=True)
        return jnp.moveaxis(k, 1, -1).astype(PLAN)

    def clip(self, a: Float[Array, "da *C"]) -> Float[Array, "da *C"]:
        low, high = (jnp.asarray(end, a.dtype).reshape(-1, *(1,) * (a.ndim - 1)) for end in (self.low, self.high))
        return jnp.clip(a, low, high)


class Plans(NamedTuple):
    """Candidates with all that following them takes."""

    actions: Candidates
    states: Trajectories
    gains: Gains

    def take(self, rows: Array) -> "Plans":
        return Plans(*(part[..., rows] for part in self))


def tracked_rollouts(model: Model, x: State, plans: Plans, regulator: Regulator) -> tuple[Trajectories, Candidates]:
    """x_0 .. x_H of every candidate on a model that it did not expect, and the actions that were taken."""
    many = at_many(model)

    def step(x: Float[Array, "dx C"], now: tuple[Array, Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        planned, expected, gain = now
        a = regulator.clip(planned + jnp.sum(gain * (x - expected)[None], axis=1))
        y = many(x, a)
        return y, (y, a)

    start = jnp.broadcast_to(x[:, None], (x.shape[0], plans.actions.shape[-1]))
    _, (after, taken) = jax.lax.scan(step, start, (plans.actions, plans.states[:-1], plans.gains))
    return jnp.concatenate([start[None], after]), taken


class Tracked(eqx.Module):
    """A candidate is a sequence of actions for the whole episode, and safe if following it with feedback is."""

    regulator: Regulator

    def score(self, problem: Problem, weights: Penalties, x: State, pool: Pool, alive: Bool[Array, " P"]) -> Scores:
        actions = jnp.moveaxis(pool, 0, -1)
        count = counted(alive)
        returns, states = _single(nominal_in_blocks(*_double(problem, x, actions), count))
        plans = Plans(actions, states, self._gains(problem, states, actions, count))

        def hinge(rows: Array, m: Index) -> Excess:
            chosen = plans.take(rows)

            def costs(model: Model, key: PRNGKey) -> Float[Array, "k C"]:
                return path_costs(problem, model, *tracked_rollouts(model, x, chosen, self.regulator))

            return over_costs(surplus_of(problem, m, costs))

        def gather(rows: Array) -> Float[Array, " C"]:
            return information(problem, states[:, :, rows], actions[:, :, rows])

        return Scores(problem, returns, gather, hinge)

    def _gains(self, problem: Problem, states: Trajectories, actions: Candidates, count: Index) -> Gains:
        """In blocks, as far as they matter."""
        size = actions.shape[-1]
        blocks = -(-size // NOMINAL_BLOCK)
        beyond = ((0, 0), (0, 0), (0, blocks * NOMINAL_BLOCK - size))
        padded = jnp.pad(states, beyond, mode="edge"), jnp.pad(actions, beyond, mode="edge")

        def evaluate(i: Index) -> Gains:
            part = [jax.lax.dynamic_slice_in_dim(each, i * NOMINAL_BLOCK, NOMINAL_BLOCK, axis=-1) for each in padded]
            return self.regulator.gains(problem, *part)

        def skip(i: Index) -> Gains:
            return jnp.zeros((*actions.shape[:2], states.shape[1], NOMINAL_BLOCK), PLAN)

        each = jax.lax.map(
            lambda i: jax.lax.cond(i * NOMINAL_BLOCK < count, evaluate, skip, i), jnp.arange(blocks, dtype=jnp.int32)
        )
        return jnp.moveaxis(each, 0, -2).reshape(*each.shape[1:4], -1)[..., :size]


class Tracking(eqx.Module):
    """pi_n: a plan for the whole episode, followed with feedback."""

    actions: Actions
    states: States
    """What is expected: one state for each action."""
    gains: Float[Array, "H da dx"]
    regulator: Regulator

    @classmethod
    @eqx.filter_jit
    def of(cls, problem: Problem, x: State, actions: Actions, regulator: Regulator) -> "Tracking":
        """The policy of a plan from x."""
        _, states = _single(nominal_returns(*_double(problem, x, actions[..., None])))
        gains = regulator.gains(problem, states, actions[..., None])
        return cls(actions, states[:-1, :, 0], gains[..., 0], regulator)

    def init(self) -> Index:
        """The number of the step."""
        return jnp.zeros((), jnp.int32)

    def act(self, x: State, state: Index, key: PRNGKey) -> tuple[Action, Index, Metrics]:
        return _follow(self, x, state), state + 1, {}


def _double(problem: Problem, x: State, actions: Candidates) -> tuple[Problem, State, Candidates]:
    """What nominal trajectories are computed from, in double precision.

    An episode without feedback amplifies rounding: in single precision two programs disagree whether a pendulum that
    stands falls before the end, and a policy would follow another trajectory than the one its plan was chosen for. The
    state is rounded to the precision of planning first, as the search has it.
    """
    nominal = cast(problem.nominal, EXACT)
    return replace(problem, nominal=nominal), x.astype(PLAN).astype(EXACT), actions.astype(EXACT)


def _single(found: tuple[Float[Array, " C"], Trajectories]) -> tuple[Float[Array, " C"], Trajectories]:
    """Returns and states in the precision of planning."""
    returns, states = found
    return returns.astype(PLAN), states.astype(PLAN)


@eqx.filter_jit
def _follow(policy: Tracking, x: State, t: Index) -> Action:
    t = jnp.minimum(t, len(policy.actions) - 1)
    planned, expected, gain = (part[t].astype(x.dtype) for part in (policy.actions, policy.states, policy.gains))
    return policy.regulator.clip(planned + gain @ (x - expected))
