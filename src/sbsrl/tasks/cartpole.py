"""Swing up a pole on a cart that must not leave its rail, |p| <= 1.5 m (appendix F of the paper).

State (p, cos th, sin th, v, omega), th = 0 hanging; action in [-1, 1], force 15 a. Forward Euler on (p, th, v, omega)
with dt = 0.05, two substeps per control step, 50 control steps, starting at rest and hanging in the middle of the rail.
"""

import math
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from .._jax import EXACT
from ..archive import read_arrays
from ..costs import Cost
from ..kernels import FiniteRank, Product, SquaredExponential
from ..model import Signals
from ..numerics import cos, sin
from ..prior import GPPrior, Prior
from ..systems.drawable import Drawing
from ..systems.equations import EquationsEnv
from ..task import Equations, Limits, Task
from ..transitions import Transitions
from ..types import Action, Index, Input, PRNGKey, Scalar, State

__all__ = ["PRESETS", "PRIORS", "make"]

GRAVITY, CART, POLE, LENGTH, DT, MAX_FORCE = 9.81, 5.0, 1.0, 1.0, 0.05, 15.0
SUBSTEPS = 2


def transition(x: State, a: Action, gravity: float = GRAVITY, max_force: float = MAX_FORCE) -> State:
    """One control step.

    The accelerations solve the equations of motion of a cart M with a point mass m at the end of a massless pole l:

        (M + m) p'' + m l cos(th) th'' = F + m l th'^2 sin(th),      cos(th) p'' + l th'' = -g sin(th).

    As for the pendulum, the angle is advanced by a rotation, and the substeps are a loop.
    """
    p, c, s, v, omega = x
    radius = jnp.sqrt(c * c + s * s)
    c, s = c / radius, s / radius
    force = max_force * jnp.clip(a[0], -1.0, 1.0)

    def substep(_: Index, x: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        p, c, s, v, omega = x
        pull = force + POLE * LENGTH * omega**2 * s
        inertia = CART + POLE * s * s
        v_dot = (pull + POLE * gravity * s * c) / inertia
        omega_dot = -((POLE + CART) * gravity * s + c * pull) / (LENGTH * inertia)
        turn = DT * omega
        return (
            p + DT * v,
            c * cos(turn) - s * sin(turn),
            s * cos(turn) + c * sin(turn),
            v + DT * v_dot,
            omega + DT * omega_dot,
        )

    return jnp.stack(jax.lax.fori_loop(0, SUBSTEPS, substep, (p, c, s, v, omega)))


def imperfect_simulator(x: State, a: Action) -> State:
    """The cartpole as its data sheet has it: a motor 2.5 times as strong as the real one, gravity 10 % too small."""
    return transition(x, a, gravity=0.9 * GRAVITY, max_force=2.5 * MAX_FORCE)


def kinematics(x: State, a: Action) -> State:
    """All that is known without weighing anything: cart and pole go on as fast as they are. No force is known."""
    p, c, s, v, omega = x
    turn = SUBSTEPS * DT * omega
    return jnp.stack([p + SUBSTEPS * DT * v, c * cos(turn) - s * sin(turn), s * cos(turn) + c * sin(turn), v, omega])


def step(x: State, a: Action, key: PRNGKey) -> State:
    """The true system; it is free of noise."""
    return transition(x, a)


def reset(key: PRNGKey) -> State:
    """Hanging at rest in the middle of the rail."""
    return jnp.array([0.0, 1.0, 0.0, 0.0, 0.0])


def reward(x: State, a: Action, y: State) -> Scalar:
    """r = -(Delta theta^2 + p^2 + 0.1 (v^2 + omega^2)) - 0.01 a^2, at the state before the step."""
    p, c, s, v, omega = x
    theta = jnp.arctan2(-s, -c)
    return -(theta**2 + p**2 + 0.1 * (v**2 + omega**2) + 0.01 * a[0] ** 2)


def costs(x: State, a: Action, y: State) -> Float[Array, "1"]:
    """c = |p|, at the state that the step leads to."""
    return jnp.abs(y[:1])


def sample_state(key: PRNGKey) -> State:
    """Uniform where the paper's offline data are: |p| <= 1, any angle, |v| <= 5, |omega| <= 5."""
    p, theta, v, omega = jax.random.uniform(key, (4,), EXACT, -1.0, 1.0) * jnp.array([1.0, math.pi, 5.0, 5.0])
    return jnp.stack([p, jnp.cos(theta), jnp.sin(theta), v, omega])


def forces(z: Input) -> Float[Array, "2"]:
    """What the mismatch is proportional to: the action, since it is the motor that is not known; and a little, always.

    The kernel's other factor lets the proportions vary: over a quarter of a metre along the rail, slowly with the rest.
    """
    return jnp.stack([jnp.clip(z[-1], -1.0, 1.0), jnp.full_like(z[-1], 0.3)])


def recorded() -> Transitions:
    """100 transitions of careful random actions (`sbsrl collect cartpole`)."""
    arrays = read_arrays(Path(__file__).parent / "data" / "cartpole.npz")
    return Transitions(*(arrays[name] for name in Transitions._fields))


SIMULATOR = GPPrior(
    mean=imperfect_simulator,
    scale=(0.01, 0.015, 0.015, 0.3, 0.3),
    kernel=Product(FiniteRank(forces, 2, 1.09), SquaredExponential((0.25, 2.0, 2.0, 6.0, 6.0, 100.0))),
    noise=2.5e-3,
    bound=60.0,
    bound_source="assumed: about twice the largest lower bound that was computed (results/cartpole/mismatch.md)",
)

NOTHING = GPPrior(
    mean=kinematics,
    scale=(0.02, 0.05, 0.05, 0.4, 1.0),
    kernel=SquaredExponential((2.0, 1.5, 1.5, 3.0, 5.0, 2.5)),
    noise=1e-3,
    bound=None,
    bound_source="not known: without prior knowledge there is nothing to bound the mismatch with",
)

PRIORS = {
    "offline": Prior("offline", informative=True, gp=SIMULATOR, data=recorded()),
    "none": Prior("none", informative=False, gp=NOTHING),
}

PRESETS = {
    "cpu": {
        "prior": "offline",
        "budget": 1.5,
        "tightening": 0.05,
        "exploration_threshold": 600.0,
        "slack": 0.3,
    },
}
"""What the task sets, by preset; `cpu` holds for all."""

SIGNALS = Signals(reward, costs)
EQUATIONS = Equations(reset, step, transition, SIGNALS, noise=(0.0, 0.0, 0.0, 0.0, 0.0))
LOW, HIGH, HORIZON = (-1.0,), (1.0,), 50
INPUTS = (math.inf, 1.0, 1.0, math.inf, math.inf, 1.0)


def open_system(render_mode: str | None = None, limit: float = 1.5) -> EquationsEnv:
    """The true cartpole; pictures show `limit` as what it must not exceed."""

    def picture(states: Float[np.ndarray, "t 5"]) -> UInt8[np.ndarray, "h w 3"]:
        from .pictures.cartpole import draw  # noqa: PLC0415  (only who draws needs Pillow)

        return draw(states, limit)

    drawing = Drawing(picture, 1 / (SUBSTEPS * DT))
    return EquationsEnv(EQUATIONS, LOW, HIGH, HORIZON, render_mode=render_mode, drawing=drawing)


def make(prior: Prior = PRIORS["offline"], budgets: tuple[float, ...] = (1.5,)) -> Task:
    """The task, with the prior knowledge that the learner starts from."""
    return Task(
        name="cartpole",
        state_names=("p", "cos th", "sin th", "v", "omega"),
        action_low=LOW,
        action_high=HIGH,
        horizon=HORIZON,
        costs=(Cost("farthest from the middle |p| (m)", budgets[0], "statewise"),),
        start=reset,
        fixed_start=(0.0, 1.0, 0.0, 0.0, 0.0),
        open=partial(open_system, limit=budgets[0]),
        prior=prior,
        signals=SIGNALS,
        equations=EQUATIONS,
        limits=Limits(INPUTS, reward=(-math.inf, 0.0)),
        sample_state=sample_state,
        safe_action=(0.0,),
    )
