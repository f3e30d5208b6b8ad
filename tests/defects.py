"""Systems each of which has one defect, for `sbsrl check` to find, and one that has none."""

import time

import gymnasium
import numpy as np

BOX = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
LINE = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)


class Sound(gymnasium.Env):
    """Place and speed of a mass on a line. Nothing is wrong with it."""

    action_space, observation_space = BOX, LINE
    max_episode_steps = 20

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.n = np.array([self.np_random.uniform(-0.1, 0.1), 0.0]), 0
        return self.x.copy(), {}

    def step(self, action):
        speed = 0.9 * self.x[1] + 0.1 * float(action[0])
        self.x, self.n = np.array([self.x[0] + 0.1 * speed, speed]), self.n + 1
        return self.x.copy(), -abs(self.x[0]), False, False, {"cost": abs(speed)}


class Spoiled(Sound):
    """The same, with a step that `spoil` changes."""

    def step(self, action):
        return self.spoil(*super().step(action))


class NoCost(Spoiled):
    def spoil(self, y, reward, terminated, truncated, info):
        return y, reward, terminated, truncated, {"speed": 1.0}


class InfiniteCost(Spoiled):
    def spoil(self, y, reward, terminated, truncated, info):
        return y, reward, terminated, truncated, {"cost": np.inf if self.n == 3 else 0.0}


class NegativeCost(Spoiled):
    def spoil(self, y, reward, terminated, truncated, info):
        return y, reward, terminated, truncated, {"cost": -0.5}


class NanObservation(Spoiled):
    def spoil(self, y, reward, terminated, truncated, info):
        return (y * np.nan if self.n == 4 else y), reward, terminated, truncated, info


class NanReward(Spoiled):
    def spoil(self, y, reward, terminated, truncated, info):
        return y, np.nan, terminated, truncated, info


class GrowingObservation(Spoiled):
    def spoil(self, y, reward, terminated, truncated, info):
        return (np.append(y, 0.0) if self.n == 2 else y), reward, terminated, truncated, info


class OutsideItsSpace(Sound):
    observation_space = gymnasium.spaces.Box(-1e-3, 1e-3, (2,), np.float64)


class Raises(Spoiled):
    def spoil(self, *outcome):
        raise RuntimeError("the motor is unplugged")


class RaisesAtReset(Sound):
    def reset(self, *, seed=None, options=None):
        raise ConnectionError("no answer from the controller")


class BareReset(Sound):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class OldStep(Spoiled):
    def spoil(self, y, reward, terminated, truncated, info):
        return y, reward, terminated, info


class ForgetsItsSeed(Sound):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None)


class NoisyBeyondItsSeed(Spoiled):
    noise = np.random.default_rng()

    def spoil(self, y, reward, terminated, truncated, info):
        self.x = y + self.noise.normal(0, 0.01, 2)
        return self.x.copy(), reward, terminated, truncated, info


class Discrete(Sound):
    action_space = gymnasium.spaces.Discrete(3)


class Unbounded(Sound):
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)


class Huge(Spoiled):
    def spoil(self, y, reward, terminated, truncated, info):
        return y * np.array([1.0, 1e7]), reward, terminated, truncated, info


class Still(Spoiled):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2), {}

    def spoil(self, y, reward, terminated, truncated, info):
        return np.zeros(2), reward, terminated, truncated, info


class Slow(Spoiled):
    max_episode_steps = 3

    def spoil(self, *outcome):
        time.sleep(0.12)
        return outcome


class Hangs(Spoiled):
    def spoil(self, *outcome):
        time.sleep(2.0)
        return outcome


class EndsAtOnce(Spoiled):
    def spoil(self, y, reward, terminated, truncated, info):
        return y, reward, True, truncated, info


class Endless(Sound):
    max_episode_steps = None


class Words(Spoiled):
    def spoil(self, y, reward, terminated, truncated, info):
        return ["left", "fast"], reward, terminated, truncated, info
