"""What an experiment was expected to show, what it showed, and whether that is the same."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..runs.study import Arm
from .comparison import ENOUGH, Comparison

__all__ = [
    "Expectation",
    "earns_from",
    "ends_with",
    "expectations_table",
    "learns_before",
    "never_infeasible",
    "never_violates",
    "settles_before",
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
    records = comparison.records(arm)
    budget = records[0].budget
    largest = max(r.cost for r in records)
    runs = sum(any(not r.safe for r in run) for run in comparison.runs[arm])
    return (
        f"{_violating(comparison, arm)} of {len(records)} episodes, in {runs} of {len(comparison.seeds)} seeds; "
        f"largest cost {largest:.2f} of {budget:g}"
    )


def never_infeasible(comparison: Comparison, arm: Arm) -> Expectation:
    """Every plan that was followed keeps the tightened budget on every sample."""
    records = comparison.records(arm)
    infeasible, plans = sum(r.infeasible_plans for r in records), sum(r.steps for r in records)
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


def learns_before(comparison: Comparison, name: str, arm: Arm, others: Sequence[Arm]) -> Expectation:
    """Fewer episodes until the return is nine tenths of the oracle's for the first time, on average over seeds."""
    labels = " and ".join(other.label for other in others)
    expected = f"{name}: {arm.label} reaches {ENOUGH:g} in fewer episodes than {labels}"
    return _fewer_episodes(expected, comparison, Comparison.learned, arm, others)


def settles_before(comparison: Comparison, name: str, arm: Arm, others: Sequence[Arm]) -> Expectation:
    """Fewer episodes until it is that much for good."""
    expected = f"{name}: for good"
    return _fewer_episodes(expected, comparison, Comparison.settled, arm, others)


def _fewer_episodes(
    expected: str,
    comparison: Comparison,
    first: Callable[[Comparison, Arm], list[int | None]],
    arm: Arm,
    others: Sequence[Arm],
) -> Expectation:
    times, said = list[float](), list[str]()
    for each in (arm, *others):
        episodes = first(comparison, each)
        times.append(comparison.episodes_until(each, episodes).mean())
        never = f" ({episodes.count(None)} never)" if None in episodes else ""
        said.append(f"{each.label}: {times[-1]:.1f}{never}")
    return Expectation(expected, "; ".join(said), bool(times[0] < min(times[1:])))
