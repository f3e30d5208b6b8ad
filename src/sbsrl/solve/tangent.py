"""Rollouts that are cheap to differentiate: the dynamics is linearised along the trajectories, at all steps at once.

    x_{t+1} = f(x_t, a_t) + A_t dx_t + B_t da_t,   dx_0 = 0,   [A_t B_t] the derivative of f at (x_t, a_t)

Where dx and da are 0, values and first derivatives are those of the rollout itself. Going backwards through the sums
over data (`belief/blocks.py`) would store what each of their sizes needs, also of those not used: four times slower.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..problem import Candidates, Trajectories, at_many, rollouts, side_by_side
from ..types import Dynamics, State

__all__ = ["jacobians", "tangent_rollouts"]


def tangent_rollouts(dynamics: Dynamics, x: State, actions: Candidates) -> Trajectories:
    """`rollouts`, to be differentiated once with respect to the actions."""
    fixed = jax.lax.stop_gradient(actions)
    states = rollouts(dynamics, x, fixed)
    slopes = jacobians(dynamics, states, fixed)

    def step(dx: Float[Array, "dx C"], now: tuple[Array, Array]) -> tuple[Float[Array, "dx C"], Float[Array, "dx C"]]:
        slope, da = now
        dy = jnp.sum(slope * jnp.concatenate([dx, da])[:, None], axis=0)
        return dy, dy

    _, change = jax.lax.scan(step, jnp.zeros_like(states[0]), (slopes, actions - fixed))
    return states.at[1:].add(change)


def jacobians(dynamics: Dynamics, states: Trajectories, actions: Candidates) -> Float[Array, "H dz dx C"]:
    """The derivative of the next state with respect to each coordinate of (x_t, a_t), for all steps and candidates."""
    steps, _, count = actions.shape
    dx, many = states.shape[1], at_many(dynamics)
    z = jnp.concatenate([side_by_side(states[:-1]), side_by_side(actions)])

    def along(direction: Float[Array, " dz"]) -> Float[Array, "dx HC"]:
        every = jnp.broadcast_to(direction[:, None], z.shape)
        return jax.jvp(lambda z: many(z[:dx], z[dx:]), (z,), (every,))[1]

    slopes = jax.vmap(along)(jnp.eye(len(z), dtype=z.dtype))
    return jnp.moveaxis(slopes.reshape(len(z), dx, steps, count), 2, 0)
