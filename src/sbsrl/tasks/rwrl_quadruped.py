"""Run with four legs whose joints should stay 20 degrees away from their limits (appendix G of the paper), on MuJoCo.

The control suite's quadruped with the constraint of the real-world RL suite: a cost of 1 in each of the 1000 steps of
an episode in which a joint is beyond. An action takes a step, 0.02 s. Episodes begin upright and at rest; the suite
drops the animal as it falls. State: 16 angles and 16 rates of joints, 12 of actuators, velocity of the torso, how
upright it is, 6 of its sensors of motion, and 24 of forces and torques at the toes.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import EXACT
from ..costs import Cost
from ..prior import Prior
from ..structure import CostStructure
from ..systems.camera import View
from ..systems.dm_control import DMControlEnv
from ..systems.joint_limits import excesses, joints_beyond
from ..task import Task
from ..types import PRNGKey
from .linear_behaviour import Linear, Searched, read_searched

STEPS, SECONDS = 1000, 0.02
"""Of an episode, and of a step."""
LEGS = ("front_left", "front_right", "back_right", "back_left")
LIMITS = {"yaw": (-30.0, 30.0), "pitch": (0.0, 40.0), "knee": (-40.0, 30.0), "ankle": (-25.0, 35.0)}
"""Degrees: those of the model, less 20 on each side."""
JOINTS = {f"{joint}_{leg}": limits for leg in LEGS for joint, limits in LIMITS.items()}
LOW, HIGH = (-1.0, -1.0, -0.8) * 4, (1.0, 1.1, 0.8) * 4
NAMES = (
    *(f"{joint} {leg}" for leg in LEGS for joint in LIMITS),
    *(f"rate of {joint} {leg}" for leg in LEGS for joint in LIMITS),
    *(f"{part} {leg}" for leg in LEGS for part in ("yaw servo", "lift servo", "extend servo")),
    *("v forward", "v left", "v up", "upright"),
    *(f"{sensor} {axis}" for sensor in ("acceleration", "turn rate") for axis in "xyz"),
    *(f"toe {kind}[{i}]" for kind in ("force", "torque") for i in range(12)),
)
SPREAD = 0.02
"""Of the joints' angles at the beginning, in radians."""


def upright(physics: Any, random: np.random.RandomState) -> None:
    """Puts the animal on its legs, at rest, as low as nothing touches the ground."""
    hinges = physics.model.jnt_qposadr[1:]
    angles, height = SPREAD * random.randn(len(hinges)), LOWEST
    while height == LOWEST or physics.data.ncon:
        height += 0.01
        with physics.reset_context():
            physics.data.qpos[:], physics.data.qvel[:] = 0.0, 0.0
            physics.data.qpos[2:4] = height, 1.0
            physics.data.qpos[hinges] = angles


LOWEST = 0.3
"""Metres from which a free height is looked for."""


VIEW = View(body="torso", distance=3.2, azimuth=130.0, elevation=-22.0)


def open_system(render_mode: str | None = None) -> DMControlEnv:
    """The true quadruped."""
    return DMControlEnv(
        "quadruped", "run", joints_beyond(JOINTS), STEPS, pose=upright, view=VIEW, render_mode=render_mode
    )


@lru_cache
def searched() -> Searched:
    """What a search left."""
    return read_searched("rwrl-quadruped")


def trot(key: PRNGKey) -> Linear:
    """The gait that was searched for, more or less vigorous, with a hand that is more or less steady."""
    vigour, unsteadiness = jax.random.uniform(key, (2,), EXACT, jnp.asarray(LEAST), jnp.asarray(MOST))
    return Linear.of(searched(), LOW, HIGH, vigour, unsteadiness)


LEAST, MOST = (0.6, 0.02), (1.0, 0.2)
PRIORS = {"data": Prior("data", informative=True)}
BEHAVIOURS = {"trot": trot}
PRESETS = {
    "cpu": {
        "prior": "data",
        "budget": 100.0,
        "tightening": 30.0,
        "exploration_threshold": 0.0,
        "data": "trot:40:0",
        "episodes": 30,
        "belief": "ensemble",
        "solver": "gradient",
        "method.samples": 10,
        "solver.units": "quantiles",
        "solver.pieces": 50,
        "solver.recent": 0.75,
        "solver.radius": 0.03,
        "solver.trust": 120.0,
        "solver.robust": True,
        "solver.rounds": 3,
        "solver.good": 0.9,
        "solver.check_starts": 64,
        "gradient.segment": 25,
        "gradient.each": 4,
        "gradient.nominal": 20,
        "gradient.unsteadiness": 0.05,
        "ensemble.units": "quantiles",
        "ensemble.noisy": "training",
        "ensemble.kappa": 0.5,
        "ensemble.adapted": False,
        "ensemble.test_steps": 50,
    },
}
"""What the task sets, by preset; `cpu` holds for all."""


COST_STRUCTURE = CostStructure(tuple(range(2 * len(JOINTS))), features=excesses(list(JOINTS.values()), SECONDS))
"""The limits of the joints, whose angles and rates come first in the state, are known; what costs is learned."""


def make(prior: Prior, budgets: tuple[float, ...]) -> Task:
    """The task."""
    return Task(
        name="rwrl-quadruped",
        state_names=NAMES,
        action_low=LOW,
        action_high=HIGH,
        horizon=STEPS,
        costs=(Cost("steps with a joint near its limit", budgets[0], limits=(0.0, 1.0)),),
        start=searched().start,
        open=open_system,
        prior=prior,
        cost_structure=COST_STRUCTURE,
        behaviours=BEHAVIOURS,
        simulated=True,
        safe_action=(0.0, 0.3, 0.0) * 4,
    )
