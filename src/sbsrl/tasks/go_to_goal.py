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
from jaxtyping import Array, Bool, Float

from .._jax import EXACT
from ..costs import Cost
from ..model import KnownSignals
from ..policy import Metrics
from ..prior import Prior
from ..structure import CostStructure, Structure
from ..systems.point_places import BINS, HAZARD_RADIUS, RANGE, draw_places, observation, readings
from ..systems.point_robot import GOAL_RADIUS, REACHED, SUBSTEPS, TIMESTEP, PointRobotEnv
from ..systems.point_view import (
    TINY,
    Movement,
    goal_seen,
    moved_goal,
    moved_things,
    movement,
    seen_after,
    things_seen,
)
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
OBSTACLES, GOAL, SENSORS = slice(0, BINS), slice(BINS, 2 * BINS), slice(2 * BINS, 2 * BINS + 7)
SECONDS = REPEAT * SUBSTEPS * TIMESTEP
"""Of a control step."""
FORWARD, LEFT, TURN = 2 * BINS + 2, 2 * BINS + 3, 2 * BINS + 4
COUNTS = {"easy": (8, 1), "full": (10, 10)}
"""Hazards and vases."""


@dataclass(frozen=True)
class GoToGoalSettings:
    """How much there is to avoid."""

    layout: str = declared(Word(tuple(COUNTS)), "easy", "8 hazards and a vase, or (full) 10 of each")
    view: str = declared(
        Word(("geometry", "learned")),
        "geometry",
        "what is known of the lidars and the reward: that what they see stands still, and rewards are ways towards the "
        "goal; or nothing",
    )

    def __post_init__(self) -> None:
        validate(self, "task.")


def complete(x: State, a: Action, new: Float[Array, "7"]) -> State:
    """The next state, from the robot's other sensors: what stands still moves against it; one goal follows another."""
    way = movement(x[SENSORS], new, SECONDS)
    place, goal = moved_goal(x[GOAL], way)
    reached = _seen(x) & (jnp.sum(place**2) <= GOAL_RADIUS**2)
    return jnp.concatenate([moved_things(x[OBSTACLES], way), jnp.where(reached, _next_goal(x), goal), new])


def _seen(x: State) -> Bool[Array, ""]:
    return jnp.max(x[GOAL]) > 0


def _next_goal(x: State) -> Float[Array, "16"]:
    """What the lidar reads of the next goal, of which nobody knows where it lies: somewhere that looks random."""
    mixed = jnp.sin(jax.lax.stop_gradient(x[SENSORS]) @ jnp.asarray(MIXERS, x.dtype)) * 1e3
    share = mixed - jnp.floor(mixed)
    return readings(2 * jnp.pi * share[:1], NEAREST + (FARTHEST - NEAREST) * share[1:])


MIXERS = np.random.default_rng(0).normal(size=(7, 2)) * 30
NEAREST, FARTHEST = 0.6, 2.8
"""Metres between which the next goal mostly lies."""


def progress(x: State, a: Action, y: State) -> Scalar:
    """The way towards the goal, and what reaching it is worth.

    A goal that is out of sight lies, for all that is known, where things lie: the way counts that leads to the middle
    of those that are seen.
    """
    before, _ = goal_seen(x[GOAL])
    places, readings = things_seen(x[OBSTACLES])
    among = readings > 0
    count = jnp.maximum(jnp.sum(among), 1).astype(x.dtype)
    middle = jnp.sum(jnp.where(among[:, None], places, 0.0), axis=0) / count
    aim = jnp.where(_seen(x), before, middle)
    far, near = (jnp.sqrt(jnp.sum(place**2) + TINY) for place in (aim, seen_after(aim, _way(x, y))))
    reached = _seen(x) & (near <= GOAL_RADIUS)
    known = _seen(x) | jnp.any(among)
    return jnp.where(known, far - near + jnp.where(reached, REACHED, 0.0), 0.0).astype(x.dtype)


def _way(x: State, y: State) -> Movement:
    return movement(x[SENSORS], y[SENSORS], SECONDS)


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


STRUCTURE = Structure(tuple(range(SENSORS.start, SENSORS.stop)), complete)


def nearness(seen: Float[Array, "19"]) -> Float[Array, "6"]:
    """How far the nearest thing and the next one are, how fast they come nearer, and how fast the robot moves.

    `seen` is the lidar of hazards and vases, and the robot's velocity and turn rate.
    """
    places, readings = things_seen(seen[:BINS])
    (first, second), order = jax.lax.top_k(readings, 2)
    direction = places[order[0]] / jnp.sqrt(jnp.sum(places[order[0]] ** 2) + TINY)
    forward, left, turn = seen[BINS], seen[BINS + 1], seen[BINS + 2]
    coming = direction[0] * forward + direction[1] * left
    near = [(RANGE * (1 - reading) - HAZARD_RADIUS) / SHARP for reading in (first, second)]
    return jnp.stack([*near, coming / FAST, forward / FAST, left / FAST, turn])


SHARP, FAST = 0.1, 0.5
"""Metres and m/s that make a difference."""
COST_STRUCTURE = CostStructure((*range(BINS), FORWARD, LEFT, TURN), features=nearness)
"""What is near, and how fast the robot is; not where the goal lies."""
PRIORS = {"data": Prior("data", informative=True)}
SETTINGS, USUAL = GoToGoalSettings, GoToGoalSettings()
BEHAVIOURS = {"driver": driver}
PRESETS = {
    "cpu": {
        "prior": "data",
        "budget": 25.0,
        "tightening": 10.0,
        "exploration_threshold": 0.0,
        "data": "driver:100:0",
        "episodes": 30,
        "belief": "ensemble",
        "solver": "gradient",
        "method.samples": 10,
        "solver.pieces": 25,
        "solver.recent": 0.75,
        "solver.corrected": True,
        "solver.free_blocks": 4,
        "solver.annealing": 6,
        "solver.offline_blocks": 20,
        "solver.offline_patience": 20,
        "solver.trust": 0.0,
        "solver.robust": True,
        "solver.rounds": 6,
        "solver.good": 0.9,
        "solver.returned": "newest",
        "solver.check_starts": 128,
        "gradient.segment": 25,
        "gradient.each": 6,
        "gradient.nominal": 30,
        "ensemble.noisy": "training",
        "ensemble.kappa": 1.0,
        "ensemble.kappa_least": 0.5,
        "ensemble.test_steps": 25,
    },
}
"""What the task sets, by preset; `cpu` holds for all."""


def make(prior: Prior, budgets: tuple[float, ...], settings: GoToGoalSettings = USUAL) -> Task:
    """The task, with this much to avoid."""
    hazards, vases = COUNTS[settings.layout]
    known = settings.view == "geometry"

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
        known=KnownSignals(reward=progress) if known else KnownSignals(),
        structure=STRUCTURE if known else None,
        cost_structure=COST_STRUCTURE if known else None,
        behaviours=BEHAVIOURS,
        simulated=True,
        safe_action=(0.0, 0.0),
    )
