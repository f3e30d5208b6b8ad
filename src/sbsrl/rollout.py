"""One episode on the true system."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np

from ._jax import EXACT
from .problem import feasible
from .solve import Decision, Solution
from .task import Episode, Task
from .types import Action, PRNGKey, Scalar, State, StepFunction, TransitionFunction

__all__ = ["Run", "run_episode"]


class Run(NamedTuple):
    """What happened in an episode, and what the policy thought about it."""

    solution: Solution
    episode: Episode
    infeasible_plans: int
    worst_plan: float
    information: float
    evaluated: float


def run_episode(task: Task, solution: Solution, key: PRNGKey, on_step: Callable[[], None]) -> Run:
    """Runs the policy from the initial state for T steps. `on_step` is called after each."""
    policy, x, state = solution.policy, solution.initial_state, solution.start
    states, transitions, decisions = [x], [], []
    for t in range(task.horizon):
        plan_key, step_key = jax.random.split(jax.random.fold_in(key, t))
        decision, state = policy.act(x, state, plan_key)
        x, reward, cost = _true_step(task.step, task.reward, task.cost, x, decision.action.astype(EXACT), step_key)
        states.append(x)
        transitions.append((decision.action.astype(EXACT), reward, cost))
        decisions.append(decision)
        on_step()
    actions, rewards, costs = (np.stack(part) for part in zip(*transitions, strict=True))
    return _summarise(solution, Episode(np.stack(states), actions, rewards, costs), decisions)


@eqx.filter_jit
def _true_step(
    step: StepFunction, reward: TransitionFunction, cost: TransitionFunction, x: State, a: Action, key: PRNGKey
) -> tuple[State, Scalar, Scalar]:
    """A system that is a module of arrays is compiled once for all its parameters."""
    y = step(x, a, key)
    return y, reward(x, a, y), cost(x, a, y)


def _summarise(solution: Solution, episode: Episode, decisions: list[Decision]) -> Run:
    return Run(
        solution=solution,
        episode=episode,
        infeasible_plans=sum(not feasible(d.evaluation) for d in decisions),
        worst_plan=max(float(d.evaluation.violation) for d in decisions),
        information=float(sum(float(d.information) for d in decisions)),
        evaluated=float(np.mean([float(d.evaluated) for d in decisions])),
    )
