"""Walk on two legs without a joint beyond its limits (appendix G of the paper), on MuJoCo.

The control suite's humanoid with the constraint of the real-world RL suite: a cost of 1 in each of the 1000 steps of an
episode in which one of 17 joints, all but those of the ankles, is beyond the model's limits. An action takes a step,
0.025 s. Episodes begin on both feet with bent knees, at rest; the suite drops the body as it falls. State: 21 angles of
joints, height of the head, 12 places of hands and feet, 3 of the torso's direction, velocity of the centre of mass, and
27 velocities of root and joints.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import EXACT
from ..costs import Cost
from ..prior import Prior
from ..structure import CostStructure, Structure
from ..systems.camera import View
from ..systems.clock import AT_FIRST, Clocked, advanced
from ..systems.clock import NAMES as CLOCK_NAMES
from ..systems.dm_control import DMControlEnv
from ..systems.joint_limits import excesses, joints_beyond
from ..task import Task
from ..types import PRNGKey, State
from ..validation import Whole, declared, validate
from .linear_behaviour import Linear, Searched, read_searched

STEPS, SECONDS = 1000, 0.025
"""Of an episode, and of a step."""
SIDES = ("right", "left")
LEG = {"hip_x": (-25.0, 5.0), "hip_z": (-60.0, 35.0), "hip_y": (-110.0, 20.0), "knee": (-160.0, 2.0)}
LIMITS = {
    "abdomen_z": (-45.0, 45.0),
    "abdomen_y": (-75.0, 30.0),
    "abdomen_x": (-35.0, 35.0),
    **{f"right_{joint}": limits for joint, limits in LEG.items()},
    **{f"left_{joint}": limits for joint, limits in {**LEG, "hip_y": (-120.0, 20.0)}.items()},
    **{"right_shoulder1": (-85.0, 60.0), "right_shoulder2": (-85.0, 60.0), "right_elbow": (-90.0, 50.0)},
    **{"left_shoulder1": (-60.0, 85.0), "left_shoulder2": (-60.0, 85.0), "left_elbow": (-90.0, 50.0)},
}
"""Degrees: those of the model."""
JOINTS = (
    *("abdomen_z", "abdomen_y", "abdomen_x"),
    *(f"{side}_{joint}" for side in SIDES for joint in (*LEG, "ankle_y", "ankle_x")),
    *(f"{side}_{joint}" for side in SIDES for joint in ("shoulder1", "shoulder2", "elbow")),
)
"""In the order of the model."""
LOW, HIGH = (-1.0,) * 21, (1.0,) * 21
NAMES = (
    *JOINTS,
    "head height",
    *(f"{side} {part} {axis}" for side in ("left", "right") for part in ("hand", "foot") for axis in "xyz"),
    *(f"torso {axis}" for axis in "xyz"),
    *(f"v {axis}" for axis in "xyz"),
    *(f"root {kind} {axis}" for kind in ("v", "turn") for axis in "xyz"),
    *(f"rate of {joint}" for joint in JOINTS),
)
HEIGHT = 1.2618
"""Of the root when both feet stand, in metres."""
KNEE, HIP, ANKLE = -0.5, -0.2388, -0.258
ELBOW, ASTRIDE = -0.6, -0.05
POSE = {
    f"{side}_{joint}": angle
    for side in SIDES
    for joint, angle in (("knee", KNEE), ("hip_y", HIP), ("ankle_y", ANKLE), ("elbow", ELBOW), ("hip_x", ASTRIDE))
}
"""Radians; other joints are straight."""
SPREAD = 0.01
"""Of the joints' angles at the beginning, in radians."""


def standing(physics: Any, random: np.random.RandomState) -> None:
    """Puts the body on its feet, nearly in balance, at rest."""
    angles = np.array([POSE.get(joint, 0.0) for joint in JOINTS]) + SPREAD * random.randn(len(JOINTS))
    with physics.reset_context():
        physics.data.qpos[:], physics.data.qvel[:] = 0.0, 0.0
        physics.data.qpos[2:4] = HEIGHT, 1.0
        physics.data.qpos[7:] = angles


VIEW = View(body="torso", distance=3.2, azimuth=130.0, elevation=-12.0)


@dataclass(frozen=True)
class HumanoidSettings:
    """What the humanoid observes."""

    clock: int = declared(
        Whole(0, STEPS),
        0,
        "control steps in which a clock goes round that is observed as well, so that a policy may move in a rhythm; 0: "
        "the paper's observation, which has none",
    )

    def __post_init__(self) -> None:
        validate(self, "task.")


def open_system(render_mode: str | None = None) -> DMControlEnv:
    """The true humanoid."""
    return DMControlEnv(
        "humanoid", "walk", joints_beyond(LIMITS), STEPS, pose=standing, view=VIEW, render_mode=render_mode
    )


def open_clocked(clock: int, render_mode: str | None = None) -> Clocked:
    """The same with a clock."""
    return Clocked(open_system(render_mode), clock)


@lru_cache
def searched() -> Searched:
    """What a computation left."""
    return read_searched("rwrl-humanoid")


def stand(key: PRNGKey) -> Linear:
    """A linear-quadratic regulator that keeps the balance, with a hand that is more or less steady."""
    unsteadiness = jax.random.uniform(key, (), EXACT, *UNSTEADINESS)
    return Linear.of(searched(), LOW, HIGH, jnp.ones((), EXACT), unsteadiness, memory=0.0)


UNSTEADINESS = (0.04, 0.13)
PRIORS = {"data": Prior("data", informative=True)}
BEHAVIOURS = {"stand": stand}
SETTINGS, USUAL = HumanoidSettings, HumanoidSettings()
PRESETS = {
    "cpu": {
        "prior": "data",
        "budget": 100.0,
        "tightening": 60.0,
        "exploration_threshold": 0.0,
        "data": "stand:40:0",
        "episodes": 30,
        "belief": "ensemble",
        "solver": "gradient",
        "method.samples": 10,
        "task.clock": 20,
        "solver.policy_layers": 0,
        "solver.steered": 2,
        "solver.policy_rate": 1e-3,
        "solver.pieces": 100,
        "solver.recent": 0.75,
        "solver.radius": 0.03,
        "solver.trust": 0.0,
        "solver.robust": True,
        "solver.rounds": 3,
        "solver.good": 0.9,
        "solver.check_starts": 64,
        "gradient.segment": 50,
        "gradient.each": 4,
        "gradient.nominal": 20,
        "gradient.unsteadiness": 0.02,
        "ensemble.noisy": "training",
        "ensemble.kappa": 0.1,
        "ensemble.kappa_least": 0.1,
        "ensemble.adapted": False,
        "ensemble.test_steps": 100,
    },
}
"""What the task sets, by preset; `cpu` holds for all."""


LIMITED = tuple(joint for joint in JOINTS if joint in LIMITS)
COST_STRUCTURE = CostStructure(
    tuple(NAMES.index(name) for name in (*LIMITED, *(f"rate of {joint}" for joint in LIMITED))),
    features=excesses([LIMITS[joint] for joint in LIMITED], SECONDS),
)
"""The limits of the joints are known; what costs is learned."""


def timed_start(key: PRNGKey) -> State:
    """The same beginnings, with the clock."""
    return jnp.concatenate([searched().start(key), jnp.asarray(AT_FIRST, EXACT)])


@lru_cache
def ticking(period: int) -> Structure:
    """Only the clock is known: the same object for the same period."""
    body = len(NAMES)
    return Structure(tuple(range(body)), lambda x, a, new: jnp.concatenate([new, advanced(x[body:], period)]))


def make(prior: Prior, budgets: tuple[float, ...], settings: HumanoidSettings = USUAL) -> Task:
    """The task, with or without a clock."""
    clock = settings.clock
    return Task(
        name="rwrl-humanoid",
        state_names=(*NAMES, *CLOCK_NAMES) if clock else NAMES,
        action_low=LOW,
        action_high=HIGH,
        horizon=STEPS,
        costs=(Cost("steps with a joint beyond its limits", budgets[0], limits=(0.0, 1.0)),),
        start=timed_start if clock else searched().start,
        open=partial(open_clocked, clock) if clock else open_system,
        structure=ticking(clock) if clock else None,
        cost_structure=COST_STRUCTURE,
        prior=prior,
        behaviours=BEHAVIOURS,
        simulated=True,
        safe_action=(0.0,) * 21,
    )
