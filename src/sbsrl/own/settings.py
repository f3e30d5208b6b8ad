"""What a user says of a system of their own, in words and numbers that config.json can hold."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..costs import AGGREGATIONS, Cost
from ..errors import UserError, unknown
from ..validation import Number, Numbers, Whole, Word, Words, declared, validate
from .names import is_local

__all__ = ["INFO", "ROUNDING", "OwnSettings"]

ROUNDING = 1e-6
"""By this share limits may be exceeded: spaces are often declared in single precision."""
INFO = "info"
"""The source of costs that the system reports itself."""

FUNCTION = "module:function of (observation, action, next observation)"


@dataclass(frozen=True)
class OwnSettings:
    """A system of your own: where its costs and its reward are, how long an episode is, what may be known of it."""

    cost: tuple[str, ...] = declared(
        Words(),
        (INFO,),
        f"where the cost of a step is: info (that is info['cost']), info:KEY, or {FUNCTION}; NAME=... gives it a name; "
        "several with commas between them",
    )
    aggregation: tuple[str, ...] = declared(
        Words(repeated=True),
        ("sum",),
        "how an episode's cost is formed: sum, or statewise, which bounds every step; one for all costs, or one each",
    )
    steps: int = declared(Whole(0, 1_000_000), 0, "control steps of an episode; 0 takes the system's own limit")
    first_episodes: int = declared(
        Whole(1, 1000), 8, "cautious episodes with which a run begins where nothing else is known"
    )
    reward: str = declared(Word(), "", f"{FUNCTION}, in place of the reward that the system reports")
    simulator: str = declared(
        Word(), "", "module:function of (observation, action) that predicts the next observation, not quite rightly"
    )
    fallback: str = declared(Word(), "", "module:function of an observation: a controller that keeps the system safe")
    safe_action: tuple[float, ...] = declared(
        Numbers(empty=True), (), "what is sent when an episode is cut short, and what cautious episodes stay near"
    )
    state_names: tuple[str, ...] = declared(Words(empty=True), (), "of the observation's numbers")
    action_names: tuple[str, ...] = declared(Words(empty=True), (), "of the action's numbers")
    action_low: tuple[float, ...] = declared(Numbers(empty=True), (), "limits of the action, where the system has none")
    action_high: tuple[float, ...] = declared(Numbers(empty=True), (), "the same above")
    region_low: tuple[float, ...] = declared(
        Numbers(Number(finite=False), empty=True), (), "an observation below one of these ends the episode at once"
    )
    region_high: tuple[float, ...] = declared(
        Numbers(Number(finite=False), empty=True), (), "the same above; inf where nothing is limited"
    )
    start: tuple[float, ...] = declared(
        Numbers(empty=True), (), "the first observation of an episode, where no data say it"
    )

    def __post_init__(self) -> None:
        validate(self, "task.")
        for how in self.aggregation:
            if how not in AGGREGATIONS:
                raise unknown("aggregation", how, AGGREGATIONS)
        if len(self.aggregation) not in {1, len(self.cost)}:
            raise UserError(
                f"aggregation has {len(self.aggregation)} words for {len(self.cost)} costs; give one for all, or one "
                "for each."
            )
        if (names := [name for name, _ in self.costs]) != list(dict.fromkeys(names)):
            raise UserError(f"two costs have the same name among {', '.join(names)}; give each its own: NAME=SOURCE.")

    @property
    def costs(self) -> list[tuple[str, str]]:
        """The name and the source of each cost."""
        return [_named(word, i, len(self.cost)) for i, word in enumerate(self.cost)]

    def priced(self, budgets: Sequence[float]) -> tuple[Cost, ...]:
        """The costs with a budget each."""
        if len(budgets) != len(self.cost):
            raise UserError(
                f"{len(budgets)} budgets were given for {len(self.cost)} costs "
                f"({', '.join(name for name, _ in self.costs)}); give one for each."
            )
        how = self.aggregation * len(self.cost) if len(self.aggregation) == 1 else self.aggregation
        return tuple(
            Cost(name, budget, aggregation, (-math.inf, math.inf))  # type: ignore[arg-type]
            for (name, _), budget, aggregation in zip(self.costs, budgets, how, strict=True)
        )

    def check(self, low: Sequence[float], high: Sequence[float], states: int) -> None:
        """Refuses a safe action, a region or a start that do not fit the system."""
        if self.safe_action:
            fits = len(self.safe_action) == len(low) and all(
                least - ROUNDING * (1 + abs(least)) <= a <= most + ROUNDING * (1 + abs(most))
                for least, a, most in zip(low, self.safe_action, high, strict=True)
            )
            if not fits:
                limits = ", ".join(f"{least:g} to {most:g}" for least, most in zip(low, high, strict=True))
                raise UserError(
                    f"the safe action {list(self.safe_action)} is none of the system's, which are {limits}."
                )
        if self.start and len(self.start) != states:
            raise UserError(f"start has {len(self.start)} numbers, and an observation has {states}.")
        self.region(states)

    def region(self, size: int) -> tuple[tuple[float, float], ...] | None:
        """The limits of each of the numbers of an observation; None where there are none."""
        if not self.region_low and not self.region_high:
            return None
        least, most = self.region_low or (-math.inf,) * size, self.region_high or (math.inf,) * size
        if len(least) != size or len(most) != size:
            raise UserError(
                f"the region has {len(least)} lower and {len(most)} upper limits, and an observation has {size} "
                "numbers; give one for each, inf where nothing is limited."
            )
        limits = tuple(zip(least, most, strict=True))
        for low, high in limits:
            if not low < high:
                raise UserError(f"the region lies between {low:g} and {high:g}: swap the limits.")
        return limits


def _named(word: str, i: int, count: int) -> tuple[str, str]:
    name, equals, source = word.partition("=")
    if equals:
        return name.strip(), source.strip()
    key = word.removeprefix(f"{INFO}:").rpartition(":")[2]
    plain = "cost" if count == 1 else f"cost {i}"
    return plain if key == INFO or is_local(word) else key, word
