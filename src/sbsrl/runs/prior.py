"""`sbsrl prior`: what is known of a user's system, from data or a simulator, and what that means for episode 0."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ..errors import UserError
from ..learner import Experiment, Learner, context_of
from ..methods import DEFAULT
from ..own.knowledge import Knowledge
from ..own.names import bind_new
from ..own.proposal import Proposal
from ..solve.protocol import Preparing
from ..specification import Specification
from .acquaintance import asked_of, proposal_of

__all__ = ["first_plans", "make_prior"]

BEGINNINGS = 8
"""Initial states from which a first plan is looked for."""


def make_prior(spec: str, changes: Mapping[str, Any], seed: int = 0) -> Proposal:
    """What the data and the simulator that the changes name suggest; the last sentence is about the first episode.

    Nothing is played. Without data and without a simulator that knows where episodes begin there is nothing to say.
    """
    asked = asked_of(spec, changes)
    if asked.needs_episodes:
        raise UserError(
            f"a prior of {spec} is made of recorded data (--data FILE), or of a simulator (--simulator module:function "
            "with --set start=...); 'sbsrl train' plays some cautious episodes itself if there is neither."
        )
    proposal = proposal_of(asked, [], seed)
    sentence = first_plans(spec, proposal.knowledge, changes, seed)
    return Proposal(proposal.knowledge, (*proposal.said, sentence))


def first_plans(spec: str, knowledge: Knowledge, changes: Mapping[str, Any], seed: int = 0) -> str:
    """Whether the first plans of a run with this prior are feasible, in words."""
    prior = bind_new("prior", knowledge.as_written)
    experiment, learner = Specification.make(spec, DEFAULT.name, seed, "cpu", {**changes, "prior": prior}).start()
    if isinstance(experiment.solver, Preparing):
        return (
            "Whether episode 0 is feasible is known after the offline phase, in which networks learn from the data: "
            "'sbsrl train' says so."
        )
    excesses = _first_violations(experiment, learner)
    samples, failed = experiment.settings.method.samples, sum(each > 0 for each in excesses)
    tried = f"{len(excesses)} initial state{'s' if len(excesses) > 1 else ''}"
    if not failed:
        return f"Episode 0 is feasible: tried from {tried}, a first plan is safe on all {samples} samples."
    return (
        f"Episode 0 is not feasible: tried from {tried}, {failed} times no first plan was found that is safe on all "
        f"{samples} samples; the best exceeds the tightened budget by up to {max(excesses):.3g}. Record more data "
        "where episodes begin, give a better simulator, or raise the budget. If you know more than the data say, lower "
        "the scale in the file."
    )


def _first_violations(experiment: Experiment, learner: Learner) -> list[float]:
    """By how much the first plan exceeds the tightened budget, from each of some initial states."""
    context = context_of(experiment, learner)
    solution, _ = experiment.solver.solve(experiment.method.problem(context), learner.solver, context.key)
    starts = np.unique(np.asarray(context.starts), axis=0)[:BEGINNINGS]
    found = []
    for i, x in enumerate(starts):
        key = jax.random.fold_in(context.key, i)
        _, _, metrics = solution.policy.act(jax.device_put(x), solution.policy.init(), key)
        found.append(float(metrics["violation"]))
    return found
