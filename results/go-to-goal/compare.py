"""Compares what the point robot earns, costs and sees with safety_gymnasium's own code, on the same states.

    pip install --no-deps safety-gymnasium
    python results/go-to-goal/compare.py

Its environments need versions of other libraries that cannot be installed beside this package, so its functions are
asked directly: the reward of its goal task, the costs of its hazards and vases, and its lidar. A vase moves here from
0.05 m/s on, there from 1e-4; its code is asked with the former.
"""

import dataclasses
import importlib.util
import sys
import types
from types import SimpleNamespace
from typing import Any

import numpy as np

from sbsrl.systems.point_places import HAZARD_RADIUS
from sbsrl.systems.point_robot import GOAL_RADIUS, MOVING, PointRobotEnv
from sbsrl.tasks.go_to_goal import AHEAD, ASIDE, COUNTS, GOAL, STEPS

EPISODES = 5


def borrowed() -> Any:
    """Classes of safety_gymnasium, without the parts of it that need old versions."""
    found = importlib.util.find_spec("safety_gymnasium")
    if found is None or not found.submodule_search_locations:
        sys.exit("safety_gymnasium is not there: pip install --no-deps safety-gymnasium")
    package = types.ModuleType("safety_gymnasium")
    package.__path__, package.__file__ = list(found.submodule_search_locations), found.origin
    sys.modules["safety_gymnasium"] = package
    make = dataclasses._get_field  # type: ignore[attr-defined]

    def shared_default(cls: Any, name: str, kind: Any, *others: Any) -> Any:
        """Its classes have arrays as defaults, which dataclasses refuse since Python 3.11."""
        default = getattr(cls, name, dataclasses.MISSING)
        if isinstance(default, np.ndarray | list):
            setattr(cls, name, dataclasses.field(default_factory=lambda: default))
        return make(cls, name, kind, *others)

    dataclasses._get_field = shared_default  # type: ignore[attr-defined]
    base = importlib.import_module("safety_gymnasium.bases.base_task")
    return SimpleNamespace(
        vases=importlib.import_module("safety_gymnasium.assets.free_geoms.vases").Vases,
        hazards=importlib.import_module("safety_gymnasium.assets.geoms.hazards").Hazards,
        goal=importlib.import_module("safety_gymnasium.tasks.safe_navigation.goal.goal_level0").GoalLevel0,
        task=base.BaseTask,
        lidar=base.LidarConf(),
    )


class Theirs:
    """What its code says of a state of this robot."""

    def __init__(self, classes: Any, env: PointRobotEnv) -> None:
        self.classes, self.env = classes, env
        self.engine = SimpleNamespace(model=env._model, data=env._data)
        self.agent = SimpleNamespace(
            body_info=SimpleNamespace(geom_names=["robot", "nose"]),
            dist_xy=lambda place: float(np.linalg.norm(place[:2] - env._data.qpos[:2])),
        )

    def reward(self, before: float, goal: np.ndarray) -> float:
        """Of a step that began so far from the goal."""
        distance = self.agent.dist_xy(goal)
        known = SimpleNamespace(
            dist_goal=lambda: distance,
            last_dist_goal=before,
            goal=SimpleNamespace(reward_distance=1.0, reward_goal=1.0, size=GOAL_RADIUS),
        )
        known.goal_achieved = self.classes.goal.goal_achieved.fget(known)
        return float(self.classes.goal.calculate_reward(known))

    def costs(self) -> dict[str, float]:
        """Of hazards, of contacts with vases, and of vases that move."""
        places = self.env.places
        hazards = SimpleNamespace(
            is_constrained=True, cost=1.0, size=HAZARD_RADIUS, agent=self.agent, pos=np.asarray(places.hazards)
        )
        vases = SimpleNamespace(
            is_constrained=True,
            contact_cost=1.0,
            displace_cost=0.0,
            velocity_cost=1.0,
            velocity_threshold=MOVING,
            num=len(places.vases),
            engine=self.engine,
            agent=self.agent,
        )
        return {**self.classes.hazards.cal_cost(hazards), **self.classes.vases.cal_cost(vases)}

    def lidars(self) -> np.ndarray:
        """Of hazards and vases, then of the goal."""
        places, heading = self.env.places, self.env._data.qpos[2]
        c, s = np.cos(heading), np.sin(heading)
        known = SimpleNamespace(
            lidar_conf=self.classes.lidar,
            agent=SimpleNamespace(
                pos=np.array([*self.env._data.qpos[:2], 0.1]), mat=np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
            ),
        )
        known._ego_xy = lambda place: self.classes.task._ego_xy(known, place)
        things = np.concatenate([places.hazards, places.vases])
        return np.concatenate(
            [self.classes.task._obs_lidar_pseudo(known, np.asarray(part)) for part in (things, places.goal)]
        )


def main() -> None:
    classes = borrowed()
    for layout, counts in COUNTS.items():
        env = PointRobotEnv(*counts, STEPS, 1)
        theirs, worst, costly, differ, steps = Theirs(classes, env), np.zeros(2), 0, 0, 0
        for seed in range(EPISODES):
            observation, _ = env.reset(seed=seed)
            rng, action = np.random.default_rng(seed), np.zeros(2)
            for k in range(STEPS):
                if k % 4 == 0:
                    towards = np.arctan2(observation[GOAL] ** 2 @ ASIDE, observation[GOAL] ** 2 @ AHEAD)
                    action = np.clip([0.8, 0.8 * towards] + 0.3 * rng.normal(size=2), -1, 1)
                before, goal = env._distance(), env._goal.copy()
                observation, reward, _, _, info = env.step(action)
                worst[0] = max(worst[0], abs(reward - theirs.reward(before, goal)))
                worst[1] = max(worst[1], np.abs(observation[:32] - theirs.lidars()).max())
                offends = any(cost > 0 for cost in theirs.costs().values())
                differ, costly, steps = differ + (offends != info["cost"]), costly + info["cost"], steps + 1
        print(
            f"{layout}: {steps} steps, {costly:.0f} of them with a cost; rewards differ by {worst[0]:.1e} at most, "
            f"lidars by {worst[1]:.1e}; {differ} steps cost here and not there, or the reverse.",
            flush=True,
        )


if __name__ == "__main__":
    main()
