"""Reward and costs of a step, from wherever a user's system has them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import UserError
from ..systems.faults import FAILURES, Fault, describe
from .names import find
from .settings import INFO, OwnSettings

__all__ = ["Answer", "SignalFunction", "Sources"]

SignalFunction = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
"""Of observation, action and next observation."""


class Answer(NamedTuple):
    """What a step returned, besides the observation."""

    reward: Any
    info: Mapping[str, Any]
    charged: Any = None
    """The cost that the six values of `safety_gymnasium` have between reward and endings."""


class Sources(NamedTuple):
    """Where reward and costs come from: functions, or what the system reports."""

    reward: SignalFunction | None
    """None: what the system reports."""
    costs: tuple[SignalFunction | str, ...]
    """A function, or a key of info."""

    @classmethod
    def of(cls, settings: OwnSettings) -> "Sources":
        """Finds what the settings name."""
        return cls(
            function(settings.reward, "reward") if settings.reward else None,
            tuple(_source(word) for _, word in settings.costs),
        )

    def functions(self) -> tuple[SignalFunction | None, ...]:
        """Reward and costs that are functions; None for those that the system reports."""
        return self.reward, *(source if callable(source) else None for source in self.costs)

    def earned(self, x: np.ndarray, a: np.ndarray, y: np.ndarray, answer: Answer) -> Any:
        """The reward of a step."""
        return answer.reward if self.reward is None else _number(self.reward, "reward", x, a, y)

    def charged(self, x: np.ndarray, a: np.ndarray, y: np.ndarray, answer: Answer) -> Any:
        """All costs of a step."""
        return np.array([self._one(source, x, a, y, answer) for source in self.costs], float)

    def _one(self, source: SignalFunction | str, x: np.ndarray, a: np.ndarray, y: np.ndarray, answer: Answer) -> float:
        if callable(source):
            return _number(source, "cost", x, a, y)
        if source == "cost" and answer.charged is not None:
            return float(answer.charged)
        if source not in answer.info:
            reported = ", ".join(sorted(map(str, answer.info))) or "nothing"
            raise Fault(
                f"the info of a step has no '{source}' (it has {reported}): say with cost=... where the cost is, or "
                "give a function of (observation, action, next observation)"
            )
        try:
            return float(np.asarray(answer.info[source], float).reshape(()))
        except (TypeError, ValueError):
            raise Fault(f"info['{source}'] is not a number: {answer.info[source]!r}") from None


def _source(word: str) -> SignalFunction | str:
    if word == INFO:
        return "cost"
    return word.removeprefix(f"{INFO}:") if word.startswith(f"{INFO}:") else function(word, "cost")


def function(word: str, what: str) -> Callable[..., Any]:
    """The function of that name."""
    found = find(word, what)
    if not callable(found):
        raise UserError(f"the {what} {word} is a {type(found).__name__}, not a function.")
    called: Callable[..., Any] = found
    return called


def _number(source: SignalFunction, what: str, x: np.ndarray, a: np.ndarray, y: np.ndarray) -> float:
    try:
        return float(np.asarray(source(x.copy(), a.copy(), y.copy()), float).reshape(()))
    except FAILURES as error:
        raise Fault(f"the {what} function raised {describe(error)}") from error
