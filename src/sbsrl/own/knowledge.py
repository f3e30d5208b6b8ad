"""What is known of a user's system before the first episode, as a file that a person can read and edit.

    [system]    what it looks like, where episodes begin, which signals are known functions
    [belief]    the belief, and for a Gaussian process its mean, scale, kernel, length scales and noise
    [method]    number of samples, tightening, exploration threshold
    [found]     what the data said of these numbers; not read

The format is TOML. Comments say what each number does.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import wrap
from typing import Any

from ..atomic import write_atomically
from ..errors import UserError, unknown
from ..kernels import Kernel, Matern, SquaredExponential
from ..validation import Number, Numbers, Whole, Word, Words
from .description import Description

__all__ = ["FAMILIES", "GPNumbers", "Knowledge", "MethodNumbers", "read_knowledge"]

FAMILIES: Mapping[str, Any] = {
    "squared-exponential": SquaredExponential,
    "matern-5/2": lambda lengthscales: Matern(lengthscales, nu=2.5),
}
"""Kernels that are proposed, by name."""
MEANS = ("stay", "simulator")
BELIEFS = ("gp", "ensemble")
SIGNALS = ("known", "learned")
WITHOUT_EFFECT = 1e8
"""The length scale of inputs on which nothing depends."""


@dataclass(frozen=True)
class GPNumbers:
    """A Gaussian process in numbers, outputs in the order of the states, then of the learned signals."""

    mean: str
    """stay: the state is expected to stay as it is; simulator: what the simulator says."""
    scale: tuple[float, ...]
    kernel: str
    length_scales: tuple[tuple[float, ...], ...]
    """Of (observation, action): one row for all outputs, or one for each."""
    noise: tuple[float, ...]
    """In units of the scale: one for all outputs, or one for each."""
    signal_means: tuple[float, ...] = ()
    """What each learned signal is expected to be."""

    def kernels(self, states: int, signals: int) -> tuple[Kernel, ...]:
        """Kernels of (observation, learned signals, action), in which the signals of the last step count nothing."""
        family, idle = FAMILIES[self.kernel], (WITHOUT_EFFECT,) * signals
        return tuple(family((*row[:states], *idle, *row[states:])) for row in self.length_scales)


@dataclass(frozen=True)
class MethodNumbers:
    """How carefully the problem is posed."""

    samples: int
    tightening: tuple[float, ...]
    exploration_threshold: float


@dataclass(frozen=True)
class Knowledge:
    """All of it."""

    system: str
    shape: Description
    starts: tuple[tuple[float, ...], ...]
    """Observations with which episodes began."""
    reward: str
    costs: tuple[str, ...]
    """Whether each signal is a known function, or learned."""
    belief: str
    method: MethodNumbers
    gp: GPNumbers | None = None
    source: str = ""
    """What it was made of, in words."""
    found: Mapping[str, Any] = field(default_factory=dict)

    @property
    def learned(self) -> tuple[str, ...]:
        """The signals that are learned with the states: reward first."""
        each = (("reward", self.reward), *((f"cost {i}", how) for i, how in enumerate(self.costs)))
        return tuple(name for name, how in each if how == "learned")

    @property
    def content(self) -> bytes:
        """As a file that `read_knowledge` reads."""
        return "\n".join(_lines(self)).encode() + b"\n"

    @property
    def as_written(self) -> "Knowledge":
        """What a reader of that file knows, whose numbers have fewer digits."""
        return replace(_parsed(self.content.decode(), "made"), source=self.source, found=self.found)

    def write(self, path: Path) -> None:
        """To that file."""
        write_atomically(path, self.content)


COMMENTS = {
    "horizon": "control steps of an episode",
    "starts": "observations with which episodes begin, as far as that is known",
    "reward": "known: the function that you gave; learned: from what the system reports",
    "costs": "the same for each cost",
    "kind": "gp: a Gaussian process, for small systems; ensemble: networks, for large ones and much data",
    "mean": "what is expected before any data: stay (as it is), or simulator",
    "scale": "how far a step leads from that expectation, in units of each output. Larger: more careful",
    "kernel": f"one of {', '.join(FAMILIES)}; the latter is rougher",
    "length_scales": "over which distance of each observation and action the effect changes. Smaller: more careful",
    "signal_means": "what a learned reward, then learned costs, are expected to be where nothing is known",
    "noise": "what repeats differently each time, in units of the scale",
    "samples": "plausible systems on each of which a plan must be safe. More: more careful, and slower",
    "tightening": "how far below the budget plans must stay, for each cost",
    "exploration_threshold": "information in nats that an episode must promise, or exploring is over",
}


def _lines(knowledge: Knowledge) -> Iterator[str]:
    shape, gp, method = knowledge.shape, knowledge.gp, knowledge.method
    yield f"# What is known of {knowledge.system} before the first episode."
    yield from (f"# {line}" for line in wrap(knowledge.source, 110))
    yield "# All numbers may be changed; 'sbsrl prior' says what each of them does to the first episode."
    yield from _section("system", {
        "name": knowledge.system,
        "states": shape.state_names,
        "actions": shape.action_names,
        "action_low": shape.action_low,
        "action_high": shape.action_high,
        "horizon": shape.horizon,
        "starts": knowledge.starts,
        "reward": knowledge.reward,
        "costs": knowledge.costs,
    })  # fmt: skip
    yield from _section("belief", {"kind": knowledge.belief} | ({} if gp is None else vars(gp)))
    yield from _section("method", vars(method))
    if knowledge.found:
        yield from _section("found", knowledge.found)


def _section(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"[{name}]")
    for key, value in values.items():
        if name != "found" and key in COMMENTS:
            yield f"# {COMMENTS[key]}"
        yield f"{key} = {_toml(value)}"


def _toml(value: Any) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = f"{value:.6g}"
        return text if any(letter in text for letter in ".einf") else f"{text}.0"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f'"{key}" = {_toml(each)}' for key, each in value.items()) + " }"
    return "[" + ", ".join(_toml(each) for each in value) + "]"


def read_knowledge(path: str | Path) -> Knowledge:
    """What a file says; refuses one that says too little, or what makes no sense."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"the prior {path} cannot be read: {error.strerror}; make one with 'sbsrl prior'.") from None
    except UnicodeDecodeError as error:
        raise UserError(f"the prior {path} is no text: {error}; make it again with 'sbsrl prior'.") from None
    return _parsed(text, str(path))


def _parsed(text: str, name: str) -> Knowledge:
    try:
        return _read(_Part(tomllib.loads(text), ""))
    except tomllib.TOMLDecodeError as error:
        raise UserError(
            f"the prior {name} is no TOML: {error}; mend it, or make it again with 'sbsrl prior'."
        ) from None
    except UserError as error:
        raise UserError(f"the prior {name}: {error}") from None


class _Part:
    """A table of the file, read key by key."""

    def __init__(self, content: Mapping[str, Any], name: str) -> None:
        self._content, self._name = content, name

    def table(self, key: str) -> "_Part":
        found = self._content.get(key)
        if not isinstance(found, dict):
            raise UserError(f"there is no section [{key}]; make it again with 'sbsrl prior'.")
        return _Part(found, f"{key}.")

    def get(self, key: str, kind: Any) -> Any:
        if key not in self._content:
            raise UserError(f"there is no {self._name}{key}; restore it, or make it again with 'sbsrl prior'.")
        return kind.read(f"{self._name}{key}", self._content[key])

    def one_of(self, key: str, choices: tuple[str, ...]) -> str:
        found: str = self.get(key, Word())
        if found not in choices:
            raise unknown(f"{self._name}{key}", found, choices)
        return found

    def rows(self, key: str, lengths: set[int], size: int) -> tuple[tuple[float, ...], ...]:
        """A table of numbers with that many rows, of that size each."""
        given = self._content.get(key)
        rows = given if isinstance(given, list) and given and all(isinstance(row, list) for row in given) else None
        if rows is None or any(len(row) != size for row in rows) or (lengths and len(rows) not in lengths):
            wanted = f"{' or '.join(map(str, sorted(lengths)))} rows" if lengths else "rows"
            raise UserError(f"{self._name}{key} must be {wanted} of {size} numbers each.")
        return tuple(Numbers().read(f"{self._name}{key}", row) for row in rows)


POSITIVE = Numbers(Number(0.0))


def _read(content: _Part) -> Knowledge:
    system, belief, method = (content.table(name) for name in ("system", "belief", "method"))
    low, high = system.get("action_low", Numbers()), system.get("action_high", Numbers())
    steps, actions = system.get("horizon", Whole(1, 1_000_000)), system.get("actions", Words())
    if not len(low) == len(high) == len(actions):
        raise UserError("system.actions, action_low and action_high must have one entry per action each.")
    if any(least >= most for least, most in zip(low, high, strict=True)):
        raise UserError(f"system.action_low must lie below action_high, and {list(low)} does not.")
    shape = Description(system.get("states", Words()), low, high, steps, actions)
    knowledge = Knowledge(
        system=system.get("name", Word(empty=False)),
        shape=shape,
        starts=system.rows("starts", set(), shape.state_size),
        reward=system.one_of("reward", SIGNALS),
        costs=system.get("costs", Words(repeated=True)),
        belief=belief.one_of("kind", BELIEFS),
        method=MethodNumbers(
            samples=method.get("samples", Whole(1, 10_000)),
            tightening=method.get("tightening", POSITIVE),
            exploration_threshold=method.get("exploration_threshold", Number(0.0)),
        ),
    )
    for how in knowledge.costs:
        if how not in SIGNALS:
            raise unknown("system.costs", how, SIGNALS)
    if knowledge.belief != "gp":
        return knowledge
    return _with_gp(knowledge, belief)


def _with_gp(knowledge: Knowledge, belief: _Part) -> Knowledge:
    shape, outputs = knowledge.shape, knowledge.shape.state_size + len(knowledge.learned)
    scale, noise = belief.get("scale", POSITIVE), belief.get("noise", POSITIVE)
    if len(scale) != outputs or len(noise) not in {1, outputs}:
        raise UserError(
            f"belief.scale must have {outputs} numbers (states, then learned signals), and belief.noise one or as many."
        )
    numbers = GPNumbers(
        mean=belief.one_of("mean", MEANS),
        scale=scale,
        kernel=belief.one_of("kernel", tuple(FAMILIES)),
        length_scales=belief.rows("length_scales", {1, outputs}, shape.state_size + shape.action_size),
        noise=noise,
        signal_means=belief.get("signal_means", Numbers(empty=True)),
    )
    if len(numbers.signal_means) != len(knowledge.learned):
        raise UserError(f"belief.signal_means must have {len(knowledge.learned)} numbers, one per learned signal.")
    for name, values in (
        ("scale", scale),
        ("noise", noise),
        *(("length_scales", row) for row in numbers.length_scales),
    ):
        if min(values) <= 0:
            raise UserError(f"belief.{name} must be positive, and {min(values):g} is not.")
    return replace(knowledge, gp=numbers)
