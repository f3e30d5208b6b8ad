"""Computes how the humanoid keeps its balance: `python results/behaviours/balance.py`, some seconds.

A linear-quadratic regulator around a posture in which the muscles hold the weight: the transition of one control step
is differentiated numerically on the simulation, deviations of the centre of mass from above the feet and of the joints
from the posture are weighed against effort, and the gain is written as weights of the observation.
"""

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from scipy.linalg import solve_discrete_are
from scipy.optimize import brentq, root

from sbsrl.tasks.rwrl_humanoid import ASTRIDE, ELBOW, KNEE, SIDES, open_system

FILE = Path(__file__).parents[2] / "src/sbsrl/tasks/data/rwrl-humanoid.npz"
SUBSTEPS, TINY, STARTS = 5, 1e-5, 64
BALANCE, EFFORT = 1000.0, 5.0
OBSERVED = [*range(22), 34, 35, *range(40, 67)]
"""Joints, height of the head, tilt of the torso, velocities: what place and heading do not change, once each."""
UNSEEN = [0, 1, 5]
"""Place and heading, of which nothing is observed."""


class Body:
    """The simulation, and a state of balance on it."""

    def __init__(self) -> None:
        self.env = open_system()
        self.physics = self.env._env.physics
        self.model, self.data = self.physics.model.ptr, self.physics.data.ptr
        self.env.reset(seed=0)
        self.balance()

    def place(self, hip: float, ankle: float, height: float) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[2] = height
        for side in SIDES:
            posture = {"knee": KNEE, "hip_y": hip, "ankle_y": ankle, "elbow": ELBOW, "hip_x": ASTRIDE}
            for joint, angle in posture.items():
                self.data.qpos[self.model.jnt_qposadr[self.model.joint(f"{side}_{joint}").id]] = angle
        mujoco.mj_forward(self.model, self.data)

    def balance(self) -> None:
        """Finds hips, ankles and height for which nothing but the muscles is needed to stand still."""
        feet = [g for g in range(self.model.ngeom) if self.model.geom(g).name.endswith("foot")]

        def ahead(hip: float) -> float:
            """How far the centre of mass is in front of the feet, which are flat."""
            self.place(hip, KNEE - hip, 1.3)
            return float((self.data.subtree_com[1] - self.data.geom_xpos[feet].mean(axis=0))[0])

        hip = brentq(ahead, KNEE - 0.3, 0.3)

        def missing(height: float, ankle: float) -> np.ndarray:
            """Upward force and pitching moment at the root that nobody exerts."""
            self.place(hip, ankle, height)
            self.data.qacc[:] = 0
            mujoco.mj_inverse(self.model, self.data)
            return self.data.qfrc_inverse[[2, 4]].copy()

        heights = np.linspace(1.0, 1.4, 2001)
        forces = np.array([missing(height, KNEE - hip)[0] for height in heights])
        height = heights[np.flatnonzero((forces[:-1] < 0) & (forces[1:] >= 0))[-1]]
        found = root(
            lambda y: missing(height + y[0] / 1000, KNEE - hip + y[1] / 100) * [1, 10], [0, 0], options={"eps": 1e-3}
        )
        assert np.abs(found.fun).max() < 1e-3, found
        missing(height + found.x[0] / 1000, KNEE - hip + found.x[1] / 100)
        self.posture = self.data.qpos.copy()
        moments = np.zeros((self.model.nu, self.model.nv))
        data = self.data
        mujoco.mju_sparse2dense(
            moments, data.actuator_moment.ravel(), data.moment_rownnz, data.moment_rowadr, data.moment_colind.ravel()
        )
        self.effort = np.linalg.lstsq(moments.T, data.qfrc_inverse, rcond=None)[0]
        print(f"hip {hip:.4f}, ankle {self.posture[14]:.4f}, height {self.posture[2]:.4f}")

    def at(self, deviation: np.ndarray) -> None:
        """Puts the body where it is this far from the posture, in place and velocity."""
        half = self.model.nv
        self.data.qpos[:] = self.posture
        mujoco.mj_integratePos(self.model, self.data.qpos, deviation[:half], 1)
        self.data.qvel[:], self.data.qacc_warmstart[:] = deviation[half:], 0
        mujoco.mj_forward(self.model, self.data)

    def after(self, deviation: np.ndarray, effort: np.ndarray) -> np.ndarray:
        """The deviation after one control step."""
        self.at(deviation)
        self.data.ctrl[:] = self.effort + effort
        for _ in range(SUBSTEPS):
            mujoco.mj_step(self.model, self.data)
        moved = np.zeros(self.model.nv)
        mujoco.mj_differentiatePos(self.model, moved, 1, self.posture, self.data.qpos)
        return np.concatenate([moved, self.data.qvel])

    def observed(self, deviation: np.ndarray) -> np.ndarray:
        self.at(deviation)
        parts = self.env._env.task.get_observation(self.physics).values()
        return np.concatenate([np.ravel(part) for part in parts])


def slope(function: Callable[[np.ndarray], np.ndarray], size: int) -> np.ndarray:
    """Its derivative at 0."""
    steps = TINY * np.eye(size)
    return np.stack([(function(step) - function(-step)) / (2 * TINY) for step in steps], axis=1)


def gain(body: Body) -> np.ndarray:
    """The regulator's, on deviations of place and velocity."""
    states, efforts = 2 * body.model.nv, body.model.nu
    a = slope(lambda deviation: body.after(deviation, np.zeros(efforts)), states)
    b = slope(lambda effort: body.after(np.zeros(states), effort), efforts)
    weight, effort = weights(body), EFFORT * np.eye(efforts)
    value = solve_discrete_are(a, b, weight, effort)
    found = np.linalg.solve(effort + b.T @ value @ b, b.T @ value @ a)
    print("slowest mode", np.abs(np.linalg.eigvals(a - b @ found)).max())
    return found


def weights(body: Body) -> np.ndarray:
    """What deviations are worth: balance above all."""
    body.at(np.zeros(2 * body.model.nv))
    nv, model, data = body.model.nv, body.model, body.data
    centre, foot, feet = np.zeros((3, nv)), np.zeros((3, nv)), np.zeros((3, nv))
    mujoco.mj_jacSubtreeCom(model, data, centre, 1)
    for side in SIDES:
        mujoco.mj_jacBodyCom(model, data, foot, None, model.body(f"{side}_foot").id)
        feet += foot / len(SIDES)
    apart = centre - feet
    places = BALANCE * apart.T @ apart + np.diag([1e-3, 1e-3, 1.0, 10.0, 10.0, 1e-3, *[1.0] * 21])
    rates = np.diag([*[0.1] * 6, *[0.02] * 21])
    return np.block([[places, np.zeros((nv, nv))], [np.zeros((nv, nv)), rates]])


def main() -> None:
    body = Body()
    seen = [i for i in range(2 * body.model.nv) if i not in UNSEEN]
    nothing = np.zeros(2 * body.model.nv)
    reads = slope(body.observed, len(nothing))[np.ix_(OBSERVED, seen)]
    mean = body.observed(nothing)
    answers = np.zeros((body.model.nu, len(mean)))
    answers[:, OBSERVED] = -gain(body)[:, seen] @ np.linalg.inv(reads)
    starts = np.stack([body.env.reset(seed=seed)[0] for seed in range(STARTS)])
    np.savez_compressed(FILE, mean=mean, spread=np.ones_like(mean), weights=answers, offset=body.effort, starts=starts)


if __name__ == "__main__":
    main()
