"""The gate: what fresh samples say of a policy decides whether it may be played."""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...belief.protocol import Renewable
from ...networks import Network
from ...problem import Problem
from ...types import PRNGKey
from .forecast import Forecast, constraints, cost_units, forecast
from .network_policy import Units
from .outlook import Outlook

__all__ = ["CLONED", "COLLAPSE", "KEPT", "PASSED", "RESTING", "TRAINED", "TRIED", "Candidate", "Gate", "collapsed"]

TRAINED, PASSED, CLONED, KEPT, RESTING, TRIED = 0, 1, 2, 3, 4, 5
"""Where the policy of an episode comes from: from training, from an earlier check that it passed, from the data, from
before this episode's training, which did not improve on it; it is the action that the task calls safe; or, in the end,
the one that really earned most."""


class Candidate(NamedTuple):
    """A policy that may be played, and what samples say of it that no training has seen."""

    network: Network
    origin: int
    problem: Problem
    """With the samples that were asked."""
    found: Forecast
    violation: float
    """By how much the worst constraint is exceeded, in its own unit; 0 passes the gate."""
    earned: float
    """The return that most samples agree on, in units of the return."""
    score: float
    """The same, less what violations are worth."""


@dataclass(frozen=True, eq=False)
class Gate:
    """Asks samples that no training has seen, from states that it has not seen either."""

    outlook: Outlook
    units: Units
    return_scale: float
    """The unit of J_r."""
    check_starts: int
    """Initial states of a check."""
    safety_weight: float
    """What all safety constraints together are worth in a score."""

    def checked(self, problem: Problem, network: Network, key: PRNGKey) -> Forecast:
        """What the samples say of an episode, from states that are drawn anew."""
        start_key, roll_key = jax.random.split(key)
        nominal = max(CHECK_NOMINAL, self.check_starts // CHECK_NOMINAL)
        starts = self.outlook.unseen(problem, self.check_starts + nominal, start_key)
        found = forecast(network, self.units, problem, starts, self.outlook.steps, nominal, roll_key)
        return found.times(self.outlook.times)

    def _violation(self, problem: Problem, found: Forecast) -> float:
        """By how much the worst constraint is exceeded, in its own unit; 0 if none is, or there is none."""
        excess = np.asarray(constraints(problem, found.costs, problem.bounds) * cost_units(problem)[None])
        worst = float(np.max(excess, initial=0.0))
        return worst if np.isfinite(worst) else float("inf")

    def candidate(self, problem: Problem, network: Network, origin: int, key: PRNGKey) -> Candidate:
        """With what fresh samples say of it."""
        sample_key, roll_key = jax.random.split(key)
        if isinstance(problem.samples, Renewable):
            problem = eqx.tree_at(lambda tree: tree.samples, problem, problem.samples.renewed(sample_key))
        found = self.checked(problem, network, roll_key)
        earned, penalty = self._earned(found), self._penalty(problem, found)
        return Candidate(network, origin, problem, found, self._violation(problem, found), earned, earned - penalty)

    def _earned(self, found: Forecast) -> float:
        """The mean over the samples less their standard deviation; of the nominal model where there are no samples."""
        pessimistic = float(found.reward)
        if len(found.sampled_rewards):
            pessimistic = float(jnp.mean(found.sampled_rewards) - jnp.std(found.sampled_rewards))
        return pessimistic / self.return_scale if np.isfinite(pessimistic) else -float("inf")

    def _penalty(self, problem: Problem, found: Forecast) -> float:
        """What violations are worth."""
        hinge = np.maximum(np.asarray(constraints(problem, found.costs, problem.bounds)), 0)
        penalty = self.safety_weight * (float(hinge.mean()) if hinge.size else 0.0)
        return penalty if np.isfinite(penalty) else float("inf")


CHECK_NOMINAL = 4
"""States from which the nominal model is asked in a check, at least; else as many less than each sample."""
COLLAPSE = 0.5
"""By how much the return falls, in its unit, when training has lost what the policy could do."""


def collapsed(now: Candidate, before: Candidate) -> bool:
    """Whether a policy has lost what it could do, and no violation less to show for it."""
    return now.earned < before.earned - COLLAPSE and now.violation >= before.violation
