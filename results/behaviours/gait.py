"""Searches for a gait of the quadruped: `python results/behaviours/gait.py`, about three minutes on one core.

Augmented random search over actions that are linear in the standardised observation, around a safe posture, on the
simulation itself: directions are tried both ways, and the best of them decide the next step. It is stopped early: what
comes out is a behaviour to learn from, which could be better.
"""

from pathlib import Path

import numpy as np

from sbsrl.systems.dm_control import DMControlEnv
from sbsrl.tasks.rwrl_quadruped import HIGH, LOW, open_system

FILE = Path(__file__).parents[2] / "src/sbsrl/tasks/data/rwrl-quadruped.npz"
POSTURE = np.tile([0.0, 0.3, 0.0], 4)
ROUNDS, DIRECTIONS, BEST, STEPS = 45, 12, 6, 250
STRIDE, NOISE, FARTHEST = 0.02, 0.03, 5.0
PRICE = 0.3
"""Of a step that costs, in units of reward."""
STARTS = 64


class Spread:
    """Running mean and variance of observations."""

    def __init__(self, size: int) -> None:
        self.count, self.mean, self.variance = 1.0, np.zeros(size), np.full(size, 1e-2)

    def add(self, rows: np.ndarray) -> None:
        count, total = len(rows), self.count + len(rows)
        away = rows.mean(axis=0) - self.mean
        both = self.count * self.variance + count * rows.var(axis=0) + away**2 * self.count * count / total
        self.mean, self.variance, self.count = self.mean + away * count / total, both / total, min(total, 2e5)

    @property
    def deviation(self) -> np.ndarray:
        return np.sqrt(self.variance) + 1e-3


def main() -> None:
    env, rng = open_system(), np.random.default_rng(0)
    size = len(env.reset(seed=0)[0])
    weights, spread = np.zeros((len(LOW), size)), Spread(size)
    for k in range(ROUNDS):
        weights = improved(env, weights, spread, rng)
        if k % 5 == 4:
            print(k + 1, *np.round(played(env, weights, spread, 1000, [])[1:], 1), flush=True)
    starts = np.stack([env.reset(seed=seed)[0] for seed in range(STARTS)])
    np.savez_compressed(FILE, mean=spread.mean, spread=spread.deviation, weights=weights, offset=POSTURE, starts=starts)


def improved(env: DMControlEnv, weights: np.ndarray, spread: Spread, rng: np.random.Generator) -> np.ndarray:
    """The weights after one round."""
    seen: list[np.ndarray] = []
    tried = []
    for _ in range(DIRECTIONS):
        direction = rng.normal(size=weights.shape)
        scores = [played(env, weights + sign * NOISE * direction, spread, STEPS, seen)[0] for sign in (1, -1)]
        tried.append((scores, direction))
    best = sorted(tried, key=lambda each: -max(each[0]))[:BEST]
    scale = np.std([scores for scores, _ in best]) + 1e-6
    spread.add(np.stack(seen))
    return weights + STRIDE / (BEST * scale) * sum((there - back) * along for (there, back), along in best)


def played(
    env: DMControlEnv, weights: np.ndarray, spread: Spread, steps: int, seen: list[np.ndarray]
) -> tuple[float, float, float]:
    """What an episode is worth, what it earns and what it costs; its observations are added to those seen."""
    x, _ = env.reset()
    earned = cost = 0.0
    for _ in range(steps):
        seen.append(x)
        z = np.clip((x - spread.mean) / spread.deviation, -FARTHEST, FARTHEST)
        x, reward, _, _, info = env.step(np.clip(weights @ z + POSTURE, LOW, HIGH))
        earned, cost = earned + reward, cost + info["cost"]
    return earned - PRICE * cost, earned, cost


if __name__ == "__main__":
    main()
