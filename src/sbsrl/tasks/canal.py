"""A boat in a canal, whose engine pulls it aside: only in the basin behind it can that be found out without harm.

State (x, y) in metres; action (u_x, u_y, e) in [-1, 1]^3. Where e <= 0 the boat is rowed, 0.6 m per step at most, and
goes where it is steered. Where e > 0 the engine runs, and knows no half: it moves the boat by 2 m along its heading,
turned by 34 degrees (the prop walk of a single screw). A slight current is everywhere. 40 steps, starting at (0, 0), in
the mouth of the canal; the quay is at (25, 0), the basin, a disc of radius 20 m, is behind.

The reward is to be near the quay, so it leads away from the basin. In the canal no step under engine is safe on every
sample, and rowing teaches nothing about the engine: who only wants reward rows for ever. Who has tried the engine in
the basin steers against its pull, and is there in a third of the time.
"""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from ..costs import Cost
from ..kernels import FiniteRank, Product, Scaled, SquaredExponential, Sum
from ..model import Signals
from ..prior import GPPrior, Prior
from ..systems.drawable import Drawing
from ..systems.equations import EquationsEnv
from ..task import Equations, Limits, Task
from ..types import Action, Input, PRNGKey, Scalar, State

__all__ = ["PRESETS", "PRIORS", "make"]

OARS, ENGINE = 0.6, 2.0
"""Metres per control step."""
WALK, CURRENT = 0.6, 0.01
"""By how many radians the engine turns the boat's way, and metres of current per control step."""
QUAY, BASIN, RADIUS, HALF_WIDTH = 25.0, -20.0, 20.0, 1.5
"""Where the canal ends, the middle and the radius of the basin, and how far from its middle line the canal is safe."""
FUEL = 0.05
"""What a step under engine costs: as much as half a metre."""
TINY = 1e-6
"""Square metres under roots, so that slopes exist at 0."""


def length(v: Float[Array, "2"]) -> Scalar:
    """|v|, with a slope everywhere."""
    return jnp.sqrt(jnp.sum(v**2) + TINY)


def heading(u: Float[Array, "2"]) -> Float[Array, "2"]:
    """u / |u|."""
    return u / length(u)


def transition(x: State, a: Action, walk: float = WALK, current: float = CURRENT) -> State:
    """One control step: rowed by u, cut to its length 1; or along the turned heading; and carried by the current."""
    u, running = a[:2], a[2] > 0
    ahead = heading(u)
    turned = math.cos(walk) * ahead + math.sin(walk) * jnp.stack([-ahead[1], ahead[0]])
    rowed = u / jnp.maximum(1.0, length(u))
    drift = jnp.stack([jnp.sin(0.1 * x[0] + 0.3 * x[1]), jnp.cos(0.2 * x[0])])
    return x + jnp.where(running, ENGINE * turned, OARS * rowed) + current * drift


def still_water(x: State, a: Action) -> State:
    """The boat as one expects it: the engine goes straight ahead, and there is no current."""
    return transition(x, a, walk=0.0, current=0.0)


def step(x: State, a: Action, key: PRNGKey) -> State:
    """The true system; it is free of noise."""
    return transition(x, a)


def reset(key: PRNGKey) -> State:
    """In the mouth of the canal."""
    return jnp.zeros(2)


def reward(x: State, a: Action, y: State) -> Scalar:
    """r = -|x - quay| / 10 m, at the state before the step, less the fuel."""
    return -length(x - jnp.array([QUAY, 0.0], x.dtype)) / 10 - jnp.where(a[2] > 0, FUEL, 0.0)


def costs(x: State, a: Action, y: State) -> Float[Array, "1"]:
    """c: how far the state that the step leads to is from the fairway: the basin, and the middle of the canal."""
    middle = jnp.stack([jnp.clip(y[0], BASIN, QUAY), jnp.zeros_like(y[1])])
    to_basin = length(y - jnp.array([BASIN, 0.0], y.dtype)) - RADIUS
    return jnp.maximum(jnp.minimum(length(y - middle), to_basin), 0.0)[None]


def running(z: Input) -> Float[Array, "2"]:
    """What the mismatch is proportional to: the heading, where the engine runs. How it pulls is an unknown matrix."""
    return jnp.where(z[4] > 0, heading(z[2:4]), 0.0)


PULL, FLOW = 1.2, 0.01
"""Metres per step by which the engine may pull, and the water flow: standard deviations."""

UNTRIED = GPPrior(
    mean=still_water,
    scale=(PULL, PULL),
    kernel=Sum(
        Product(FiniteRank(running, 2, 1.0), SquaredExponential((200.0, 200.0, 3.0, 3.0, 100.0))),
        Scaled((FLOW / PULL) ** 2, SquaredExponential((5.0, 5.0, 100.0, 100.0, 100.0))),
    ),
    noise=0.01,
    bound=None,
    bound_source="not known: nobody has tried the engine",
)

PRIORS = {"untried": Prior("untried", informative=True, gp=UNTRIED)}

PRESETS = {
    "cpu": {
        "prior": "untried",
        "budget": HALF_WIDTH,
        "tightening": 0.2,
        "exploration_threshold": 280.0,
        "samples": 20,
        "episodes": 8,
        "icem.colour": 1.0,
    },
}
"""What the task sets, by preset; `cpu` holds for all.

Before any data the first plan promises 320 to 630 nats (seeds 100 to 111), and rowing alone gives about 40. The noise
of the search is less coloured than elsewhere, since good plans turn back and forth.
"""

SIGNALS = Signals(reward, costs)
EQUATIONS = Equations(reset, step, transition, SIGNALS, noise=(0.0, 0.0))
LOW, HIGH, HORIZON = (-1.0, -1.0, -1.0), (1.0, 1.0, 1.0), 40
INPUTS = (math.inf, math.inf, 1.0, 1.0, 1.0)
STEPS_PER_SECOND = 4.0
"""Of a film."""


def open_system(render_mode: str | None = None, limit: float = HALF_WIDTH) -> EquationsEnv:
    """The true boat; pictures show water up to `limit` from the fairway."""

    def picture(states: Float[np.ndarray, "t 2"]) -> UInt8[np.ndarray, "h w 3"]:
        from .pictures.canal import Water, draw  # noqa: PLC0415  (only who draws needs Pillow)

        return draw(states, Water(BASIN, RADIUS, QUAY, limit))

    drawing = Drawing(picture, STEPS_PER_SECOND)
    return EquationsEnv(EQUATIONS, LOW, HIGH, HORIZON, render_mode=render_mode, drawing=drawing)


def make(prior: Prior = PRIORS["untried"], budgets: tuple[float, ...] = (HALF_WIDTH,)) -> Task:
    """The task, with the prior knowledge that the learner starts from."""
    return Task(
        name="canal",
        state_names=("x", "y"),
        action_low=LOW,
        action_high=HIGH,
        horizon=HORIZON,
        costs=(Cost("farthest from the fairway (m)", budgets[0], "statewise"),),
        start=reset,
        fixed_start=(0.0, 0.0),
        open=partial(open_system, limit=budgets[0]),
        prior=prior,
        signals=SIGNALS,
        equations=EQUATIONS,
        limits=Limits(INPUTS, reward=(-math.inf, 0.0)),
        safe_action=(0.0, 0.0, -1.0),
    )
