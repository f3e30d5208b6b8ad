"""One line of `episodes.jsonl`, and one of `interruptions.jsonl`: what happened in an episode."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from .transitions import Ending

__all__ = ["Interruption", "Phase", "Record"]

Phase = Literal["prior", "explore", "exploit", "evaluate", "final"]


class Record(NamedTuple):
    """An episode, in numbers. The first twelve keys and their meaning are fixed."""

    episode: int
    phase: Phase
    reward: float
    cost: float
    """Aggregated as the task says; of several costs, the one that exceeds its budget most, or comes nearest to it."""
    budget: float
    violation: float
    safe: bool
    """Whether every cost was within its budget."""
    feasible: bool
    """Whether every plan of the episode was feasible on every sample."""
    exploring: bool
    uncertainty: float
    """s_n summed over the episode: information gathered, in nats for a Gaussian process."""
    samples: int
    seconds: float
    line: int = -1
    """Where in the ledger it stands, from 0; -1 where that was not written down."""
    steps: int = -1
    """Control steps that were taken; -1 where that was not written down."""
    ended: Ending = "horizon"
    reason: str = ""
    """Why the episode was cut short, in words, if it was."""
    calibration_warning: str | None = None
    """What the data say against the assumptions: null, or that confidence sets have no common point."""
    departure: str = ""
    """What happened that the task says cannot, in words, if anything did."""
    metrics: Mapping[str, float] = {}
    """What solver and policy report, by name; and every single cost as `cost/NAME` if there are several."""

    @property
    def planned(self) -> bool:
        """Whether it is of the run itself, and neither from before there was a belief, nor an evaluation."""
        return self.episode >= 0 and self.phase != "evaluate"

    @property
    def infeasible_plans(self) -> int:
        """How many plans of the episode were not safe on all samples."""
        return int(self.metrics.get("infeasible_plans", 0))

    @property
    def worst_plan(self) -> float:
        """The most by which a plan that was followed exceeds the tightened budget on a sample."""
        return self.metrics.get("worst_plan", 0.0)

    @property
    def intervened(self) -> float | None:
        """The share of the steps in which another policy acted in place of the one under watch; None if none was."""
        return self.metrics.get("intervened")

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Record":
        """A line as it was written, also by the first version, which had no mapping of metrics."""
        known = {name: value for name, value in content.items() if name in cls._fields}
        others = {name: value for name, value in content.items() if name not in cls._fields}
        if "objection" in others:
            known["calibration_warning"] = others.pop("objection")
        record = cls(**{"metrics": others, **known})
        for name, kind in _KINDS.items():
            value = getattr(record, name)
            if not isinstance(value, kind):
                raise TypeError(f"its {name} is {value!r}")
        return record


_KINDS: dict[str, Any] = {
    **dict.fromkeys(("reward", "cost", "budget", "violation", "uncertainty", "seconds"), int | float),
    **dict.fromkeys(("episode", "samples", "line", "steps"), int),
    **dict.fromkeys(("safe", "feasible", "exploring"), bool),
    **dict.fromkeys(("phase", "ended", "reason", "departure"), str),
    "metrics": Mapping,
}
"""What the values of a line must be."""


class Interruption(NamedTuple):
    """What was played of an episode that the user stopped. When the run is resumed it is played anew."""

    episode: int
    steps: int
    reward: float
    cost: float
    """As in a `Record`, up to where it was stopped."""
    budget: float
    violation: float
    safe: bool
    trajectory: str = ""
    """The name of the file that has it."""
