"""The control suite's cartpole, written down: what MuJoCo computes for it, as functions that can be differentiated.

It is no substitute for MuJoCo, on which the task is played. It judges policies from many initial states at once, and it
is the truth that a reference solver may know; tests compare it with MuJoCo step by step.

A cart of mass m_c on a slider and a pole of mass m_p, whose centre is l from the hinge; th = 0 upright. Fourth-order
Runge-Kutta steps of 0.01 s; the ends of the slider are MuJoCo's soft limits.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..types import Action, Scalar, State
from .runge_kutta import runge_kutta

__all__ = ["After", "after_steps", "observed", "reward"]

STEP = 0.01
GRAVITY, GEAR = 9.81, 10.0
CART, POLE, CENTRE = 1.0, 0.1, 0.5
INERTIA = 0.009424592767295598
"""Of the pole, a capsule, about its centre."""
CART_DAMPING, HINGE_DAMPING = 5e-4, 2e-6
END = 1.8
"""Of the slider, either side."""
LIMIT_TIME, SOFTEST, HARDEST, SOFT_WIDTH, INVERSE_WEIGHT = 0.08, 0.9, 0.95, 1e-3, 0.9733520544614127
"""MuJoCo's `solref`, `solimp` and `dof_invweight0` of the slider."""


class Place(NamedTuple):
    """Generalised positions and velocities."""

    p: Scalar
    th: Scalar
    v: Scalar
    omega: Scalar


class After(NamedTuple):
    """The places after each of some steps."""

    p: Float[Array, " n"]
    th: Float[Array, " n"]
    v: Float[Array, " n"]
    omega: Float[Array, " n"]


def placed(x: State) -> Place:
    """Of an observation (p, cos th, sin th, v, omega)."""
    return Place(x[0], jnp.arctan2(x[2], x[1]), x[3], x[4])


def observed(place: Place) -> State:
    """The observation of a place."""
    return jnp.stack([place.p, jnp.cos(place.th), jnp.sin(place.th), place.v, place.omega])


def accelerations(place: Place, control: Scalar) -> tuple[Scalar, Scalar]:
    """Of cart and pole: M(th) q'' = forces, with the force of the slider's end where the cart is beyond it."""
    c, s = jnp.cos(place.th), jnp.sin(place.th)
    total, coupled, turning = CART + POLE, POLE * CENTRE * c, INERTIA + POLE * CENTRE**2
    push = GEAR * control - CART_DAMPING * place.v + POLE * CENTRE * s * place.omega**2
    twist = POLE * GRAVITY * CENTRE * s - HINGE_DAMPING * place.omega
    determinant = total * turning - coupled**2
    free = (turning * push - coupled * twist) / determinant
    push = push + _end_force(place, free, turning / determinant)
    return (turning * push - coupled * twist) / determinant, (total * twist - coupled * push) / determinant


def _end_force(place: Place, free: Scalar, response: Scalar) -> Scalar:
    """On the cart, towards the middle: MuJoCo's soft constraint for a single joint limit, which it solves exactly."""
    side = jnp.where(place.p > 0, -1.0, 1.0)
    depth = END - jnp.abs(place.p)
    sharp = jnp.clip(-depth / SOFT_WIDTH, 0.0, 1.0)
    rise = jnp.where(sharp <= 0.5, 2 * sharp**2, 1 - 2 * (1 - sharp) ** 2)
    impedance = SOFTEST + rise * (HARDEST - SOFTEST)
    wanted = -2 / (HARDEST * LIMIT_TIME) * side * place.v - impedance * depth / (HARDEST * LIMIT_TIME) ** 2
    softness = (1 - impedance) / impedance * INVERSE_WEIGHT
    force = jnp.maximum(wanted - side * free, 0) / (response + softness)
    return jnp.where(depth < 0, side * force, 0)


def one_step(place: Place, control: Scalar) -> Place:
    """0.01 s on."""
    return runge_kutta(lambda at: Place(at.v, at.omega, *accelerations(at, control)), place, STEP)


def after_steps(x: State, a: Action, count: int) -> tuple[Place, After]:
    """The last place and all places of so many steps with this action, which is clipped to what the motor can do."""
    control = jnp.clip(a[0], -1.0, 1.0).astype(x.dtype)

    def step(place: Place, _: None) -> tuple[Place, Place]:
        new = one_step(place, control)
        return new, new

    last, each = jax.lax.scan(step, placed(x), None, length=count)
    return last, After(*each)


def reward(a: Action, after: After) -> Float[Array, " n"]:
    """The suite's, after each step: upright, in the middle, turning slowly, with little force."""
    upright = (jnp.cos(after.th) + 1) / 2
    centred = (1 + _near_zero(after.p, 2.0)) / 2
    slow = (1 + _near_zero(after.omega, 5.0)) / 2
    gentle = (4 + jnp.maximum(1 - jnp.clip(a[0], -1.0, 1.0) ** 2, 0)) / 5
    return upright * centred * slow * gentle.astype(upright.dtype)


VALUE_AT_MARGIN = 0.1


def _near_zero(x: Float[Array, " n"], margin: float) -> Float[Array, " n"]:
    """1 at 0, and 0.1 at the margin: a Gaussian."""
    return jnp.exp(-0.5 * (x / margin) ** 2 * (-2 * jnp.log(VALUE_AT_MARGIN)))
