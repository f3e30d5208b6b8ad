"""Runs from their first word: of a task of this package, or of a user's system that must be met before it is learned.

What is known of a user's system is a file that the user gave, or it is found out first (`acquaintance.py`). Until then
the run folder has a preliminary config.json: what was asked. Episodes that are played to find out have the first lines
of the ledger, with the phase `prior` and numbers below 0.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

from ..errors import UserError
from ..ledger import make_first_record, make_interruption
from ..own.names import LOCAL, bind, bind_new
from ..own.system import is_own
from ..record import Record
from ..settings import PRESETS, Text
from ..specification import Specification, plain_name
from ..systems.episode import Interrupted, Played, ResetFault
from ..validation import Word
from ..versions import versions_now
from .acquaintance import Asked, asked_of, first_episodes, joined, proposal_of
from .config import check_digest, sealed
from .folder import RunFolder
from .train import Halted, Observer, Result, Unobserved, go_on, train, train_after

__all__ = ["begin", "default_folder", "resume"]


def default_folder(task: str, method: str, seed: int) -> Path:
    """Where a run is kept if nothing else is said."""
    return Path("runs") / f"{plain_name(task)}-{plain_name(method)}-s{seed}"


def begin(
    task: str,
    method: str,
    seed: int,
    preset: str,
    changes: Mapping[str, Any],
    out: Path | None = None,
    observer: Observer | None = None,
) -> Result:
    """Runs to the end; with `out`, in a new run folder that can be resumed however the run stops."""
    if not is_own(task) or any(changes.get(name) for name in ("prior", "run.prior")):
        return train(Specification.make(task, method, seed, preset, changes), out, observer)
    words = _Words(task, method, seed, preset, changes)
    asked = asked_of(task, changes)
    with RunFolder.create(out, words.config) if out else nullcontext() as folder:
        return _met(words, asked, folder, observer or Unobserved())


class _Words:
    """What was asked for, in the form of a preliminary config.json."""

    def __init__(self, task: str, method: str, seed: int, preset: str, changes: Mapping[str, Any]) -> None:
        Word(tuple(PRESETS)).read("preset", preset)
        self.task, self.method, self.seed, self.preset, self.changes = task, method, seed, preset, changes

    @property
    def config(self) -> dict[str, Any]:
        typed = {name: str(value) for name, value in self.changes.items() if isinstance(value, Text)}
        given = {name: value for name, value in self.changes.items() if not isinstance(value, Text)}
        return sealed(
            {
                "task": self.task,
                "method": self.method,
                "seed": self.seed,
                "preset": self.preset,
                "asked": {"typed": typed, "given": given},
                "versions": versions_now(),
            }
        )

    @classmethod
    def read(cls, config: Mapping[str, Any], path: Path) -> "_Words":
        """What such a file says."""
        check_digest(path, config)
        asked = config["asked"]
        changes = {**{name: Text(value) for name, value in asked["typed"].items()}, **asked["given"]}
        return cls(config["task"], config["method"], config["seed"], config["preset"], changes)


def _met(words: _Words, asked: Asked, folder: RunFolder | None, observer: Observer) -> Result:
    """First episodes if they are needed, the prior that follows, and the run."""
    first = _First(asked, folder, observer)
    if asked.needs_episodes:
        first.play(words.seed)
    proposal = proposal_of(asked, first.played, words.seed)
    for sentence in proposal.said:
        observer.note(sentence)
    known = {"prior": bind_new("prior", proposal.knowledge.as_written)}
    if first.played:
        known["data"] = bind_new("data", joined(first.played))
    spec = Specification.make(words.task, words.method, words.seed, words.preset, {**words.changes, **known})
    return train_after(first.records, spec, folder, observer)


class _First:
    """The first episodes of a run, played or kept in its folder."""

    def __init__(self, asked: Asked, folder: RunFolder | None, observer: Observer) -> None:
        self._asked, self._folder, self._observer = asked, folder, observer
        self.records: list[Record] = folder.records() if folder else []
        self.played: list[Played] = [folder.trajectory(r.line) for r in self.records] if folder else []

    def play(self, seed: int) -> None:
        """Plays what is left of them. Each is kept as it ends, also one that fails or is stopped."""
        if self._folder and (pending := self._folder.pending()):
            self._add(pending, 0.0)
        started = perf_counter()
        try:
            for played in first_episodes(self._asked, seed, len(self.played)):
                if self._folder:
                    self._folder.keep(played)
                self._add(played, perf_counter() - started)
                started = perf_counter()
        except Interrupted as stopped:
            self._interrupted(stopped.played)
            raise
        except ResetFault as fault:
            raise Halted(f"the system cannot begin a first episode: {fault}{self._again}.") from None
        self._check()

    def _add(self, played: Played, seconds: float) -> None:
        number = len(self.played) - self._asked.first_episodes
        record = make_first_record(self._asked.costs, number, played, seconds)
        self.records.append(self._folder.add_played(record) if self._folder else record)
        self.played.append(played)
        self._observer.note(_told(record, f"{len(self.played)} of {self._asked.first_episodes}"))

    def _interrupted(self, played: Played) -> None:
        if self._folder:
            number = len(self.played) - self._asked.first_episodes
            self._folder.add_interruption(make_interruption(self._asked.costs, number, played.episode), played)

    def _check(self) -> None:
        """Refuses to learn from what a failing system did, and from nothing."""
        last = self.played[-1].episode
        if last.ended == "fault" and len(self.played) < self._asked.first_episodes:
            raise Halted(f"a first episode was cut short: {last.reason}. Look after the system{self._again}.")
        if not any(len(each.episode.actions) for each in self.played):
            raise Halted("no first episode had a single step; look after the system, and begin anew.")
        for cost in self._asked.costs:
            _check_budget(cost.name, cost.budget, self.records)

    @property
    def _again(self) -> str:
        return f"; continue with 'sbsrl resume {self._folder.path}'" if self._folder else ""


def _check_budget(name: str, budget: float, records: Sequence[Record]) -> None:
    """Refuses a budget that every first episode exceeded: doing next to nothing costs more."""
    costs = [record.metrics.get(f"cost/{name}", record.cost) for record in records]
    if min(costs) > budget:
        raise Halted(
            f"every first episode cost more than the budget of {name}, {budget:g}: at least {min(costs):.4g}, though "
            "next to nothing was done. Raise the budget, or name a safe_action or a fallback that keeps it."
        )


def _told(record: Record, number: str) -> str:
    """A first episode, in a line."""
    verdict = "safe" if record.safe else f"VIOLATION by {record.violation:.3g}"
    early = "" if record.ended == "horizon" else f", {record.ended}"
    return (
        f"first episode {number}, near what is known to be safe: {record.steps} steps{early}, "
        f"cost {record.cost:.4g} of {record.budget:g}, {verdict}."
    )


def resume(path: str | Path, observer: Observer | None = None, insist: bool = False, **things: Any) -> Result:
    """Continues exactly where the run stopped: the outcome is the one it would have had.

    With `insist` a configuration that was edited is accepted. `things` are objects that the run began with and that
    have no name to be found by: `system=env`, `cost=function` (or several in their order), `simulator=function`.
    """
    observer = observer or Unobserved()
    with RunFolder.open(path) as folder:
        folder.lock()
        config = folder.config
        _bind_again(config, things)
        if "asked" not in config:
            return go_on(folder, observer, insist)
        words = _Words.read(config, folder.path / "config.json")
        folder.repair()
        return _met(words, asked_of(words.task, words.changes), folder, observer)


def _bind_again(config: Mapping[str, Any], things: Mapping[str, Any]) -> None:
    """Lets the local words of a configuration stand for these things, in the order of the words."""
    for what, thing in things.items():
        prefix = f"{LOCAL}{what}-"
        found = {word for word in _words_in(config) if word.startswith(prefix)}
        words = sorted(found, key=lambda word: int(word.removeprefix(prefix)))
        several = list(thing) if isinstance(thing, list) else [thing]
        if len(words) != len(several):
            raise UserError(
                f"{len(several)} objects were given as {what}, and the run began with {len(words)} that have no name; "
                "give as many."
            )
        for word, each in zip(words, several, strict=True):
            bind(word, each)


def _words_in(content: Any) -> list[str]:
    """All texts in a configuration; of NAME=SOURCE the source."""
    if isinstance(content, str):
        return [content.rpartition("=")[2]]
    parts = content.values() if isinstance(content, Mapping) else content if isinstance(content, list) else ()
    return [word for part in parts for word in _words_in(part)]
