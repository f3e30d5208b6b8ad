"""Drive Safety Gym's point robot to one goal after another, past hazards and vases that it sees by lidar (appendix G).

An episode has 1000 steps of 0.02 s, an action is held for four of them: 250 control steps, each of which costs between
0 and 4. State: 16 bins of a lidar for hazards and vases together, 16 of one for the goal, acceleration, velocity and
turn rate in the robot's frame, and a compass.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT
from ..costs import Cost
from ..policy import Metrics
from ..prior import Prior
from ..systems.point_places import BINS, draw_places, observation
from ..systems.point_robot import PointRobotEnv
from ..task import Task
from ..types import Action, PRNGKey, Scalar, State
from ..validation import Word, declared, validate

STEPS, REPEAT = 1000, 4
LOW, HIGH = (-1.0, -1.0), (1.0, 1.0)
NAMES = (
    *(f"obstacle[{i}]" for i in range(BINS)),
    *(f"goal[{i}]" for i in range(BINS)),
    *("a_forward", "a_left", "v_forward", "v_left", "turn rate", "compass x", "compass y"),
)
OBSTACLES, GOAL = slice(0, BINS), slice(BINS, 2 * BINS)
FORWARD, LEFT, TURN = 2 * BINS + 2, 2 * BINS + 3, 2 * BINS + 4
COUNTS = {"easy": (8, 1), "full": (10, 10)}
"""Hazards and vases."""


@dataclass(frozen=True)
class GoToGoalSettings:
    """How much there is to avoid."""

    layout: str = declared(Word(tuple(COUNTS)), "easy", "8 hazards and a vase, or (full) 10 of each")

    def __post_init__(self) -> None:
        validate(self, "task.")


class Driver(eqx.Module):
    """Turns towards the goal at a moderate speed and away from what is close ahead, with an unsteady hand."""

    speed: Scalar
    """m/s."""
    shyness: Scalar
    """How strongly it turns away."""
    unsteadiness: Scalar

    def init(self) -> Float[Array, "2"]:
        return jnp.zeros(2, EXACT)

    def act(self, x: State, state: Float[Array, "2"], key: PRNGKey) -> tuple[Action, Float[Array, "2"], Metrics]:
        """The state is the hand's, which wanders."""
        action, hand = _drive(self, x, state, key)
        return action, hand, {}


MEMORY = 0.8
"""Of the hand, per control step."""
ANGLES = 2 * np.pi * (np.arange(BINS) + 0.5) / BINS


AHEAD, ASIDE = np.cos(ANGLES), np.sin(ANGLES)


@eqx.filter_jit
def _drive(driver: Driver, x: State, hand: Float[Array, "2"], key: PRNGKey) -> tuple[Action, Float[Array, "2"]]:
    hand = MEMORY * hand + driver.unsteadiness * jnp.sqrt(1 - MEMORY**2) * jax.random.normal(key, (2,), EXACT)
    goal = x[GOAL] ** 2
    towards = jnp.arctan2(goal @ ASIDE, goal @ AHEAD)
    near = jnp.maximum(0.0, x[OBSTACLES] - 0.75) * 4 * np.maximum(0.0, AHEAD)
    away = -(near @ np.sign(ASIDE))
    wanted = driver.speed * jnp.maximum(0.0, jnp.cos(towards)) / (1 + driver.shyness * jnp.sum(near))
    turn = 0.6 * towards + driver.shyness * away
    push = wanted / 1.5 + 2.0 * (wanted - x[FORWARD])
    return jnp.clip(jnp.stack([push, turn]) + hand, -1.0, 1.0), hand


def driver(key: PRNGKey) -> Driver:
    """One with a character of its own."""
    speed, shyness, unsteadiness = jax.random.uniform(
        key, (3,), EXACT, jnp.asarray([0.3, 0.0, 0.2]), jnp.asarray([0.8, 1.0, 0.5])
    )
    return Driver(speed, shyness, unsteadiness)


PRIORS = {"data": Prior("data", informative=True)}
SETTINGS, USUAL = GoToGoalSettings, GoToGoalSettings()
BEHAVIOURS = {"driver": driver}
PRESETS = {
    "cpu": {
        "prior": "data",
        "budget": 25.0,
        "tightening": 2.5,
        "exploration_threshold": 0.0,
        "data": "driver:100:0",
        "episodes": 30,
        "belief": "ensemble",
        "solver": "gradient",
        "method.samples": 10,
    },
}
"""What the task sets, by preset; `cpu` holds for all."""


def make(prior: Prior, budgets: tuple[float, ...], settings: GoToGoalSettings = USUAL) -> Task:
    """The task, with this much to avoid."""
    hazards, vases = COUNTS[settings.layout]

    def start(key: PRNGKey) -> State:
        return observation(draw_places(key, hazards, vases), jnp.zeros(5, EXACT))

    return Task(
        name="go-to-goal",
        state_names=NAMES,
        action_low=LOW,
        action_high=HIGH,
        horizon=STEPS // REPEAT,
        costs=(Cost("steps in hazards or with vases", budgets[0], limits=(0.0, float(REPEAT))),),
        start=start,
        open=lambda render_mode=None: PointRobotEnv(hazards, vases, STEPS, REPEAT, render_mode),
        prior=prior,
        behaviours=BEHAVIOURS,
        simulated=True,
        safe_action=(0.0, 0.0),
    )
