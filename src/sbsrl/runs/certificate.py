"""What a run may claim: which theorem applies, what it rests on, and what was observed."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..belief import SAMPLERS
from ..errors import UserError
from ..loop import Experiment, Record
from ..solve import EvolutionSearch, ExactSearch, GradientSearch, Quadrature
from ..solve.returns import quadrature_error
from ..theory.assumptions import Assumption, assumptions
from ..theory.calculator import Calculator
from ..theory.conclusions import FOR_SAFETY
from ..theory.setting import Setting, unbounded_returns
from ..theory.words import number, power

__all__ = ["certificate", "first_episode_warning", "verdict"]

NOT_CHECKED = (
    "not certified: assumption 3 asks for a policy that is safe for every dynamics within B sqrt(k) of the prior mean, "
    "which was not shown; see 'events' for whether its plans were safe on all samples"
)


def first_episode_warning(experiment: Experiment) -> str | None:
    """A plain word for runs whose first episode nothing can make safe."""
    if experiment.task.prior.informative:
        return None
    return (
        f"prior '{experiment.task.prior.name}': nothing is known of the system, so episode 0 is not certified to be "
        "safe, and no choice of settings can make it so. Use a prior on anything that can break."
    )


class _Theory(NamedTuple):
    """What does not depend on what happens."""

    assumptions: tuple[Assumption, ...]
    constants: dict[str, Any]
    against_safety: list[str]
    """Why the safety theorem does not apply; empty if it does."""
    against_optimality: list[str]


@lru_cache(maxsize=4)
def _theory(experiment: Experiment) -> _Theory:
    if unbounded := unbounded_returns(experiment.task):
        return _without_bounds(experiment, unbounded)
    # What the computation of J_c may be off by is not available for closeness.
    tightening = max(experiment.settings.tightening - _cost_error(experiment), 0.0)
    setting = Setting.of(experiment.task, experiment.settings, tightening=tightening)
    calculator, standing = Calculator(setting), assumptions(setting, experiment.task)
    return _Theory(
        standing,
        dict(_constants(experiment, calculator)),
        [*_against_safety(experiment, calculator), *_unfounded(standing, for_safety=True)],
        [*_against_optimality(experiment), *_unfounded(standing, for_safety=False)],
    )


def _without_bounds(experiment: Experiment, unbounded: str) -> _Theory:
    """Costs or rewards of any size: no theorem applies. The assumptions do not depend on their size, here 1."""
    task, settings = experiment.task, experiment.settings
    standing = assumptions(Setting.of(task, settings, cost=1.0, reward=1.0), task)
    known = {
        "M": settings.samples,
        "tightening": settings.tightening,
        "delta": settings.delta,
        "B": task.prior.bound,
        "T": task.horizon,
        "d_x": task.state_size,
        "d": task.budget,
    }
    return _Theory(standing, known, [unbounded, *_unfounded(standing, for_safety=True)], [unbounded])


def _cost_error(experiment: Experiment) -> float:
    rule = getattr(experiment.solver, "returns", None)
    return quadrature_error(experiment.task) if isinstance(rule, Quadrature) else 0.0


def _unfounded(standing: Sequence[Assumption], for_safety: bool) -> Iterator[str]:
    for a in standing:
        if (a.label in FOR_SAFETY) == for_safety and a.standing in {"violated", "not checkable"}:
            yield f"assumption {a.label} is {a.standing}: {a.why}"


def _against_safety(experiment: Experiment, calculator: Calculator) -> Iterator[str]:
    settings, prior = experiment.settings, experiment.task.prior
    if not experiment.method.cautious:
        yield f"the method {experiment.method.name} does not demand safety on every sample."
    if settings.sampler != "truncated":
        yield f"samples are {SAMPLERS[settings.sampler]}; the theorem is about functions of the prior."
    if any(kernel.rank is None for kernel in calculator.setting.kernels):
        yield f"draws of {prior.describe_kernel()} by Fourier features are not exactly those of the Gaussian process."
    if settings.fitted:
        yield "kernel and noise are fitted to the data."
    if not calculator.calibrated:
        yield "the paper's confidence width is too narrow for sigma_w < 1."
    if not isinstance(experiment.solver, ExactSearch | GradientSearch | EvolutionSearch):
        yield "actions are planned step by step over a shorter horizon; the theorem is about a policy for an episode."
    elif not isinstance(experiment.solver.returns, Quadrature):
        yield "expected costs are estimated from scenarios."
    if calculator.setting.bound is not None and not calculator.tightening_suffices:
        yield _too_few(calculator)


def _too_few(c: Calculator) -> str:
    in_use = (
        f"M = {c.setting.samples} samples and the tightening {number(c.setting.tightening or 0)} are heuristic choices"
    )
    if not 0 < c.covered < math.inf:
        return f"{in_use}: so small a tightening covers no sample but the truth."
    needed = power(c.log_samples(c.covered) / LN10)
    return (
        f"{in_use}: that tightening covers samples within zeta = {number(c.covered)}, of which the theory asks for "
        f"{needed}."
    )


LN10 = math.log(10)


def _against_optimality(experiment: Experiment) -> Iterator[str]:
    settings = experiment.settings
    if not settings.accuracy or settings.exploration_tolerance or not experiment.method.explores:
        yield "the exploration threshold is not that of the theorem (accuracy > 0, exploration_tolerance = 0)."
    if not settings.stop_when_learned:
        yield "the run does not stop when exploration is infeasible (stop_when_learned)."
    if not isinstance(experiment.solver, ExactSearch):
        yield "Problem (1) is solved by search, so that infeasibility is evidence and not proof."


def _constants(experiment: Experiment, c: Calculator) -> Iterator[tuple[str, Any]]:
    """Every number that the claims are made of; null where it is not known or not finite."""
    setting, settings = c.setting, experiment.settings
    yield "M", settings.samples
    yield "tightening", settings.tightening
    yield "error_of_J_c", _cost_error(experiment)
    yield "delta", settings.delta
    yield "B", setting.bound
    yield "sigma_w", setting.noise
    yield "C_max", setting.cost
    yield "R_max", setting.reward
    yield "T", setting.horizon
    yield "d_x", setting.outputs
    yield "d", setting.budget
    yield "Delta", setting.margin
    yield "sigma_max", setting.supremum
    yield from _of_closeness(c)
    yield f"gamma_{setting.horizon}", _finite(lambda: c.gain(setting.horizon))
    yield "beta_1", _finite(lambda: c.width(1))
    if settings.accuracy:
        yield "epsilon", settings.accuracy
        yield "d_sigma_0", _finite(lambda: c.threshold(0))
        yield "n_bar", _finite(lambda: c.episode_bound(2.0))


def _of_closeness(c: Calculator) -> Iterator[tuple[str, Any]]:
    """What the tightening in use covers, and how many samples that takes."""
    zeta = c.covered if c.setting.tightening else 0.0
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


def certificate(experiment: Experiment, records: Sequence[Record]) -> dict[str, Any]:
    """Which guarantee holds for this run, with every constant, and what happened."""
    theory, task, settings = _theory(experiment), experiment.task, experiment.settings
    against = [*theory.against_safety, *_observed_against(records)]
    guarantee = _guarantee(experiment, theory, against, records)
    return {
        "guarantee": guarantee,
        "statement": _statement(experiment, guarantee),
        "reasons": against if guarantee == "none" else theory.against_optimality if guarantee == "safety" else [],
        "delta_spent": None
        if guarantee == "none"
        else {"samples": settings.delta, "confidence sets": settings.delta, "total": 2 * settings.delta},
        "assumptions": {a.label: {"status": a.standing, "why": a.why} for a in theory.assumptions},
        "constants": theory.constants,
        "first_episode": first_episode_warning(experiment) or (NOT_CHECKED if guarantee == "none" else "certified"),
        "model": {
            "prior": task.prior.name,
            "rkhs_bound_source": task.prior.bound_source,
            "scale": list(task.prior.scale),
            "kernel": task.prior.describe_kernel(),
            "hyper_parameters": "fitted to the data, which voids the guarantee" if settings.fitted else "fixed",
            "samples": SAMPLERS[settings.sampler],
            "calibration": next((r.objection for r in records if r.objection), "not contradicted by the data"),
        },
        "events": _events(experiment, records),
    }


def verdict(experiment: Experiment, records: Sequence[Record]) -> str:
    """The guarantee in a line."""
    found = certificate(experiment, records)
    if found["guarantee"] != "none":
        return found["statement"]
    return f"none: {found['reasons'][0]} (certificate.json)"


def _observed_against(records: Sequence[Record]) -> Iterator[str]:
    for r in records:
        if r.objection:
            yield f"{r.objection}."
            return
    if broken := [r.episode for r in records if not r.feasible]:
        yield f"a policy that is not safe on every sample was followed in episodes {broken}."


def _guarantee(experiment: Experiment, theory: _Theory, against: Sequence[str], records: Sequence[Record]) -> str:
    if against:
        return "none"
    stopped = bool(records) and records[-1].phase == "final" and len(records) <= experiment.settings.episodes
    return "safety and optimality" if stopped and not theory.against_optimality else "safety"


def _statement(experiment: Experiment, guarantee: str) -> str:
    if guarantee == "none":
        return "no theorem applies to this run"
    settings = experiment.settings
    safe = (
        f"theorem Safety: with probability {1 - 2 * settings.delta:g} or more, every policy played or returned has "
        f"J_c <= {experiment.task.budget:g}. This bounds the expected cost; single episodes may cost more"
    )
    if guarantee == "safety":
        return safe
    return (
        f"{safe}; theorem Optimality: it earns at most epsilon = {settings.accuracy:g} less than any policy that is "
        "reachable with the margin xi"
    )


def _events(experiment: Experiment, records: Sequence[Record]) -> dict[str, Any]:
    last_explored = max((r.episode for r in records if r.phase == "explore"), default=None)
    over = any(r.phase in {"exploit", "final"} for r in records) and experiment.explores
    return {
        "episodes": len(records),
        "violating_episodes": [r.episode for r in records if not r.safe],
        "largest_violation": max((r.violation for r in records), default=0.0),
        "infeasible_plans": sum(r.infeasible_plans for r in records),
        "fallback_episodes": [r.episode for r in records if not r.feasible],
        "empty_intersections": [r.episode for r in records if r.objection],
        "last_exploring_episode": last_explored,
        "exploration_ended": over,
    }
