"""What a run may claim: which theorem applies, what it rests on, and what was observed.

Belief, solver, method and task state themselves what speaks against a theorem; here their sentences are put together.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import UserError
from ..learner import Experiment
from ..premises import premises_of, surely_reachable, task_facts, unbounded_returns, uncertifiable
from ..record import Interruption, Record
from ..recorded_costs import beyond_budget
from ..task import Task
from ..theory.assumptions import Assumption, assumptions
from ..theory.calculator import Calculator
from ..theory.conclusions import FOR_SAFETY, empty_optimality, empty_safety
from ..theory.evidence import SPENT
from ..theory.words import above, below, power
from ..transitions import Transitions
from .observed import observed_against
from .promise import promise

__all__ = ["certificate", "first_episode_warning"]

NOT_CHECKED = (
    "not certified: assumption 3 asks for a policy that is safe for every dynamics within B sqrt(k) of the prior mean, "
    "which was not shown; see 'events' for whether its plans were safe on all samples"
)


def first_episode_warning(experiment: Experiment) -> str | None:
    """A plain word for runs whose first episode nothing can make safe."""
    task = experiment.task
    if task.prior.informative:
        return None if task.prior.data is None else _beyond_budget(task, task.prior.data)
    return (
        f"prior '{experiment.task.prior.name}': nothing is known of the system, so episode 0 is not certified to be "
        "safe, and no choice of settings can make it so. Use a prior on anything that can break."
    )


def _beyond_budget(task: Task, data: Transitions) -> str | None:
    """That the offline data themselves cost too much, in words; None if they do not."""
    for cost, mean in beyond_budget(task.costs, data):
        return (
            f"an episode of the offline data costs {mean:.4g} on average, and the budget is {cost.budget:g} "
            f"({cost.name}): whoever made them is no policy to fall back to."
        )
    return None


class _Theory(NamedTuple):
    """What does not depend on what happens."""

    assumptions: tuple[Assumption, ...]
    constants: dict[str, Any]
    against_safety: list[str]
    """Why the safety theorem does not apply; empty if it does."""
    against_optimality: list[str]


@lru_cache(maxsize=4)
def _theory(experiment: Experiment) -> _Theory:
    """Of a run with confidence sets; without them there is nothing to compute."""
    task, settings = experiment.task, experiment.settings
    stated = [*_stated_against_safety(experiment)]
    if missing := _out_of_scope(experiment):
        return _Theory((), _known(experiment), [*stated, missing], [])
    if unbounded := unbounded_returns(task):
        standing = assumptions(premises_of(task, settings, cost=1.0, reward=1.0), task_facts(task))
        return _Theory(standing, _known(experiment), [*stated, unbounded, *_unfounded(standing, True)], [unbounded])
    # What the computation of J_c may be off by is not available for closeness.
    tightening = max(settings.method.tightening[0] - settings.solver.cost_error(task), 0.0)
    premises = premises_of(task, settings, tightening=tightening)
    calculator, standing = Calculator(premises), assumptions(premises, task_facts(task))
    return _Theory(
        standing,
        dict(_constants(experiment, calculator)),
        [
            *stated,
            *empty_safety(calculator),
            *_few_samples(calculator, settings.method.tightening[0]),
            *_unfounded(standing, for_safety=True),
        ],
        [
            *empty_optimality(calculator),
            *_stated_against_optimality(experiment),
            *_unfounded(standing, for_safety=False),
        ],
    )


def _out_of_scope(experiment: Experiment) -> str | None:
    """Why no theorem speaks of such a run at all."""
    if not experiment.settings.belief.calibrated:
        return f"a belief of the kind '{experiment.settings.belief.name}' has no confidence sets."
    return uncertifiable(experiment.task)


def _stated_against_safety(experiment: Experiment) -> Iterator[str]:
    """What method, belief and solver say of themselves."""
    if not experiment.method.cautious:
        yield f"the method {experiment.method.name} does not demand safety on every sample."
    yield from experiment.settings.belief.against_safety(experiment.task)
    yield from experiment.settings.solver.against_safety(experiment.task)


def _stated_against_optimality(experiment: Experiment) -> Iterator[str]:
    method, run = experiment.settings.method, experiment.settings.run
    if not method.accuracy or method.exploration_tolerance or not experiment.method.explores:
        yield "the exploration threshold is not that of the theorem (accuracy > 0, exploration_tolerance = 0)."
    if not run.stop_when_learned:
        yield "the run does not stop when exploration is infeasible (stop_when_learned)."
    yield from experiment.settings.solver.against_optimality(experiment.task)


def _unfounded(standing: Sequence[Assumption], for_safety: bool) -> Iterator[str]:
    for a in standing:
        if (a.label in FOR_SAFETY) == for_safety and a.standing in {"violated", "not checkable"}:
            yield f"assumption {a.label} is {a.standing}: {a.why}"


def _few_samples(c: Calculator, chosen: float) -> Iterator[str]:
    """That M and the tightening that was chosen do not go together; what J_c may be off by is not left of it."""
    if c.premises.bound is None or c.tightening_suffices:
        return
    left = c.premises.tightening or 0.0
    set_aside = f" (of which {below(left)} are left for closeness)" if left < chosen else ""
    in_use = f"M = {c.premises.samples} samples and the tightening {chosen:g}{set_aside} are heuristic choices"
    if not 0 < c.covered < math.inf:
        yield f"{in_use}: so small a tightening covers no sample but the truth."
        return
    needed = power(c.log_samples(c.covered) / LN10)
    yield (
        f"{in_use}: that tightening covers samples within zeta = {below(c.covered)}, of which the theory asks for "
        f"{needed}."
    )


LN10 = math.log(10)


def _known(experiment: Experiment) -> dict[str, Any]:
    """The constants of runs to which no theorem applies."""
    task, settings, gp = experiment.task, experiment.settings, experiment.task.prior.gp
    return {
        "M": settings.method.samples,
        "tightening": _one(settings.method.tightening),
        "delta": getattr(settings.belief, "delta", None),
        "B": None if gp is None else gp.bound,
        "T": task.horizon,
        "d_x": task.state_size,
        "d": _one([cost.budget for cost in task.costs]),
    }


def _one(values: Sequence[float]) -> Any:
    """A single number as it is, several as a list."""
    return values[0] if len(values) == 1 else list(values)


def _constants(experiment: Experiment, c: Calculator) -> Iterator[tuple[str, Any]]:
    """Every number that the claims are made of; null where it is not known or not finite."""
    premises, settings = c.premises, experiment.settings
    yield from list(_known(experiment).items())[:2]
    yield "error_of_J_c", settings.solver.cost_error(experiment.task)
    yield "delta", premises.delta
    yield "B", premises.bound
    yield "sigma_w", premises.noise
    yield "C_max", premises.cost
    yield "R_max", premises.reward
    yield "T", premises.horizon
    yield "d_x", premises.outputs
    yield "d", premises.budget
    yield "Delta", premises.margin
    yield "sigma_max", premises.supremum
    yield from _of_closeness(c)
    yield f"gamma_{premises.horizon}", _finite(lambda: c.gain(premises.horizon))
    yield "beta_1", _finite(lambda: c.width(1))
    if settings.method.accuracy:
        yield "epsilon", settings.method.accuracy
        yield "xi", (xi := settings.method.accuracy + settings.method.tightening[0])
        yield "policies_reachable_whatever_the_dynamics", surely_reachable(experiment.task, xi)
        yield "d_sigma_0", _finite(lambda: c.threshold(0))
        yield "n_bar", _finite(lambda: c.episode_bound(2.0))


def _of_closeness(c: Calculator) -> Iterator[tuple[str, Any]]:
    """What the tightening in use covers, and how many samples that takes."""
    zeta = c.covered if c.premises.tightening else 0.0
    known = 0 < zeta < math.inf
    yield "zeta", zeta if known else None
    yield "phi", _finite(lambda: c.small_ball(zeta)) if known else None
    yield "exponent", _finite(lambda: c.exponent(zeta)) if known else None
    yield "log10_M_needed", _finite(lambda: c.log_samples(zeta) / LN10) if known else None


def _finite(formula: Callable[[], float]) -> float | None:
    try:
        value = float(formula())
    except UserError:
        return None
    return value if abs(value) < math.inf else None


def certificate(
    experiment: Experiment,
    records: Sequence[Record],
    interruptions: Sequence[Interruption] = (),
    warning: str | None = None,
) -> dict[str, Any]:
    """Which guarantee holds for this run, with every constant, and what happened.

    `warning` is that of the belief as it is now; the records have those of before.
    """
    theory = _theory(experiment)
    warning = next((r.calibration_warning for r in records if r.calibration_warning), warning)
    planned = [record for record in records if record.planned]
    against = [*theory.against_safety, *observed_against(experiment, planned, warning)]
    guarantee = _guarantee(experiment, theory, against, planned)
    reasons = {"none": against, "safety": theory.against_optimality or [UNFINISHED]}.get(guarantee, [])
    return {
        "guarantee": guarantee,
        "statement": _statement(experiment, guarantee),
        "reasons": reasons,
        "delta_spent": None if guarantee == "none" else _spent(experiment),
        "assumptions": {
            a.label: {"status": a.standing, "why": a.why} for a in (*theory.assumptions, *_of_data(experiment))
        },
        "constants": theory.constants,
        "first_episode": first_episode_warning(experiment) or _first_episode(theory, guarantee),
        "model": {
            "prior": experiment.task.prior.name,
            **experiment.settings.belief.describe(experiment.task),
            "calibration": warning or NOT_CONTRADICTED,
        },
        "events": _events(experiment, records, interruptions),
        **({} if (promised := promise(experiment, records)) is None else {"risk": promised}),
    }


def _of_data(experiment: Experiment) -> Iterator[Assumption]:
    """That offline data, if there are any, are of this system: an assumption that the paper does not need."""
    data, source = experiment.task.prior.data, experiment.settings.run.data
    if data is None:
        return
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in data[:3])).hexdigest()[:12]
    yield Assumption(
        "offline_data",
        "given",
        f"{len(data.actions)} transitions ({source or 'of the prior'}, sha256 {digest}) are taken to be of this "
        "system, with its noise; every episode is compared with what they say.",
    )


def _first_episode(theory: _Theory, guarantee: str) -> str:
    """What is known of the first one, by the standing of assumption 3."""
    if guarantee != "none":
        return "certified"
    if any(a.label == "prior_knowledge" and a.standing == "checked" for a in theory.assumptions):
        return (
            "not certified, since the theorem does not apply; some policy is safe for every dynamics within B sqrt(k) "
            "of the prior mean (assumption 3); see 'events' for whether its plans were safe on all samples"
        )
    return NOT_CHECKED


NOT_CONTRADICTED = "not contradicted by the data"


UNFINISHED = "the run has not ended because nothing was left to explore within what is safe."


def _spent(experiment: Experiment) -> dict[str, float]:
    """What may fail: one of the samples or confidence sets, and a test by a false alarm, which ends the guarantee."""
    delta = _theory(experiment).constants["delta"]
    tests = ["the misfit", "the mean cost"] + ["the offline data"] * (experiment.task.prior.data is not None)
    each = {"samples": delta, "confidence sets": delta, **{f"test of {name}": delta * SPENT for name in tests}}
    return {**each, "total": math.fsum(each.values())}


def _guarantee(experiment: Experiment, theory: _Theory, against: Sequence[str], records: Sequence[Record]) -> str:
    if against:
        return "none"
    last = records[-1] if records else None
    finished = last is not None and last.phase == "final" and last.ended != "fault"
    stopped = finished and len(records) <= experiment.settings.run.episodes
    return "safety and optimality" if stopped and not theory.against_optimality else "safety"


def _statement(experiment: Experiment, guarantee: str) -> str:
    if guarantee == "none":
        return "no theorem applies to this run"
    (cost,) = experiment.task.costs
    safe = (
        f"theorem Safety: with probability {below(1 - _spent(experiment)['total'])} or more, every policy played or "
        f"returned has J_c <= {cost.budget:g}, and no test of this certificate ends it by mistake. This bounds the "
        "expected cost; single episodes may cost more"
    )
    if guarantee == "safety":
        return safe
    constants = _theory(experiment).constants
    known = constants["policies_reachable_whatever_the_dynamics"]
    among = "" if known is None else f" (whatever the dynamics, {known} of the class are among them)"
    return (
        f"{safe}; theorem Optimality: it earns at most epsilon = {experiment.settings.method.accuracy:g} less than any "
        f"policy that is reachable with the margin xi = {above(constants['xi'])}{among}"
    )


def _events(experiment: Experiment, records: Sequence[Record], interruptions: Sequence[Interruption]) -> dict[str, Any]:
    last_explored = max((r.episode for r in records if r.phase == "explore"), default=None)
    planned = [r for r in records if r.planned and r.phase != "final"]
    last = records[-1] if records else None
    stopped = last is not None and last.phase == "final" and len(planned) < experiment.settings.run.episodes
    over = experiment.explores and (stopped or any(r.phase == "exploit" for r in records))
    return {
        "episodes": len(records),
        "violating_episodes": [r.episode for r in records if not r.safe],
        "largest_violation": max((r.violation for r in records), default=0.0),
        "infeasible_plans": sum(r.infeasible_plans for r in records),
        "interventions": [r.episode for r in records if r.intervened],
        "fallback_episodes": [r.episode for r in records if r.planned and not r.feasible],
        "empty_intersections": [r.episode for r in records if r.calibration_warning],
        "interrupted_episodes": [i.episode for i in interruptions],
        "violating_interruptions": [i.episode for i in interruptions if not i.safe],
        "faults": {r.episode: r.reason for r in records if r.ended == "fault"},
        "last_exploring_episode": last_explored,
        "exploration_ended": over,
    }
