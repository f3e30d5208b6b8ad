"""Plays the behaviours of the tasks on MuJoCo: `python results/behaviours/play.py`, some minutes."""

from time import perf_counter

import jax
import numpy as np

from sbsrl.behaviours import record
from sbsrl.tasks import make_task

EPISODES = 20
TASKS = {"rwrl-cartpole": "pump", "go-to-goal": "driver", "rwrl-quadruped": "trot", "rwrl-humanoid": "stand"}


def main() -> None:
    print(
        "| task | behaviour | return (least to most) | cost (least to most) | budget | episodes over it | steps per s |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, behaviour in TASKS.items():
        task, started = make_task(name), perf_counter()
        data = record(task, task.behaviours[behaviour], EPISODES, jax.random.key(1))
        rate = len(data.actions) / (perf_counter() - started)
        returns, costs = (part.reshape(EPISODES, -1).sum(axis=1) for part in (data.rewards, data.costs))
        budget = task.costs[0].budget
        print(
            f"| `{name}` | `{behaviour}` | {spread(returns)} | {spread(costs)} | {budget:g} "
            f"| {np.sum(costs > budget)} of {EPISODES} | {rate:.0f} |"
        )


def spread(values: np.ndarray) -> str:
    return f"{values.mean():.1f} ({values.min():.1f} to {values.max():.1f})"


if __name__ == "__main__":
    main()
