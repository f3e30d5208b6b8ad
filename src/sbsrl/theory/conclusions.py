"""What the numbers mean, in plain words."""

import math
from collections.abc import Iterator, Sequence

from .assumptions import Assumption
from .calculator import Calculator
from .tightening import MOST_STEPS
from .words import above, below, count, number, power

__all__ = ["conclusions", "empty_optimality", "empty_safety"]


def conclusions(c: Calculator, assumptions: Sequence[Assumption] = ()) -> Iterator[str]:
    """One sentence or two for each thing that a user should know."""
    if c.premises.bound is None:
        yield "No bound B on the mismatch is known, so neither M nor beta_n can be computed: nothing can be certified."
    else:
        yield from _guarantee(c)
        yield from _in_use(c)
        yield from _horizon(c)
    yield from _vacuous(c)
    violated = [a.label for a in assumptions if a.standing == "violated"]
    if needed := [label for label in violated if label in FOR_SAFETY]:
        yield f"No number of samples gives a certificate here: {_violated(needed)}."
    if others := [label for label in violated if label not in FOR_SAFETY]:
        yield f"The bounds on episodes and optimality do not apply: {_violated(others)}."


FOR_SAFETY = ("process_noise", "rkhs", "prior_knowledge")
"""The assumptions of the safety theorem; the optimality theorem has two more."""


def _violated(labels: Sequence[str]) -> str:
    return f"assumption {labels[0]} is violated" if len(labels) == 1 else f"{' and '.join(labels)} are violated"


def _needed(c: Calculator, zeta: float) -> str:
    log_m = c.log_samples(zeta)
    return power(log_m / math.log(10)) if math.isfinite(log_m) else "more than any number of"


def _guarantee(c: Calculator) -> Iterator[str]:
    zeta, needed = below(c.premises.closeness), _needed(c, c.premises.closeness)
    if c.premises.samples is None:
        yield f"The theory asks for {needed} samples at zeta = {zeta}."
        return
    M = count(c.premises.samples)
    if c.tightening_suffices:
        return  # there is more to say about the tightening in use
    if not c.enough(c.premises.closeness):
        yield f"With M = {M} samples no guarantee holds: the theory asks for {needed} samples at zeta = {zeta}."
    else:
        yield (
            f"M = {M} samples of the prior are enough for zeta = {zeta}, where the theory asks for {needed}: if the "
            f"assumptions hold, plans that keep {above(c.tightening(c.premises.closeness))} below the budget on "
            f"every sample have {_kept(c)} in all episodes with probability {_promised(c)}."
        )


def _kept(c: Calculator) -> str:
    """What the theorem promises, which is about an expected value and not about every single episode."""
    return f"an expected cost J_c <= {c.premises.budget:g}"


def _promised(c: Calculator) -> str:
    """1 - 2 delta: the samples and the confidence sets may fail."""
    return f"1 - 2 delta = {below(1 - 2 * c.premises.delta)}"


def _horizon(c: Calculator) -> Iterator[str]:
    if c.premises.samples is None or c.longest is None:
        return
    M, steps = count(c.premises.samples), "1 step" if c.longest == 1 else f"{count(c.longest)} steps"
    if c.longest >= MOST_STEPS:
        steps = f"more than {steps}"
    start = f"The longest episode that {M} samples certify with this kernel is {steps}"
    if c.longest == c.harmless and c.longest > 0:
        start += ", in which costs cannot differ by the margin whatever the dynamics is"
    if c.norm_exponent >= c.affordable:
        yield (
            f"{start}: B = {number(c.bound)} alone makes the exponent {above(c.norm_exponent)}, and {M} samples "
            f"afford {below(c.affordable)}."
        )
    elif c.smallest_zeta is None:
        yield f"{start}: they afford the exponent {below(c.affordable)}, and no zeta has so small a one."
    else:
        yield (
            f"{start} (T = {c.premises.horizon}): the smallest zeta they certify is {above(c.smallest_zeta)}, which "
            f"asks for the tightening {above(c.tightening(c.smallest_zeta))}."
        )


def _in_use(c: Calculator) -> Iterator[str]:
    """The tightening that a run uses."""
    in_use = c.premises.tightening
    if in_use is None:
        return
    if in_use == 0:
        yield "The tightening in use is 0: it covers no sample but the truth itself."
    elif math.isinf(c.covered):
        yield f"The tightening {below(in_use)} in use is more than costs can differ by: any sample will do."
    elif c.tightening_suffices:
        M = count(c.premises.samples or 0)
        yield (
            f"The tightening {below(in_use)} and the {M} samples in use are enough: it covers samples within "
            f"zeta = {below(c.covered)}, for which the theory asks for {_needed(c, c.covered)} samples of the prior. "
            f"If the assumptions hold, {_kept(c)} in every episode with probability {_promised(c)}."
        )
    else:
        yield (
            f"The tightening {below(in_use)} in use is a heuristic: it covers samples within zeta = "
            f"{below(c.covered)}, for which the theory asks for {_needed(c, c.covered)} samples."
        )


def _vacuous(c: Calculator) -> Iterator[str]:
    """Numbers that say less than they seem to."""
    premises = c.premises
    if premises.margin is None:
        yield (
            f"The margin Delta of safe policies is not known. The most optimistic value, {above(premises.room)}, was "
            "used: all that the budget leaves. A smaller one asks for a smaller zeta and more samples."
        )
    if math.isinf(premises.closeness_limit):
        yield "Every zeta is admissible: whatever the dynamics, costs cannot differ by more than the margin."
    yield from empty_safety(c)
    if not c.calibrated:
        yield (
            "The paper's beta_n is too narrow for sigma_w < 1: samples that are cut to it may be moved away from the "
            "truth, and nothing that rests on it is certified."
        )
    yield from empty_optimality(c)


def empty_safety(c: Calculator) -> Iterator[str]:
    """Why the safety theorem would say nothing even if it applied."""
    premises = c.premises
    if premises.delta >= 0.5:
        yield f"delta = {number(premises.delta)} promises nothing: safety holds with probability 1 - 2 delta."
    dearest = premises.least + premises.cost * (1 if premises.aggregation == "statewise" else premises.horizon)
    if premises.budget >= dearest:
        yield f"The budget d = {premises.budget:g} promises nothing: no episode can cost more than {above(dearest)}."


def empty_optimality(c: Calculator) -> Iterator[str]:
    """Why the optimality theorem would say nothing even if it applied."""
    premises = c.premises
    if premises.accuracy >= premises.reward * premises.horizon:
        yield (
            f"epsilon = {number(premises.accuracy)} promises nothing: returns differ by at most T R_max = "
            f"{above(premises.reward * premises.horizon)}."
        )
    elif c.vacuous_accuracy:
        yield (
            f"The optimality theorem says nothing here: epsilon = {number(premises.accuracy)} and Delta_zeta leave no "
            "policy to compare with."
        )
