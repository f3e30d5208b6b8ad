"""What an experiment was expected to show, what it showed, and whether that is the same."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..runs.study import Arm
from .comparison import ENOUGH, Comparison
from .statistics import summarise

__all__ = [
    "Expectation",
    "earns_from",
    "earns_more",
    "ends_above",
    "ends_with",
    "expectations_table",
    "learns_before",
    "never_infeasible",
    "never_violates",
    "settles_before",
    "stops_exploring",
    "unmatched",
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


def ends_above(comparison: Comparison, arm: Arm, other: Arm) -> Expectation:
    """The bootstrap intervals of the mean return of the final policies have nothing in common."""
    expected = f"{arm.task}: {arm.label}'s final policy earns more than that of {other.label}"
    return _above(expected, (arm, comparison.final(arm)), (other, comparison.final(other)))


def earns_more(comparison: Comparison, arm: Arm, other: Arm) -> Expectation:
    """The same of all training episodes together."""
    expected = f"{arm.task}: {arm.label} earns more than {other.label} over all episodes"
    return _above(expected, (arm, comparison.cumulative(arm)), (other, comparison.cumulative(other)))


Earned = tuple[Arm, Float[np.ndarray, " seeds"]]


def _above(expected: str, one: Earned, other: Earned) -> Expectation:
    (high, said), (low, also_said) = ((summarise(list(each)), f"{arm.label}: ") for arm, each in (one, other))
    return Expectation(
        f"{expected}, outside the intervals", f"{said}{high}; {also_said}{low}", high.mean_low > low.mean_high
    )


def stops_exploring(comparison: Comparison, arm: Arm, most: int) -> Expectation:
    """Every seed is made to explore, in that many episodes at most and then never again."""
    counts = [sum(r.phase == "explore" for r in run) for run in comparison.runs[arm]]
    expected = f"{arm.task}: {arm.label} explores, and stops by itself after at most {most} episodes"
    return Expectation(expected, ", ".join(map(str, counts)), all(0 < count <= most for count in counts))


def unmatched(comparison: Comparison, arm: Arm, others: Sequence[Arm], margin: float) -> Expectation:
    """None of the others comes, on average over seeds, within the margin both over all episodes and in the end."""
    least = comparison.cumulative(arm).mean() - margin, comparison.final(arm).mean() - margin
    found = {other: (comparison.cumulative(other).mean(), comparison.final(other).mean()) for other in others}
    said = [f"{other.label}: {total:.3f}, {end:.3f}" for other, (total, end) in found.items()]
    expected = (
        f"{arm.task}: none of {', '.join(other.label for other in others)} comes within {margin:g} of {arm.label} both "
        f"over all episodes ({least[0] + margin:.3f}) and in the end ({least[1] + margin:.3f})"
    )
    matched = any(total >= least[0] and end >= least[1] for total, end in found.values())
    return Expectation(expected, "; ".join(said), not matched)


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
