"""What the laboratory's compiled loop gains over the general one, on the same episodes; writes `laboratory.md`.

Both run Algorithm 1 on the world `motor` of `sbsrl reproduce theorems`, from the first episode on, in one process.
"""

import dataclasses
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from common import seconds, table

from sbsrl.belief.protocol import Belief
from sbsrl.laboratory.trial import Trial, run_trial
from sbsrl.laboratory.world import World
from sbsrl.learner import Learner, Turn
from sbsrl.loop import algorithm_1
from sbsrl.policy import Policy
from sbsrl.systems.episode import Guard, Played, run_episode
from sbsrl.tasks import ledge
from sbsrl.tasks.ledge import Sled

EPISODES, ROUNDS = 40, 5
RUNS = 320
"""Of `sbsrl reproduce theorems`, each of some 600 episodes."""


def compiled(world: World, sled: Sled) -> Callable[[], Trial]:
    belief = world.belief()
    return lambda: run_trial(world.experiment, belief, sled, jax.random.key(7), jnp.asarray(EPISODES, jnp.int32))


def general(world: World, sled: Sled) -> Callable[[], Belief]:
    task = ledge.make(world.task.prior, (world.budget,), sled)
    experiment, env, guard = dataclasses.replace(world.experiment, task=task), task.open(), Guard.of(task)
    learner = Learner.create(experiment, 7)

    def play(policy: Policy, turn: Turn) -> Played:
        return run_episode(env, policy, turn.seed, turn.key, task.horizon, guard=guard)

    return lambda: list(islice(algorithm_1(experiment, learner, play), EPISODES))[-1].learner.belief


def main() -> None:
    world = World("motor")
    sled = world.draw_sled(np.random.default_rng(0))
    times = seconds([compiled(world, sled), general(world, sled)], ROUNDS)
    each = [1000 * t / EPISODES for t in times]
    lines = [
        "# Two loops of Algorithm 1 (`make bench`)",
        "",
        f"The first {EPISODES} episodes of a run of the laboratory, {world.samples} samples, policies by exact search.",
        "Processor time of one process, measured in turns.",
        "",
        *table(
            ["loop", "ms per episode", "ratio"],
            [
                ["compiled as a whole (`laboratory/trial.py`)", f"{each[0]:.2f}", "1"],
                ["general (`loop.py`)", f"{each[1]:.2f}", f"{each[1] / each[0]:.1f}"],
            ],
        ),
        "",
        f"`sbsrl reproduce theorems` plays 200,000 episodes in {RUNS} runs.",
    ]
    (Path(__file__).parent / "laboratory.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
