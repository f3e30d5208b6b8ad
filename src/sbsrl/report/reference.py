"""The two ends of the scale on which returns are compared, computed from a task's equations."""

from contextlib import closing
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from ..learner import Experiment, Learner, Turn
from ..loop import final_episode
from ..methods import REFERENCE
from ..policy import Policy
from ..runs.view import Reference
from ..solve.protocol import Preparing
from ..systems.episode import Guard, Played, run_episode
from ..systems.equations import EquationsEnv
from ..task import Equations, Task

__all__ = ["reference_returns"]


def reference_returns(experiment: Experiment, seeds: int = 3) -> Reference | None:
    """Simulates both on the task's own equations; the mean over `seeds` runs of the oracle.

    None without equations, and for solvers that learn over many episodes: their oracle is a run of its own. The true
    system is not touched.
    """
    task, equations = experiment.task, experiment.task.equations
    if equations is None or isinstance(experiment.solver, Preparing):
        return None
    no_risk = replace(experiment.settings.method, risk=0.0)  # who knows the truth needs no draws of a belief
    oracle = Experiment(task, REFERENCE, experiment.solver, replace(experiment.settings, method=no_risk))
    returns = [_oracle_return(oracle, equations, seed) for seed in range(seeds)]
    return Reference(_idle_return(task, equations), float(np.mean(returns)))


def _oracle_return(oracle: Experiment, equations: Equations, seed: int) -> float:
    task = oracle.task
    guard = Guard(task.state_size, len(task.costs))
    with closing(EquationsEnv(equations, task.action_low, task.action_high, task.horizon)) as simulation:

        def play(policy: Policy, turn: Turn) -> Played:
            return run_episode(simulation, policy, turn.seed, turn.key, task.horizon, guard=guard)

        return final_episode(oracle, Learner.create(oracle, seed), play).record.reward


def _idle_return(task: Task, equations: Equations) -> float:
    """The return of the action in the middle of its range, held for a whole episode."""
    x, total, middle = equations.start(jax.random.key(0)), 0.0, jnp.asarray(task.middle_action)
    for _ in range(task.horizon):
        y = equations.dynamics(x, middle)
        total += float(equations.signals.reward(x, middle, y))
        x = y
    return total
