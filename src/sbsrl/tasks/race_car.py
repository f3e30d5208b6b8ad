"""Drive a small race car around obstacles to a goal, 60 commands per second (appendix G of the paper).

The car moves as a point of a blended bicycle model: kinematic when it is slow or reverses, with the tyre forces of
Pacejka otherwise. A frame is (p_x, p_y, sin th, cos th, v_x, v_y, omega), velocities in the frame of the track. The
observation is a window: the last five frames, oldest first, then the last five commands (steering, throttle). A
command takes effect one step late; the newest command of the window is the one that acts next, so that nothing that
matters is hidden, and the window is a state.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from .._jax import EXACT
from ..costs import Cost
from ..model import KnownSignals, Signals
from ..policy import Metrics
from ..prior import Prior
from ..structure import CostStructure, Structure
from ..systems.drawable import Drawing
from ..systems.equations import EquationsEnv
from ..systems.runge_kutta import runge_kutta
from ..task import Equations, Task
from ..types import Action, PRNGKey, Scalar, State
from ..validation import Word, declared, validate

FRAMES, FRAME, COMMAND = 5, 7, 2
NEWEST = slice((FRAMES - 1) * FRAME, FRAMES * FRAME)
"""The newest frame."""
PENDING = slice(FRAMES * FRAME + (FRAMES - 1) * COMMAND, FRAMES * (FRAME + COMMAND))
"""The newest command, which acts in the next step."""
SIZE = FRAMES * (FRAME + COMMAND)

RATE, SUBSTEPS, HORIZON = 60.0, 2, 250
MASS, FRONT, REAR, INERTIA, GRAVITY = 1.65, 0.13, 0.17, 0.06, 9.81
D_FRONT, C_FRONT, B_FRONT = 0.4, 1.45, 2.75
D_REAR, C_REAR, B_REAR = 0.3, 1.3, 5.0
MOTOR, FRICTION = 30.0, 1.25
STEERING, THROTTLE = 0.6, 0.4
"""Radians of the wheels, and share of the motor, at a command of 1."""
SLOW, FAST = 0.1, 0.3
"""m/s forwards: below the first the kinematic model holds, above the second that of the tyres, between a blend.

The public configuration blends at 3e-4 m/s, where slip angles are ratios of tiny numbers and no integrator has an
order.
"""
SETTLING = 0.02
"""Seconds in which the kinematic model's lateral velocity and yaw rate follow the wheels."""

GOAL_RADIUS, OBSTACLE_RADIUS = 0.35, 0.25
OBSTACLES = ((0.75, -0.55), (0.75, -0.15), (0.75, 0.25), (0.75, 0.65))
START, START_SPREAD = (1.42, -1.04, math.pi), (0.1, 0.1, 0.1 * math.pi)
DRAG = 0.7
"""By how much a sticky obstacle multiplies velocity and yaw rate in every step in it."""

Contact = Literal["sticky", "ghost"]


class Car(NamedTuple):
    """The physical state: position, heading, forward and lateral velocity in the frame of the car, yaw rate."""

    p_x: Scalar
    p_y: Scalar
    heading: Scalar
    forward: Scalar
    lateral: Scalar
    yaw_rate: Scalar


def derivative(car: Car, command: Float[Array, "2"]) -> Car:
    """The time derivative of the physical state under (steering, throttle)."""
    steer = STEERING * command[0]
    drive = MOTOR * THROTTLE * command[1] - FRICTION**2 * car.forward
    share = jnp.clip((car.forward - SLOW) / (FAST - SLOW), 0.0, 1.0)
    share = share * share * (3 - 2 * share)
    rates = [
        share * a + (1 - share) * b
        for a, b in zip(_tyres(car, steer, drive), _kinematic(car, steer, drive), strict=True)
    ]
    c, s = jnp.cos(car.heading), jnp.sin(car.heading)
    return Car(car.forward * c - car.lateral * s, car.forward * s + car.lateral * c, car.yaw_rate, *rates)


def _tyres(car: Car, steer: Scalar, drive: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Accelerations (forward, lateral, yaw) with Pacejka's tyre forces."""
    speed = jnp.maximum(car.forward, SLOW)
    slip_front = steer - jnp.arctan((car.yaw_rate * FRONT + car.lateral) / speed)
    slip_rear = jnp.arctan((car.yaw_rate * REAR - car.lateral) / speed)
    front = D_FRONT * GRAVITY * jnp.sin(C_FRONT * jnp.arctan(B_FRONT * slip_front))
    rear = D_REAR * GRAVITY * jnp.sin(C_REAR * jnp.arctan(B_REAR * slip_rear))
    return (
        (drive - front * jnp.sin(steer)) / MASS + car.lateral * car.yaw_rate,
        (rear + front * jnp.cos(steer)) / MASS - car.forward * car.yaw_rate,
        (front * FRONT * jnp.cos(steer) - rear * REAR) / INERTIA,
    )


def _kinematic(car: Car, steer: Scalar, drive: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """The same for wheels that do not slip: lateral velocity and yaw rate follow from speed and steering."""
    beta = jnp.arctan(jnp.tan(steer) / (FRONT + REAR))
    turn = car.forward * jnp.sin(beta)
    return drive / MASS * jnp.cos(beta), (turn * REAR - car.lateral) / SETTLING, (turn - car.yaw_rate) / SETTLING


def driven(car: Car, command: Float[Array, "2"], dt: float) -> Car:
    """The physical state after dt seconds under a command."""
    return runge_kutta(lambda at: derivative(at, command), car, dt)


def observe(car: Car) -> Float[Array, "7"]:
    """The frame of a physical state."""
    c, s = jnp.cos(car.heading), jnp.sin(car.heading)
    v_x, v_y = car.forward * c - car.lateral * s, car.forward * s + car.lateral * c
    return jnp.stack([car.p_x, car.p_y, s, c, v_x, v_y, car.yaw_rate])


def physical(frame: Float[Array, "7"]) -> Car:
    """The physical state of a frame."""
    p_x, p_y, s, c, v_x, v_y, yaw_rate = frame
    return Car(p_x, p_y, jnp.arctan2(s, c), v_x * c + v_y * s, v_y * c - v_x * s, yaw_rate)


def shift(x: State, a: Action, frame: Float[Array, "7"]) -> State:
    """The window after a step to this frame, whose sine and cosine are brought back to the circle."""
    radius = jnp.sqrt(frame[2] ** 2 + frame[3] ** 2 + 1e-6)
    frame = jnp.concatenate([frame[:2], frame[2:4] / radius, frame[4:]])
    commands = x[FRAMES * FRAME :]
    return jnp.concatenate([x[FRAME : FRAMES * FRAME], frame, commands[COMMAND:], a])


def distance(x: State) -> Scalar:
    """From the goal."""
    return _length(x[NEWEST][:2])


def clearance(x: State) -> Scalar:
    """From the surface of the nearest obstacle; negative inside."""
    return jnp.min(_length(x[NEWEST][None, :2] - jnp.asarray(OBSTACLES, x.dtype))) - OBSTACLE_RADIUS


def _length(vectors: Float[Array, "*n d"]) -> Float[Array, "*n"]:
    """Never quite 0, where its slope would be no number."""
    return jnp.sqrt(jnp.sum(vectors**2, axis=-1) + 1e-12)


def _energy(x: State) -> Scalar:
    """The kinetic energy, in joules."""
    return 0.5 * MASS * jnp.sum(x[NEWEST][4:6] ** 2)


def _inside(depth: Scalar, width: float) -> Scalar:
    """1 where the depth is positive, else 0; with a width the change is gradual."""
    return jax.nn.sigmoid(depth / width) if width else (depth > 0).astype(depth.dtype)


def reward(x: State, a: Action, y: State, width: float = 0.0) -> Scalar:
    """The way towards the goal, 1 for being there, less 0.01 |u| for the command that acts."""
    return distance(x) - distance(y) + _inside(GOAL_RADIUS - distance(y), width) - 0.01 * _length(x[PENDING])


def costs(x: State, a: Action, y: State, width: float = 0.0) -> Float[Array, "1"]:
    """The kinetic energy while in an obstacle, at the state before the step."""
    return (_inside(-clearance(x), width) * _energy(x))[None]


WIDTH = 0.02
"""Metres over which the signals that gradients go through change."""


def smooth_reward(x: State, a: Action, y: State) -> Scalar:
    """The reward with a gradual edge of the goal."""
    return reward(x, a, y, WIDTH)


def smooth_costs(x: State, a: Action, y: State) -> Float[Array, "1"]:
    """The cost with gradual edges of the obstacles."""
    return costs(x, a, y, WIDTH)


SIGNALS, SMOOTH = Signals(reward, costs), Signals(smooth_reward, smooth_costs)


def transition(x: State, a: Action, contact: Contact) -> State:
    """One control step. A sticky obstacle slows the car that is in it before the car moves on."""
    frame = x[NEWEST]
    if contact == "sticky":
        slowed = jnp.concatenate([frame[:4], DRAG * frame[4:]])
        frame = jnp.where(clearance(x) < 0, slowed, frame)
    car = physical(frame)
    for _ in range(SUBSTEPS):
        car = driven(car, x[PENDING], 1 / (RATE * SUBSTEPS))
    return shift(x, jnp.clip(a, -1.0, 1.0), observe(car))


def sticky(x: State, a: Action) -> State:
    """f* where obstacles slow the car."""
    return transition(x, a, "sticky")


def ghost(x: State, a: Action) -> State:
    """f* where obstacles cost only."""
    return transition(x, a, "ghost")


def sticky_step(x: State, a: Action, key: PRNGKey) -> State:
    """The true car; it is free of noise."""
    return sticky(x, a)


def ghost_step(x: State, a: Action, key: PRNGKey) -> State:
    """The same where obstacles cost but do not slow."""
    return ghost(x, a)


def reset(key: PRNGKey) -> State:
    """At rest near one corner, heading along the wall of obstacles. The whole window shows it standing there."""
    p_x, p_y, heading = jnp.asarray(START) + jax.random.uniform(key, (3,), EXACT, -1.0, 1.0) * jnp.asarray(START_SPREAD)
    still = jnp.zeros((), EXACT)
    frame = observe(Car(p_x, p_y, heading, still, still, still))
    return jnp.concatenate([jnp.tile(frame, FRAMES), jnp.zeros(FRAMES * COMMAND, EXACT)])


class Driver(eqx.Module):
    """A slow driver who goes round the wall of obstacles, past a point beside its end, with an unsteady hand."""

    corner: Float[Array, "2"]
    """Where the car turns towards the goal."""
    speed: float = 0.9
    """m/s."""
    unsteadiness: tuple[float, float] = (0.35, 0.25)
    """Standard deviations of steering and throttle."""

    def init(self) -> tuple[()]:
        return ()

    def act(self, x: State, state: tuple[()], key: PRNGKey) -> tuple[Action, tuple[()], Metrics]:
        return _drive(self, x, key), (), {}


@eqx.filter_jit
def _drive(driver: Driver, x: State, key: PRNGKey) -> Action:
    """Steers towards the corner, once past it towards the goal, and stops there."""
    car = physical(x[NEWEST])
    before_corner = (car.p_x > CORNER_PASSED[0]) & (car.p_y < CORNER_PASSED[1])
    way = jnp.where(before_corner, driver.corner, 0.0) - x[NEWEST][:2]
    turn = jnp.mod(jnp.arctan2(way[1], way[0]) - car.heading + jnp.pi, 2 * jnp.pi) - jnp.pi
    wanted = jnp.where(distance(x) < 0.3, 0.0, driver.speed)
    speed = _length(x[NEWEST][4:6])
    hand = jnp.asarray(driver.unsteadiness) * jax.random.normal(key, (COMMAND,), EXACT)
    return jnp.clip(jnp.stack([1.5 * turn, 0.6 * (wanted - speed)]) + hand, -1.0, 1.0)


CORNER, CORNER_PASSED = (0.15, -1.1), (0.35, -0.6)
CARELESS_SHARE, CARELESS_CORNERS = 0.2, (-0.8, -0.1)
"""Which share of a careless driver's episodes cuts the corner, and between which p_y."""


def careful(key: PRNGKey) -> Driver:
    """A driver who touches nothing."""
    return Driver(jnp.asarray(CORNER, EXACT))


def careless(key: PRNGKey) -> Driver:
    """A driver who cuts the corner now and then, through an obstacle."""
    which, where = jax.random.split(key)
    cut = jnp.stack([jnp.asarray(CORNER[0], EXACT), jax.random.uniform(where, (), EXACT, *CARELESS_CORNERS)])
    return Driver(jnp.where(jax.random.uniform(which) < CARELESS_SHARE, cut, jnp.asarray(CORNER, EXACT)))


@dataclass(frozen=True)
class RaceCarSettings:
    """What the car meets, and what is known of it."""

    contact: str = declared(
        Word(("sticky", "ghost")),
        "sticky",
        "what an obstacle does to the car: it slows the car, or (ghost) costs only, so that the budget binds",
    )
    cost: str = declared(
        Word(("learned", "places", "known")),
        "places",
        "what must be learned of the cost: all of it; or only the places where kinetic energy is charged; or nothing",
    )

    def __post_init__(self) -> None:
        validate(self, "task.")


def picture(states: Float[np.ndarray, "t 45"]) -> UInt8[np.ndarray, "h w 3"]:
    """The track from above."""
    from .pictures.race_car import Track, draw  # noqa: PLC0415  (only who draws needs Pillow)

    return draw(states[:, NEWEST], Track(OBSTACLES, OBSTACLE_RADIUS, GOAL_RADIUS))


DRAWING = Drawing(picture, RATE)
DYNAMICS = {"sticky": (sticky, sticky_step), "ghost": (ghost, ghost_step)}
NAMES = (
    *(f"{name}[{t}]" for t in range(1 - FRAMES, 1) for name in ("p_x", "p_y", "sin", "cos", "v_x", "v_y", "omega")),
    *(f"{name}[{t}]" for t in range(1 - FRAMES, 1) for name in ("steering", "throttle")),
)
LOW, HIGH = (-1.0, -1.0), (1.0, 1.0)

SETTINGS, USUAL = RaceCarSettings, RaceCarSettings()
PRIORS = {"data": Prior("data", informative=True)}
BEHAVIOURS = {"careful": careful, "careless": careless}
STRUCTURE = Structure(tuple(range(NEWEST.start, NEWEST.stop)), shift)

COST_STRUCTURE = CostStructure((NEWEST.start, NEWEST.start + 1), lambda x: _energy(x)[None])
"""Obstacles are places, and a contact costs the kinetic energy, which the car knows."""

PRESETS = {
    "cpu": {
        "prior": "data",
        "budget": 15.0,
        "tightening": 0.0,
        "exploration_threshold": 0.0,
        "data": "careless:25:0",
        "episodes": 75,
        "belief": "ensemble",
        "solver": "gradient",
        "method.samples": 10,
        "ensemble.cost_cap": 3.0,
        "ensemble.online_updates": 100,
        "solver.robust": True,
        "solver.check_starts": 8,
        "gradient.each": 1,
    },
}
"""What the task sets, by preset; `cpu` holds for all."""


def make(prior: Prior, budgets: tuple[float, ...], settings: RaceCarSettings = USUAL) -> Task:
    """The task, with these obstacles."""
    dynamics, step = DYNAMICS[settings.contact]
    equations = Equations(reset, step, dynamics, SIGNALS, noise=(0.0,) * SIZE, gradual=SMOOTH)
    return Task(
        name="race-car",
        state_names=NAMES,
        action_low=LOW,
        action_high=HIGH,
        horizon=HORIZON,
        costs=(Cost("kinetic energy in obstacles (J)", budgets[0]),),
        start=reset,
        open=lambda render_mode=None: EquationsEnv(
            equations, LOW, HIGH, HORIZON, render_mode=render_mode, drawing=DRAWING
        ),
        prior=prior,
        known=KnownSignals(costs=smooth_costs if settings.cost == "known" else None),
        structure=STRUCTURE,
        cost_structure=COST_STRUCTURE if settings.cost == "places" else None,
        behaviours=BEHAVIOURS,
        equations=equations,
        simulated=True,
        safe_action=(0.0, 0.0),
    )
