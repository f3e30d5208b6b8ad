"""The paper's assumptions, one by one: what is given, what can be checked, what fails."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..errors import UserError
from ..kernels import Kernel, Matern, On, Scaled, Sum
from .features import expandable
from .premises import Premises
from .words import below

__all__ = ["Assumption", "TaskFacts", "assumptions"]

Standing = Literal["given", "checked", "violated", "not checkable"]


class Assumption(NamedTuple):
    """One assumption, by the paper's label."""

    label: str
    standing: Standing
    why: str


@dataclass(frozen=True)
class TaskFacts:
    """What is known of a task beyond the premises, by which the assumptions are judged."""

    modelled_noise: tuple[float, ...]
    """Standard deviation of the process noise in the model, one number per state."""
    true_noise: tuple[float, ...] | None = None
    """The same of the true system; None: not known."""
    bound_source: str = "as stated"
    """Where B comes from, in words."""
    first_step_cost: float | None = None
    """A lower bound on what every policy costs on the worst dynamics of F_0^B; None: not known."""
    robust_margin: float | None = None
    """Delta by robust dynamic programming over F_0^B, not above 0 if no policy is safe; None: not computed."""


def assumptions(premises: Premises, facts: TaskFacts | None = None) -> tuple[Assumption, ...]:
    """All five. Without facts about the task, what the premises state is taken as given."""
    return (
        Assumption("process_noise", *_process_noise(premises, facts)),
        Assumption("rkhs", *_rkhs(premises, facts)),
        Assumption("prior_knowledge", *_prior_knowledge(premises, facts)),
        Assumption("continuity_sigma", *_continuity(premises)),
        Assumption("information_gain", *_worst([_growth(kernel) for kernel in premises.kernels])),
    )


Verdict = tuple[Standing, str]


def _process_noise(premises: Premises, facts: TaskFacts | None) -> Verdict:
    if facts is None:
        return "given", f"the noise is taken to be Gaussian with sigma_w = {premises.noise:g} in every output."
    true, modelled = facts.true_noise, facts.modelled_noise
    if true is None:
        return "not checkable", f"the noise of the true system is not known; the model says {_list(modelled)}."
    if all(math.isclose(t, m, rel_tol=1e-6) for t, m in zip(true, modelled, strict=True)):
        return "given", "the model's noise is that of the true system."
    if not any(true):
        return "violated", "the true system is free of noise; the bound on costs needs Gaussian noise of size sigma_w."
    return "violated", f"the true noise is {_list(true)}, and the model says {_list(modelled)}."


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{v:.3g}" for v in values)


def _rkhs(premises: Premises, facts: TaskFacts | None) -> Verdict:
    source = "as stated" if facts is None else facts.bound_source
    if premises.bound is None:
        return "not checkable", f"no bound B on the norm of the mismatch is known ({source})."
    return "given", f"B = {premises.bound:g}; {source}."


def _prior_knowledge(premises: Premises, facts: TaskFacts | None) -> Verdict:
    if premises.bound is None:
        return "not checkable", "without B the set of dynamics that must all be safe is not known."
    if facts is not None and (found := _against_budget(premises.budget, facts)):
        return found
    margin, robust = premises.margin, None if facts is None else facts.robust_margin
    if margin is not None and robust is not None and margin <= robust:
        return (
            "checked",
            f"some policy keeps Delta = {below(margin)} below the budget on all of F_0^B, as robust dynamic "
            "programming shows.",
        )
    if margin is not None:
        return "given", f"some policy is taken to keep Delta = {margin:g} below the budget on all of F_0^B."
    return "not checkable", "whether some policy is safe on all of F_0^B was not checked, and its margin is not known."


def _against_budget(budget: float, facts: TaskFacts) -> Verdict | None:
    """That no policy keeps to the budget on all of F_0^B, if that is known."""
    cost = facts.first_step_cost
    if cost is not None and cost > budget:
        return (
            "violated",
            f"no policy is safe on all dynamics within B sqrt(k) of the prior mean: whatever the first action, one of "
            f"them costs {below(cost)} or more, and the budget is {budget:g}.",
        )
    if facts.robust_margin is not None and facts.robust_margin <= 0:
        return "violated", "no policy keeps below the budget on all of F_0^B, as robust dynamic programming shows."
    return None


def _continuity(premises: Premises) -> Verdict:
    try:
        steepest = premises.steepest
    except UserError as error:
        return "not checkable", str(error)
    return "given", f"the kernel has L_k = {steepest:.3g}; that the prior mean is Lipschitz, too, is taken as given."


def _growth(kernel: Kernel) -> Verdict:
    """Whether gamma_N^3 = o(N), from the known rates (Vakili 2021)."""
    match kernel:
        case Scaled() | On():
            return _growth(kernel.kernel)
        case Matern():
            return _matern_growth(kernel)
        case Sum() if not expandable(kernel):
            return _worst([_growth(kernel.left), _growth(kernel.right)])
    if kernel.rank is not None:
        return "checked", f"the rank is {kernel.rank}, so gamma_N grows as ln N."
    if expandable(kernel):
        return "checked", f"{kernel.describe()}: gamma_N grows as a power of ln N."
    return "not checkable", f"the rate of {kernel.describe()} is not known."


def _matern_growth(kernel: Matern) -> Verdict:
    d, nu = len(kernel.lengthscales), kernel.nu
    rate = f"Matern: gamma_N grows as N^{d / (2 * nu + d):.2g} up to logarithms"
    if nu > d:
        return "checked", f"{rate}, and nu = {nu:g} > {d} inputs."
    return "violated", f"{rate}; gamma_N^3 = o(N) needs nu > {d}, the number of inputs, and nu = {nu:g}."


WORST: tuple[Standing, ...] = ("violated", "not checkable", "given", "checked")


def _worst(verdicts: list[Verdict]) -> Verdict:
    return min(verdicts, key=lambda verdict: WORST.index(verdict[0]))
