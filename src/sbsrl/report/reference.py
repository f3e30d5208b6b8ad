"""The two ends of the scale on which returns are compared."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..experiment import make_learner
from ..loop import Experiment, run_greedy_policy
from ..methods import make_method
from ..task import Task

__all__ = ["Reference", "reference_returns"]


class Reference(NamedTuple):
    """0 on the normalised scale is doing nothing, 1 is the same planner knowing the true dynamics."""

    idle: float
    oracle: float

    def normalised(self, reward: float) -> float:
        return (reward - self.idle) / (self.oracle - self.idle)


def reference_returns(experiment: Experiment, seeds: int = 3) -> Reference:
    """Simulates both on the task's own equations; the mean over `seeds` runs of the oracle."""
    oracle = Experiment(experiment.task, make_method("oracle"), experiment.solver, experiment.settings)
    returns = []
    for seed in range(seeds):
        run = run_greedy_policy(oracle, make_learner(oracle, seed))
        returns.append(run.episode.rewards.sum())
    return Reference(_idle_return(experiment.task), float(np.mean(returns)))


def _idle_return(task: Task) -> float:
    """The return of the action in the middle of its range, held for a whole episode."""
    x, total = task.reset(jax.random.key(0)), 0.0
    middle = (jnp.asarray(task.action_low) + jnp.asarray(task.action_high)) / 2
    for _ in range(task.horizon):
        y = task.dynamics(x, middle)
        total += float(task.reward(x, middle, y))
        x = y
    return total
