"""Runs from their first word: of a task of this package, or of a user's system that must be met before it is learned.

What is known of a user's system is a file that the user gave, or it is found out first (`acquaintance.py`). Until then
the run folder has a preliminary config.json: what was asked. Episodes that are played to find out have the first lines
of the ledger, with the phase `prior` and numbers below 0.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ..errors import UserError
from ..ledger import make_first_record, make_interruption
from ..methods import make_method
from ..own.entry import OwnEntry
from ..own.knowledge import Knowledge, MethodNumbers, read_knowledge
from ..own.names import bind_new
from ..own.proposal import Proposal
from ..own.settings import OwnSettings
from ..own.system import is_own
from ..record import Record
from ..settings import PRESETS, Text, make_settings
from ..specification import Specification, plain_name
from ..systems.episode import Interrupted, Played, ResetFault
from ..transitions import nothing_played
from ..validation import Word
from .acquaintance import Asked, FirstEpisodes, asked_of, joined, opened_system, projected, proposal_of
from .config import check_digest, sealed, what_changed
from .folder import PRIOR, RunFolder
from .things import bind_again
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
    if not is_own(task):
        return train(Specification.make(task, method, seed, preset, changes), out, observer)
    words, asked, observer = (
        _Words(task, method, seed, preset, changes),
        asked_of(task, changes),
        observer or Unobserved(),
    )
    if prior := changes.get("prior", changes.get("run.prior")):
        check_shape(asked, read_knowledge(str(prior)))
        return train(Specification.make(task, method, seed, preset, changes), out, observer)
    words.check(asked)
    proposal = None if asked.needs_episodes else proposal_of(asked, [], seed)  # refused before there is a folder
    with RunFolder.create(out, words.config) if out else nullcontext() as folder:
        return _met(words, asked, proposal, folder, observer)


def check_shape(asked: Asked, knowledge: Knowledge) -> None:
    """Refuses a prior that was made, or edited, for other limits or another length than the system and the user say."""
    there, here = knowledge.shape, asked.shape
    for name, known, found in (
        ("numbers in an observation", there.state_size, here.state_size),
        ("steps in an episode", there.horizon, here.horizon),
        ("lower limits of actions", there.action_low, here.action_low),
        ("upper limits of actions", there.action_high, here.action_high),
    ):
        if np.shape(known) != np.shape(found) or not np.allclose(known, found, rtol=1e-5, atol=1e-9):
            raise UserError(
                f"the prior has {known} {name}, and here there are {found}; make it again with 'sbsrl prior', or say "
                "the same."
            )


class _Words:
    """What was asked for, in the form of a preliminary config.json."""

    def __init__(self, task: str, method: str, seed: int, preset: str, changes: Mapping[str, Any]) -> None:
        Word(tuple(PRESETS)).read("preset", preset)
        self.task, self.method, self.seed, self.preset, self.changes = task, method, seed, preset, changes

    def check(self, asked: Asked) -> None:
        """Refuses a method or a setting that does not exist, before anything is played."""
        belief, _ = asked.proposed_belief()
        made = OwnEntry.proposed(belief, MethodNumbers(1, (0.0,), 0.0))
        layers = ({**made, "prior": PRIOR}, PRESETS[self.preset])
        make_settings(make_method(self.method).settings, layers, self.changes, OwnSettings)

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
            }
        )

    @classmethod
    def read(cls, config: Mapping[str, Any], path: Path) -> "_Words":
        """What such a file says."""
        check_digest(path, config)
        asked = config["asked"]
        changes = {**{name: Text(value) for name, value in asked["typed"].items()}, **asked["given"]}
        return cls(config["task"], config["method"], config["seed"], config["preset"], changes)


def _met(
    words: _Words, asked: Asked, proposal: Proposal | None, folder: RunFolder | None, observer: Observer
) -> Result:
    """First episodes if nothing is proposed without them, the prior that follows, and the run."""
    first = _First(asked, folder, observer)
    if proposal is None:
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
        first = FirstEpisodes(self._asked, seed, self.played)
        with opened_system(self._asked.system) as env:
            while len(self.played) < self._asked.first_episodes:
                self._play_one(first, env)
        self._check()

    def _play_one(self, first: FirstEpisodes, env: Any) -> None:
        started, shape = perf_counter(), self._asked.shape
        try:
            played = first.play(env, shape.horizon)
        except ResetFault as fault:
            played = Played(nothing_played(shape.state_size, shape.action_size, len(self._asked.costs), str(fault)), {})
        except Interrupted as stopped:
            self._interrupted(stopped.played)
            raise
        if self._folder:
            self._folder.keep(played)
        self._add(played, perf_counter() - started)
        if played.episode.ended == "fault":
            raise Halted(
                f"a first episode was cut short: {played.episode.reason}. What was played is kept; look after the "
                f"system{self._again}."
            )

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
        """Refuses to learn from nothing, and a budget that next to nothing exceeds."""
        if not any(len(each.episode.actions) for each in self.played):
            raise Halted("no first episode had a single step; look after the system, and begin anew.")
        for i, cost in enumerate(self._asked.costs):
            columns = [each.episode.costs[:, i] for each in self.played if len(each.episode.actions)]
            least = min(projected(cost, column, self._asked.shape.horizon) for column in columns)
            if least > cost.budget:
                raise Halted(
                    f"every first episode cost more than the budget of {cost.name}, {cost.budget:g}, or would have: at "
                    f"least {least:.4g}, though next to nothing was done. Raise the budget, or name a safe_action or a "
                    "fallback that keeps it."
                )

    @property
    def _again(self) -> str:
        return f"; continue with 'sbsrl resume {self._folder.path}'" if self._folder else ""


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
        bind_again(config, things)
        if "asked" not in config:
            return go_on(folder, observer, insist)
        words = _Words.read(config, folder.path / "config.json")
        for sentence in what_changed(config):
            observer.note(sentence)
        folder.repair()
        asked = asked_of(words.task, words.changes)
        proposal = None if asked.needs_episodes else proposal_of(asked, [], words.seed)
        return _met(words, asked, proposal, folder, observer)
