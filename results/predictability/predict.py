"""What networks that learned from the offline data foretell: `python results/predictability/predict.py [TASK ...]`.

Held-out episodes of the same behaviour are cut into pieces. From the first observation of each, the mean of the
networks follows the recorded actions by itself; the table says how wrong it is after so many steps.
"""

import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sbsrl._jax import PLAN
from sbsrl.behaviours import record
from sbsrl.specification import Specification

TASKS = {"rwrl-cartpole": "pump", "go-to-goal": "driver", "rwrl-quadruped": "trot", "rwrl-humanoid": "stand"}
EPISODES, STEPS = 10, (1, 5, 10, 25, 50, 100)


def main() -> None:
    print(f"| task | | {' | '.join(f'{h} steps' for h in STEPS)} |")
    print(f"|---|---|{'---|' * len(STEPS)}")
    for name in sys.argv[1:] or TASKS:
        experiment, learner = Specification.make(name, "sbsrl", 0, "cpu", {}).start()
        learned: Any = learner.belief
        belief, metrics = learned.prepared(jax.random.key(0))
        task = experiment.task
        data = record(task, task.behaviours[TASKS[name]], EPISODES, jax.random.key(99))
        for what, errors in measured(belief.nominal(), data, task.horizon).items():
            print(f"| `{name}` | {what} | {' | '.join(f'{error:.2f}' for error in errors)} |", flush=True)
        print(f"<!-- {name}: {metrics} -->", flush=True)


def measured(model: Any, data: Any, horizon: int) -> dict[str, list[float]]:
    """Errors after each number of steps, by what they are errors of."""
    longest = max(STEPS)
    begins = np.concatenate([np.arange(e * horizon, (e + 1) * horizon - longest, longest) for e in range(EPISODES)])
    windows = begins[:, None] + np.arange(longest)
    spread = data.states.std(axis=0) + 1e-6
    states, rewards, costs = followed(
        model, jnp.asarray(data.states[begins], PLAN), jnp.asarray(data.actions[windows], PLAN)
    )
    real, first = data.next_states[windows], data.states[begins]
    return {
        "state, of its spread": [rms((states[:, h - 1] - real[:, h - 1]) / spread) for h in STEPS],
        "the same, if nothing moved": [rms((first - real[:, h - 1]) / spread) for h in STEPS],
        "sum of rewards, of its spread": [
            rms(rewards[:, :h].sum(1) - data.rewards[windows][:, :h].sum(1))
            / (data.rewards[windows][:, :h].sum(1).std() + 1e-6)
            for h in STEPS
        ],
        "cost per step, foretold": [float(costs[:, :h].mean()) for h in STEPS],
        "cost per step, real": [float(data.costs[windows][:, :h, 0].mean()) for h in STEPS],
    }


@jax.jit
@partial(jax.vmap, in_axes=(None, 0, 0))
def followed(
    model: Any, x: Float[Array, " dx"], actions: Float[Array, "H da"]
) -> tuple[Float[Array, "H dx"], Float[Array, " H"], Float[Array, " H"]]:
    """States, rewards and costs along recorded actions."""

    def step(x: Array, a: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        y = model(x, a)
        return y, (y, model.reward(x, a, y), model.costs(x, a, y)[0])

    return jax.lax.scan(step, x, actions)[1]


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.asarray(values) ** 2)))


if __name__ == "__main__":
    main()
