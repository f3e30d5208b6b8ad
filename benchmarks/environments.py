"""What the boundary around the control suite costs: `python benchmarks/environments.py` writes environments.md.

The same random actions are played on the suite itself and through this package, in turns; the ratio of their times is
the median over the turns.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from dm_control import suite

from sbsrl.tasks import rwrl_cartpole, rwrl_humanoid, rwrl_quadruped

BODIES = {
    "rwrl-cartpole": ("cartpole", "swingup", rwrl_cartpole.open_system, rwrl_cartpole.REPEAT),
    "rwrl-quadruped": ("quadruped", "run", rwrl_quadruped.open_system, 1),
    "rwrl-humanoid": ("humanoid", "walk", rwrl_humanoid.open_system, 1),
}
STEPS, TURNS = 500, 15


def main() -> None:
    lines = ["| task | steps of the suite per second | through sbsrl | time, ratio |", "|---|---|---|---|"]
    for name, (domain, task, opened, repeat) in BODIES.items():
        plain, env = suite.load(domain, task), opened()
        limits = plain.action_spec()
        actions = np.random.default_rng(0).uniform(limits.minimum, limits.maximum, (STEPS // repeat, *limits.shape))
        turns = []
        for _ in range(TURNS):
            env.reset(seed=0)
            plain.reset()
            with plain.physics.reset_context():
                plain.physics.set_state(env._env.physics.get_state())
            turns.append((timed(plain.step, np.repeat(actions, repeat, axis=0)), timed(env.step, actions)))
        rates = [STEPS / median(side) for side in zip(*turns, strict=True)]
        ratio = median(dressed / bare for bare, dressed in turns)
        lines.append(f"| `{name}` | {rates[0]:.0f} | {rates[1]:.0f} | {ratio:.2f} |")
        print(lines[-1], flush=True)
    page = "# Environments\n\nOne core; absolute numbers depend on the machine, ratios hardly.\n\n"
    Path(__file__).with_suffix(".md").write_text(page + "\n".join(lines) + "\n")


def timed(step: Callable[[np.ndarray], object], actions: np.ndarray) -> float:
    started = perf_counter()
    for action in actions:
        step(action)
    return perf_counter() - started


if __name__ == "__main__":
    main()
