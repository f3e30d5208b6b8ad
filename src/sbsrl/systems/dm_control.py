"""Tasks of the DeepMind Control Suite, MuJoCo in C, as environments with a cost."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float, UInt8

from .actions import read_action
from .camera import Camera, View
from .drawable import check_mode, drawing_metadata
from .physics import load_suite

__all__ = ["DMControlEnv"]

Vector = Float[np.ndarray, " n"]
FIRST = View(camera="fixed")
"""A camera that the suite gave most of its models."""


class DMControlEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A task of the suite; an action is held for some steps of it, whose rewards and costs are summed.

    The observation is all that the task observes, flattened in its order. `cost(physics)` is charged after each of
    the suite's steps. Episodes have a fixed length; nothing terminates. `pose(physics, random)` puts the body where
    episodes begin, if that is not where the suite does. The randomness of an episode is that of `reset(seed)`.
    Pictures are taken from `view`.
    """

    def __init__(
        self,
        domain: str,
        task: str,
        cost: Callable[[Any], float],
        steps: int,
        repeat: int = 1,
        pose: Callable[[Any, np.random.RandomState], None] | None = None,
        view: View = FIRST,
        render_mode: str | None = None,
    ) -> None:
        """`steps` of the suite are an episode, of which an action takes `repeat`."""
        self._name = f"{domain} {task}"
        suite = load_suite(self._name)
        self._env, self._cost, self._repeat, self._steps = suite.load(domain, task), cost, repeat, steps
        self.metadata = drawing_metadata(1 / (repeat * self._env.control_timestep()))
        self.render_mode, self._view = check_mode(render_mode, self.metadata), view
        self._camera: Camera | None = None
        self._pose = pose
        spec = self._env.action_spec()
        self.action_space = gymnasium.spaces.Box(spec.minimum, spec.maximum, dtype=np.float64)
        size = sum(int(np.prod(each.shape)) for each in self._env.observation_spec().values())
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self._done = 0
        self._begun = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, dict[str, Any]]:
        super().reset(seed=seed)
        number = int(self.np_random.integers(2**32)) if seed is None else seed % 2**32
        self._env.task.random.seed(number)
        self._done, self._begun = 0, True
        observation = self._env.reset().observation
        if self._pose is not None:
            self._pose(self._env.physics, self._env.task.random)
            observation = self._env.task.get_observation(self._env.physics)
        return _flat(observation), {}

    def step(self, action: Any) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        if not self._begun:
            raise gymnasium.error.ResetNeeded("call reset() before the first step().")
        a, env = read_action(action, self.action_space.shape), self._env
        reward = cost = 0.0
        for _ in range(self._repeat):
            now = env.step(a)
            reward += float(now.reward or 0.0)
            cost += self._cost(env.physics)
        self._done += self._repeat
        return _flat(now.observation), reward, False, self._done >= self._steps, {"cost": cost}

    def render(self) -> UInt8[np.ndarray, "h w 3"] | None:
        """A picture of the physics; None where no mode was asked for."""
        if self.render_mode is None:
            return None
        if not self._begun:
            raise gymnasium.error.ResetNeeded("call reset() before the first render().")
        physics = self._env.physics
        if self._camera is None:
            self._camera = Camera(physics.model.ptr, self._view, self._name)
        return self._camera.picture(physics.data.ptr)

    def close(self) -> None:
        if self._camera is not None:
            self._camera.close()
            self._camera = None
        self._env.close()


def _flat(observation: Any) -> Vector:
    parts = [np.asarray(part) for part in observation.values()]
    return np.concatenate([part if part.ndim == 1 else part.ravel() for part in parts], dtype=np.float64)
