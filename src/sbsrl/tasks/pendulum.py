"""Swing up a pendulum without ever turning faster than 6 rad/s (appendix F of the paper).

State (cos th, sin th, omega), th = 0 upright; action in [-1, 1], torque 2 a. Semi-implicit Euler with dt = 0.05,
two substeps per control step, 50 control steps, starting at rest and hanging.
"""

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from .._jax import EXACT
from ..costs import Cost
from ..kernels import SquaredExponential
from ..model import Signals
from ..numerics import cos, sin
from ..prior import GPPrior, Prior
from ..systems.drawable import Drawing
from ..systems.equations import EquationsEnv
from ..task import Equations, Limits, Task
from ..types import Action, Index, PRNGKey, Scalar, State

__all__ = ["PRESETS", "PRIORS", "make"]

GRAVITY, MASS, LENGTH, DT, MAX_SPEED, MAX_TORQUE = 9.81, 1.0, 1.0, 0.05, 8.0, 2.0
SUBSTEPS = 2


def transition(x: State, a: Action, gravity: float = GRAVITY, max_torque: float = MAX_TORQUE) -> State:
    """One control step. The angle is advanced by rotating (cos th, sin th), which needs no arc tangent.

    The substeps are a loop because XLA would otherwise compute the first one anew for every output of the second.
    """
    c, s, omega = x
    radius = jnp.sqrt(c * c + s * s)
    c, s = c / radius, s / radius
    torque = max_torque * jnp.clip(a[0], -1.0, 1.0)

    def substep(_: Index, x: tuple[Scalar, Scalar, Scalar]) -> tuple[Scalar, Scalar, Scalar]:
        c, s, omega = x
        acceleration = 1.5 * gravity / LENGTH * s + 3.0 / (MASS * LENGTH**2) * torque
        omega = jnp.clip(omega + DT * acceleration, -MAX_SPEED, MAX_SPEED)
        turn = DT * omega
        return c * cos(turn) - s * sin(turn), s * cos(turn) + c * sin(turn), omega

    return jnp.stack(jax.lax.fori_loop(0, SUBSTEPS, substep, (c, s, omega)))


def imperfect_simulator(x: State, a: Action) -> State:
    """The pendulum as a careless engineer would model it: gravity 25 % too small, torque 30 % too large."""
    return transition(x, a, gravity=0.75 * GRAVITY, max_torque=1.3 * MAX_TORQUE)


def careful_simulator(x: State, a: Action) -> State:
    """The pendulum after some measurements: gravity 5 % too small, torque 5 % too large."""
    return transition(x, a, gravity=0.95 * GRAVITY, max_torque=1.05 * MAX_TORQUE)


def no_change(x: State, a: Action) -> State:
    """Nothing is known: the state is expected to stay as it is."""
    return x


def step(x: State, a: Action, key: PRNGKey) -> State:
    """The true system; it is free of noise."""
    return transition(x, a)


def reset(key: PRNGKey) -> State:
    """Hanging at rest."""
    return jnp.array([-1.0, 0.0, 0.0])


def reward(x: State, a: Action, y: State) -> Scalar:
    """r = -(Delta theta^2 + 0.1 omega^2 + 0.02 a^2), at the state before the step."""
    theta = jnp.arctan2(x[1], x[0])
    return -(theta**2 + 0.1 * x[2] ** 2 + 0.02 * a[0] ** 2)


def costs(x: State, a: Action, y: State) -> Float[Array, "1"]:
    """c = |omega|, at the state that the step leads to."""
    return jnp.abs(y[2:])


def sample_state(key: PRNGKey) -> State:
    """Any angle, |omega| <= 6."""
    theta, omega = jax.random.uniform(key, (2,), EXACT, -1.0, 1.0) * jnp.array([math.pi, 6.0])
    return jnp.stack([jnp.cos(theta), jnp.sin(theta), omega])


SIMULATOR = GPPrior(
    mean=imperfect_simulator,
    scale=(0.03, 0.03, 0.4),
    kernel=SquaredExponential((1.5, 1.5, 4.5, 2.25)),
    noise=2.5e-3,
    bound=20.0,
    bound_source="assumed: about twice the largest lower bound that was computed (results/pendulum/mismatch.md)",
)

CAREFUL = replace(
    SIMULATOR,
    mean=careful_simulator,
    scale=(0.006, 0.006, 0.08),
    bound_source="assumed: that of the prior 'simulator', whose errors and scale are both about five times as large",
)

NOTHING = GPPrior(
    mean=no_change,
    scale=(0.4, 0.4, 1.5),
    kernel=SquaredExponential((1.0, 1.0, 3.0, 1.5)),
    noise=1e-3,
    bound=None,
    bound_source="not known: without prior knowledge there is nothing to bound the mismatch with",
)

PRIORS = {
    "simulator": Prior("simulator", informative=True, gp=SIMULATOR),
    "careful": Prior("careful", informative=True, gp=CAREFUL),
    "none": Prior("none", informative=False, gp=NOTHING),
}

PRESETS = {
    "cpu": {"prior": "simulator", "budget": 6.0, "tightening": 0.1, "exploration_threshold": 500.0},
}
"""What the task sets, by preset; `cpu` holds for all."""

SIGNALS = Signals(reward, costs)
EQUATIONS = Equations(reset, step, transition, SIGNALS, noise=(0.0, 0.0, 0.0))
LOW, HIGH, HORIZON = (-1.0,), (1.0,), 50
INPUTS = (1.0, 1.0, MAX_SPEED, 1.0)


def open_system(render_mode: str | None = None, limit: float = 6.0) -> EquationsEnv:
    """The true pendulum; pictures show `limit` as what it must not exceed."""

    def picture(states: Float[np.ndarray, "t 3"]) -> UInt8[np.ndarray, "h w 3"]:
        from .pictures.pendulum import draw  # noqa: PLC0415  (only who draws needs Pillow)

        return draw(states, limit)

    drawing = Drawing(picture, 1 / (SUBSTEPS * DT))
    return EquationsEnv(EQUATIONS, LOW, HIGH, HORIZON, render_mode=render_mode, drawing=drawing)


def make(prior: Prior = PRIORS["simulator"], budgets: tuple[float, ...] = (6.0,)) -> Task:
    """The task, with the prior knowledge that the learner starts from."""
    return Task(
        name="pendulum",
        state_names=("cos th", "sin th", "omega"),
        action_low=LOW,
        action_high=HIGH,
        horizon=HORIZON,
        costs=(Cost("fastest turn |omega| (rad/s)", budgets[0], "statewise", (0.0, MAX_SPEED)),),
        start=reset,
        fixed_start=(-1.0, 0.0, 0.0),
        open=partial(open_system, limit=budgets[0]),
        prior=prior,
        signals=SIGNALS,
        equations=EQUATIONS,
        limits=Limits(INPUTS, reward=(-(math.pi**2 + 0.1 * MAX_SPEED**2 + 0.02), 0.0)),
        sample_state=sample_state,
        safe_action=(0.0,),
    )
