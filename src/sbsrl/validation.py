"""What values must be: one mechanism for settings, tasks, priors and configurations.

A field of a dataclass declares its `Kind`; `validate` reads every declared field, refuses what does not fit in one
sentence with the remedy, and stores the value in its plain form: a numpy scalar becomes a number of Python.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .errors import UserError, unknown

__all__ = [
    "Function",
    "Instance",
    "Kind",
    "Number",
    "Numbers",
    "Place",
    "Switch",
    "Whole",
    "Word",
    "Words",
    "declared",
    "kinds",
    "validate",
]


@runtime_checkable
class Kind(Protocol):
    """What a value must be."""

    @property
    def wanted(self) -> str:
        """In words, after 'wants'."""
        ...

    def read(self, name: str, value: Any) -> Any:
        """The value in its plain form; raises a UserError that names it if it does not fit."""
        ...

    def parse(self, name: str, text: str) -> Any:
        """The value that a text on the command line stands for."""
        ...


def declared(kind: Kind, default: Any = MISSING, text: str = "", **marks: Any) -> Any:
    """A field of a dataclass whose values are of this kind; `text` is its help on the command line."""
    return field(default=default, metadata={"kind": kind, "help": text, **marks})


def kinds(cls: Any) -> Mapping[str, Kind]:
    """The kind of every declared field."""
    return {item.name: item.metadata["kind"] for item in fields(cls) if "kind" in item.metadata}


def validate(instance: Any, prefix: str = "") -> None:
    """Reads every declared field of a frozen dataclass; for use in `__post_init__`."""
    for name, kind in kinds(instance).items():
        object.__setattr__(instance, name, kind.read(f"{prefix}{name}", getattr(instance, name)))


def _plain(value: Any) -> Any:
    """A numpy or JAX scalar as a number of Python; anything else as it is."""
    return value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value


def _refuse(name: str, kind: Kind, value: Any) -> UserError:
    return UserError(f"{name} wants {kind.wanted} and got {_in_a_line(value)}.")


def _in_a_line(value: Any, most: int = 100) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= most else f"{text[:most]}..."


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        limits = f"at least {_short(least)}" if math.isinf(most) else f"between {_short(least)} and {_short(most)}"
        raise UserError(f"{name}={_short(value)} is out of range; it must be {limits}.")


def _short(value: float) -> str:
    """A whole number with all its digits, any other with six."""
    return str(value) if isinstance(value, int) else f"{value:g}"


@dataclass(frozen=True)
class Number:
    """A number within limits; finite unless said otherwise, never NaN."""

    least: float = -math.inf
    most: float = math.inf
    finite: bool = True
    wanted: str = "a number"

    def read(self, name: str, value: Any) -> float:
        value = _plain(value)
        if type(value) not in {int, float}:
            raise _refuse(name, self, value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
        if math.isnan(number) or (self.finite and math.isinf(number)):
            raise UserError(f"{name}={number} is not a finite number.")
        _within(name, number, self.least, self.most)
        return number

    def parse(self, name: str, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise _refuse(name, self, text) from None


@dataclass(frozen=True)
class Whole:
    """A whole number within limits."""

    least: int
    most: float = math.inf
    wanted: str = "a whole number"

    def read(self, name: str, value: Any) -> int:
        value = _plain(value)
        if type(value) is not int:
            raise _refuse(name, self, value)
        _within(name, value, self.least, self.most)
        return value

    def parse(self, name: str, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise _refuse(name, self, text) from None


@dataclass(frozen=True)
class Switch:
    """True or false."""

    wanted: str = "true or false"

    def read(self, name: str, value: Any) -> bool:
        value = _plain(value)
        if type(value) is not bool:
            raise _refuse(name, self, value)
        return value

    def parse(self, name: str, text: str) -> bool:
        answers = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() not in answers:
            raise _refuse(name, self, text)
        return answers[text.lower()]


@dataclass(frozen=True)
class Word:
    """A word: one of the choices, if there are any."""

    choices: Collection[str] = ()
    empty: bool = True
    """Whether nothing at all is a word."""
    wanted: str = "a word"

    def read(self, name: str, value: Any) -> str:
        if not isinstance(value, str) or not (value or self.empty):
            raise _refuse(name, self, value)
        if self.choices and value not in self.choices:
            raise unknown(name, value, self.choices)
        return str(value)

    def parse(self, name: str, text: str) -> str:
        return text


@dataclass(frozen=True)
class Numbers:
    """One or more numbers, as a tuple; a single one may be given as it is."""

    each: Number = Number()
    empty: bool = False
    """Whether none at all will do."""
    wanted: str = "a number, or several with commas between them"

    def read(self, name: str, value: Any) -> tuple[float, ...]:
        value = value.tolist() if hasattr(value, "tolist") else value
        numbers = value if isinstance(value, tuple | list) else (value,)
        if not (numbers or self.empty) or any(isinstance(number, tuple | list) for number in numbers):
            raise _refuse(name, self, value)
        return tuple(self.each.read(name, number) for number in numbers)

    def parse(self, name: str, text: str) -> tuple[float, ...]:
        if not text and self.empty:
            return ()
        try:
            return tuple(float(part) for part in text.split(","))
        except ValueError:
            raise _refuse(name, self, text) from None


@dataclass(frozen=True)
class Words:
    """One or more words, as a tuple."""

    empty: bool = False
    """Whether none at all will do."""
    repeated: bool = False
    """Whether a word may come twice."""
    wanted: str = "one or more words"

    def read(self, name: str, value: Any) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, tuple | list) or not (value or self.empty):
            raise _refuse(name, self, value)
        words = tuple(Word(empty=False).read(name, word) for word in value)
        if len(set(words)) < len(words) and not self.repeated:
            raise UserError(f"{name} has a word twice: {', '.join(words)}; use each once.")
        return words

    def parse(self, name: str, text: str) -> tuple[str, ...]:
        return () if not text and self.empty else tuple(part.strip() for part in text.split(","))


@dataclass(frozen=True)
class Place:
    """A path of the file system."""

    wanted: str = "a path"

    def read(self, name: str, value: Any) -> Path:
        if not isinstance(value, str | Path) or "\0" in str(value):
            raise _refuse(name, self, value)
        return Path(value)

    def parse(self, name: str, text: str) -> Path:
        return self.read(name, text)


@dataclass(frozen=True)
class Instance:
    """An object of a class, or, as a tuple, several; None where that is allowed."""

    of: type
    optional: bool = False
    several: bool = False

    @property
    def wanted(self) -> str:
        return f"one or more {self.of.__name__}s" if self.several else f"a {self.of.__name__}"

    def read(self, name: str, value: Any) -> Any:
        if self.several:
            if not isinstance(value, tuple | list) or not value or not all(isinstance(v, self.of) for v in value):
                raise _refuse(name, self, value)
            return tuple(value)
        if not (isinstance(value, self.of) or (self.optional and value is None)):
            raise _refuse(name, self, value)
        return value

    def parse(self, name: str, text: str) -> Any:
        raise _refuse(name, self, text)


@dataclass(frozen=True)
class Function:
    """Something that can be called."""

    optional: bool = False
    wanted: str = "a function"

    def read(self, name: str, value: Any) -> Callable[..., Any] | None:
        if not (callable(value) or (self.optional and value is None)):
            raise _refuse(name, self, value)
        return value

    def parse(self, name: str, text: str) -> Any:
        raise _refuse(name, self, text)
