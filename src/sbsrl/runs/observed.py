"""What the episodes of a run say against its guarantee: one sentence each, with the probability of a false alarm."""

import math
from collections.abc import Iterator, Sequence

from ..learner import Experiment
from ..record import Record
from ..theory.evidence import SPENT, Misfit, contradicted, cost_evidence, share_of_look
from ..theory.words import above, number

__all__ = ["observed_against"]


def observed_against(experiment: Experiment, records: Sequence[Record], warning: str | None) -> Iterator[str]:
    """Why a guarantee does not hold any more, whatever was assumed: an empty answer if nothing speaks against it."""
    if warning:
        yield f"{warning}."
        return
    for record in (r for r in records if r.departure):
        yield f"in episode {record.episode} happened what the task says cannot: {record.departure}"
        break
    if broken := [r.episode for r in records if not r.feasible]:
        yield f"a policy that is not safe on every sample was followed in episodes {broken}."
    yield from _of_computation(experiment, records)
    alpha = SPENT * getattr(experiment.settings.belief, "delta", 0.0)
    if alpha:
        yield from _of_data(records, alpha)
        yield from _of_misfit(records, alpha)
        yield from _of_costs(experiment, records, alpha)


def _of_computation(experiment: Experiment, records: Sequence[Record]) -> Iterator[str]:
    """That J_c is not known as well as was set aside for: the rule is too coarse for the cost, or states leave it."""
    task = experiment.task
    aside = experiment.settings.solver.cost_error(task)
    if not aside:
        return
    most = max(cost.spread(task.horizon) for cost in task.costs)
    for record in records:
        quadrature, leaving = (record.metrics.get(name, math.inf) for name in ("quadrature_error", "leaving"))
        if math.isinf(quadrature + leaving):
            yield f"what J_c of the policy of episode {record.episode} may be off by was not measured."
            return
        if quadrature + most * leaving > aside:
            yield (
                f"J_c of the policy of episode {record.episode} may be off by {above(quadrature + most * leaving)}, "
                f"and {number(aside)} of the tightening is set aside for that: by comparison with finer nodes "
                f"quadrature is off by up to {above(quadrature)}, and states leave the limits with a probability of up "
                f"to {above(leaving)}."
            )
            return


def _of_data(records: Sequence[Record], alpha: float) -> Iterator[str]:
    """That the offline data are of another system."""
    for record in records:
        if record.metrics.get("disagreement", 0.0) > 1:
            yield (
                f"the offline data and the episodes up to episode {record.episode} are not of one system with this "
                f"noise and this bound: their confidence sets have no common point (false alarm: at most "
                f"{above(alpha)})."
            )
            return


def _of_misfit(records: Sequence[Record], alpha: float) -> Iterator[str]:
    """That observations are where confidence sets and noise do not let them be."""
    for look, record in enumerate((r for r in records if "misfit/squares" in r.metrics), start=1):
        count, *others = (record.metrics[f"misfit/{name}"] for name in Misfit._fields)
        found = Misfit(int(count), *others)
        if contradicted(found, alpha * share_of_look(look)):
            low, high = (
                number(math.sqrt(max(each, 0.0) / found.observations))
                for each in (found.squares - found.least, found.squares + found.most)
            )
            yield (
                f"{found.observations} observations up to episode {record.episode} contradict the bound B or the "
                f"declared noise sigma_w: by them it would be between {low} and {high} times as large (false alarm: "
                f"at most {above(alpha)})."
            )
            return


def _of_costs(experiment: Experiment, records: Sequence[Record], alpha: float) -> Iterator[str]:
    """That the mean cost of the episodes is above the budget."""
    (cost,) = experiment.task.costs[:1]
    paid = [record.cost for record in records]
    if not math.isfinite(cost.limits[0]) or not cost.budget > cost.least(experiment.task.horizon):
        return
    found = cost_evidence(paid, cost.budget, cost.least(experiment.task.horizon))
    if found * alpha >= 1:
        yield (
            f"the episodes cost {number(math.fsum(paid) / len(paid))} on average, which contradicts J_c <= "
            f"{cost.budget:g} (false alarm: at most {above(alpha)})."
        )
