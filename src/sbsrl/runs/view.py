"""A run as its folder tells it: enough for every table, picture and page. No task is built for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..record import Interruption, Record

__all__ = ["CostView", "Reference", "RunView"]


@dataclass(frozen=True)
class CostView:
    """One cost of the task."""

    name: str
    budget: float
    aggregation: str
    least: float | None
    """The smallest aggregated cost there can be; None where nothing bounds it."""

    @property
    def expected(self) -> bool:
        """Whether the budget bounds the expected cost, so that a single episode may cost more."""
        return self.aggregation == "sum"


@dataclass(frozen=True)
class Reference:
    """0 on the normalised scale is doing nothing, 1 is the same solver knowing the true dynamics."""

    idle: float
    oracle: float

    def normalised(self, reward: float) -> float:
        return (reward - self.idle) / (self.oracle - self.idle)


@dataclass(frozen=True)
class RunView:
    """What was asked, what happened, and what is guaranteed."""

    config: Mapping[str, Any]
    records: Sequence[Record]
    certificate: Mapping[str, Any] | None = None
    """None where none was written yet."""
    reference: Reference | None = None
    """None where it was not computed, or the system's equations are not known."""
    interruptions: Sequence[Interruption] = ()
    """Episodes that the user stopped. They were played on the true system, but are none of the run's."""

    @property
    def task(self) -> str:
        return str(self.config["task"]).rstrip(":")

    @property
    def method(self) -> str:
        return str(self.config["method"])

    @property
    def horizon(self) -> int:
        return int(self.config["system"]["horizon"])

    @property
    def costs(self) -> list[CostView]:
        return [CostView(**cost) for cost in self.config["system"]["costs"]]

    @property
    def cost(self) -> CostView:
        """The first cost: what a run with one cost is about."""
        return self.costs[0]

    def cost_of(self, record: Record, cost: CostView) -> float:
        """What an episode cost: the aggregated value of that cost."""
        return record.metrics.get(f"cost/{cost.name}", record.cost)

    def above_expectation_only(self, record: Record) -> bool:
        """Whether all costs above their budgets are such that a single episode may cost more."""
        return all(cost.expected for cost in self.costs if self.cost_of(record, cost) > cost.budget)

    def tightening(self, i: int) -> float:
        """By how much plans stay below the budget of cost i."""
        given = self.setting("method", "tightening")
        return float(given[i % len(given)])

    def setting(self, group: str, name: str) -> Any:
        """The value of a setting."""
        return self.config["settings"][group][name]

    @property
    def episodes(self) -> int:
        """How many were asked for, without the final policy."""
        return int(self.setting("run", "episodes"))

    @property
    def verdict(self) -> str:
        """The guarantee in a line."""
        if self.certificate is None:
            return "not known: there is no certificate.json" if self.records else "none yet: no episode is finished"
        if self.certificate["guarantee"] != "none":
            return str(self.certificate["statement"])
        return f"none: {self.certificate['reasons'][0]} (certificate.json)"
