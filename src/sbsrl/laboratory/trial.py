"""One run of Algorithm 1 as analysed, compiled as a whole, together with the truth that it does not see.

It is the loop of `loop.py` with the same belief, problem and solver, for a task whose policies form a finite class; a
test compares the two. Here nothing is reported on the way, so a run of a thousand episodes takes seconds.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._jax import EXACT
from ..belief.weights import WeightBelief
from ..learner import STARTS, Experiment, sample_key
from ..methods import Context
from ..problem import Problem
from ..solve.policy_search import ExactSearch
from ..starts import draw_starts
from ..tasks.ledge import Sled
from ..types import Flag, Index, PRNGKey, State

__all__ = ["Trial", "problem_of", "run_trial"]


class Trial(NamedTuple):
    """What happened."""

    episodes: Index
    """n*: how many episodes were played before Problem (1) became infeasible."""
    terminated: Flag
    """Whether it did, within the episodes allowed."""
    played: Int[Array, " P"]
    """How many episodes each policy was played in."""
    final: Index
    """The greedy policy in the end."""
    feasible: Flag
    """Whether some policy was safe on all samples before every episode."""
    calibrated: Flag
    """Whether f* was in every confidence set: |L_n^T (w* - m_n)| <= beta_n for all n."""
    final_violations: Float[Array, " P"]
    """max_m J_c(pi, f_n^m) - d + Delta_zeta at n*, at least 0: Pi_safe^n* are those with 0."""
    final_rewards: Float[Array, " P"]
    """J_r(pi, mu_n) at n*."""
    final_information: Float[Array, " P"]
    """J_{s_n}(pi, mu_n) at n*."""
    final_threshold: Float[Array, ""]
    """d_sigma at n*."""
    belief: WeightBelief
    """What is believed at n*."""


class _State(NamedTuple):
    belief: WeightBelief
    episode: Index
    exploring: Flag
    played: Int[Array, " P"]
    feasible: Flag
    calibrated: Flag


@eqx.filter_jit
def run_trial(
    experiment: Experiment, belief: WeightBelief, sled: Sled, key: PRNGKey, most: Index | None = None
) -> Trial:
    """Algorithm 1 from the first episode to the last, or to episode `most`."""
    solver, task = experiment.solver, experiment.task
    assert isinstance(solver, ExactSearch)
    allowed = experiment.settings.run.episodes if most is None else most

    def episode(state: _State) -> _State:
        solved = problem_of(experiment, state.belief, key, exploring=True)
        found = solver.search(solved)
        goes_on = found.evaluation.information >= solved.threshold
        x, a, y = _play(solver, sled, found.place, jax.random.fold_in(key, state.episode), task.horizon)
        after = state.belief.append(x, a, y)
        learned = jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), after, state.belief)
        return _State(
            belief=learned,
            episode=state.episode + goes_on.astype(jnp.int32),
            exploring=goes_on,
            played=state.played.at[found.place].add(goes_on.astype(jnp.int32)),
            feasible=state.feasible & (found.evaluation.violation <= 0),
            calibrated=state.calibrated & _calibrated(learned, sled),
        )

    none = jnp.zeros(len(solver.policies.lattice()), jnp.int32)
    yes = jnp.ones((), bool)
    start = _State(belief, jnp.zeros((), jnp.int32), yes, none, yes, yes)
    end = jax.lax.while_loop(lambda s: s.exploring & (s.episode < allowed), episode, start)
    last = problem_of(experiment, end.belief, key, exploring=True)
    greedy = solver.search(problem_of(experiment, end.belief, key, exploring=False))
    nominal = solver.nominal_returns(last)
    return Trial(
        episodes=end.episode,
        terminated=~end.exploring,
        played=end.played,
        final=greedy.place,
        feasible=end.feasible & (greedy.evaluation.violation <= 0),
        calibrated=end.calibrated,
        final_violations=solver.violations(last),
        final_rewards=nominal.rewards,
        final_information=nominal.information,
        final_threshold=last.threshold,
        belief=end.belief,
    )


def problem_of(experiment: Experiment, belief: WeightBelief, key: PRNGKey, exploring: bool) -> Problem:
    """Problem (1) for what is believed, as the loop builds it for the run of this key."""
    task = experiment.task
    starts = draw_starts(task.start, STARTS, key)
    return experiment.method.problem(
        Context(task, belief, experiment.settings, 0, exploring, not exploring, sample_key(key), key, starts)
    )


def _play(
    solver: ExactSearch, sled: Sled, index: Index, key: PRNGKey, horizon: int
) -> tuple[Float[Array, "T 1"], Float[Array, "T 1"], Float[Array, "T 1"]]:
    """One episode on the true system."""
    theta = solver.policies.lattice()[index]

    def step(x: State, key: PRNGKey) -> tuple[State, tuple[State, Float[Array, "1"], State]]:
        a = solver.policies(theta, x)
        y = sled(x, a, key)
        return y, (x, a, y)

    return jax.lax.scan(step, jnp.zeros(1, EXACT), jax.random.split(key, horizon))[1]


def _calibrated(belief: WeightBelief, sled: Sled) -> Bool[Array, ""]:
    """Whether f* is in the confidence set of now, at every z: |L_n^T (w* - m_n)|^2 = (w* - m_n)^T V_n (w* - m_n)."""
    group = belief.groups[0]
    missing = sled.weights - group.mean[group.now, 0]
    return missing @ group.precision @ missing <= (group.beta[group.now] * (1 + 1e-9)) ** 2
