"""What an experiment was expected to show, what it showed, and whether that is the same."""

from collections.abc import Iterable
from typing import NamedTuple

from ..runs.study import Arm
from ..tasks import make_task
from .comparison import ENOUGH, Comparison

__all__ = [
    "Expectation",
    "earns_from",
    "ends_with",
    "expectations_table",
    "learns_before",
    "never_infeasible",
    "never_violates",
    "violates",
]


class Expectation(NamedTuple):
    """Judged by the numbers, never by hand."""

    expected: str
    measured: str
    met: bool


def expectations_table(expectations: Iterable[Expectation]) -> str:
    """One line each, for a page."""
    rows = [f"| {e.expected} | {e.measured} | {'yes' if e.met else '**no**'} |" for e in expectations]
    return "\n".join(["| expected | measured | met |", "| --- | --- | --- |", *rows])


def never_violates(comparison: Comparison, arm: Arm) -> Expectation:
    """No episode of any seed, that of the final policy included."""
    expected = f"{arm.task}: {arm.label} never violates"
    return Expectation(expected, _violations(comparison, arm), _violating(comparison, arm) == 0)


def violates(comparison: Comparison, arm: Arm) -> Expectation:
    """What shows that the constraint matters: without care it is broken."""
    expected = f"{arm.task}: {arm.label} violates"
    return Expectation(expected, _violations(comparison, arm), _violating(comparison, arm) > 0)


def _violating(comparison: Comparison, arm: Arm) -> int:
    return sum(not r.safe for r in comparison.records(arm))


def _violations(comparison: Comparison, arm: Arm) -> str:
    records, budget = comparison.records(arm), make_task(arm.task).budget
    largest = max(r.cost for r in records)
    runs = sum(any(not r.safe for r in run) for run in comparison.runs[arm])
    return (
        f"{_violating(comparison, arm)} of {len(records)} episodes, in {runs} of {len(comparison.seeds)} seeds; "
        f"largest cost {largest:.2f} of {budget:g}"
    )


def never_infeasible(comparison: Comparison, arm: Arm) -> Expectation:
    """Every plan that was followed keeps the tightened budget on every sample."""
    records = comparison.records(arm)
    infeasible, plans = sum(r.infeasible_plans for r in records), make_task(arm.task).horizon * len(records)
    expected = f"{arm.task}: {arm.label} always finds a plan that is safe on every sample"
    return Expectation(expected, f"{infeasible} of {plans} plans infeasible", infeasible == 0)


def earns_from(comparison: Comparison, arm: Arm, episode: int, share: float) -> Expectation:
    """Every seed has this normalised return in every training episode from that one on."""
    later = comparison.returns(arm)[:, episode:]
    expected = f"{arm.task}: {arm.label} earns {share:g} or more from episode {episode} on"
    if not later.size:
        return Expectation(expected, "no episode that late", met=False)
    return Expectation(expected, f"at least {later.min():.3f}", bool(later.min() >= share))


def ends_with(comparison: Comparison, arm: Arm, share: float) -> Expectation:
    """The final policy of every seed has this normalised return."""
    least = comparison.final(arm).min()
    expected = f"{arm.task}: {arm.label}'s final policy earns {share:g} or more"
    return Expectation(expected, f"at least {least:.3f}", bool(least >= share))


def learns_before(comparison: Comparison, name: str, arm: Arm, others: Iterable[Arm]) -> Expectation:
    """Fewer episodes until the return is nine tenths of the oracle's, on average over seeds."""
    own = comparison.episodes_to_learn(arm).mean()
    times = {other.label: comparison.episodes_to_learn(other).mean() for other in others}
    expected = f"{name}: {arm.label} reaches {ENOUGH:g} in fewer episodes than {' and '.join(times)}"
    measured = f"{own:.1f} episodes; " + ", ".join(f"{label} {time:.1f}" for label, time in times.items())
    return Expectation(expected, measured, all(own < time for time in times.values()))
