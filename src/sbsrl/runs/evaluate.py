"""Playing a learned policy on the true system, without learning from it."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import jax

from ..choice import Chosen
from ..errors import UserError
from ..learner import Turn
from ..ledger import Judgement, make_interruption, make_record
from ..loop import concluded
from ..record import Record
from ..systems.episode import Guard, Interrupted, Played, ResetFault, run_episode
from ..transitions import nothing_played
from ..types import PRNGKey
from ..validation import Whole
from .folder import RunFolder
from .load import load
from .system import LazySystem
from .train import Halted, Result, certified

__all__ = ["evaluate", "evaluation_turn"]

EVALUATION = 2**31 - 5
"""Folded into the seed of a run this gives the randomness of evaluations: no episode has this number."""


def evaluate(
    path: str | Path,
    episodes: int = 10,
    on_episode: Callable[[Record], None] = lambda record: None,
    note: Callable[[str], None] = lambda text: None,
    **things: Any,
) -> list[Record]:
    """Plays so many episodes of the policy that the run has learned; each has its line of the ledger.

    Seeds follow from that of the run and the number of the line, so that no two episodes begin alike. `things` are
    objects that the run began with and that have no name, as for `resume`.
    """
    count = Whole(1, 100_000).read("episodes", episodes)
    result, found = load(path, **things), []
    with RunFolder.open(path) as folder, LazySystem(result.experiment.task, note) as system:
        folder.lock()
        folder.repair()
        if folder.pending() is not None:
            raise UserError(
                f"an episode of {folder.path} was played and is not learned from yet; continue it first with 'sbsrl "
                f"resume {folder.path}'."
            )
        evaluation = _Evaluation(result, concluded(result.experiment, result.learner), folder, system)
        for _ in range(count):
            record = evaluation.play()
            evaluation.certify()
            on_episode(record)
            found.append(record)
            if record.ended == "fault":
                raise Halted(f"the evaluation was cut short: {record.reason}. Look after the system.")
    return found


def evaluation_turn(key: PRNGKey, line: int, number: int) -> Turn:
    """An evaluated episode of the run with this key: its randomness depends on its line in the ledger."""
    reset, rollout = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, EVALUATION), line))
    return Turn(number, int(jax.random.bits(reset)) >> 1, rollout)


class _Evaluation:
    """Episodes of one policy, kept in the folder of its run."""

    def __init__(self, result: Result, chosen: Chosen, folder: RunFolder, system: LazySystem) -> None:
        self._experiment, self._learner, self._chosen = result.experiment, result.learner, chosen
        self._folder, self._system = folder, system

    def play(self) -> Record:
        """One more episode."""
        started, turn, task = perf_counter(), self._turn(), self._experiment.task
        played = self._played(turn)
        self._folder.keep(played)
        judgement = Judgement("evaluate", self._chosen.problem, self._chosen.solution, None, perf_counter() - started)
        return self._folder.add_played(make_record(task, turn.episode, played, judgement))

    def certify(self) -> None:
        """Writes the certificate anew: what happened counts, whoever asked for it."""
        records, stopped = self._folder.records(), self._folder.interruptions()
        self._folder.write_json("certificate.json", certified(self._experiment, records, self._learner, stopped))

    def _turn(self) -> Turn:
        records = self._folder.records()
        number = 1 + max((record.episode for record in records), default=-1)
        return evaluation_turn(self._learner.key, len(records), number)

    def _played(self, turn: Turn) -> Played:
        task = self._experiment.task
        guard = Guard.of(task, self._experiment.settings.run.step_timeout)
        try:
            return run_episode(self._system.open(), self._chosen.policy, turn.seed, turn.key, task.horizon, guard=guard)
        except ResetFault as fault:
            return Played(nothing_played(task.state_size, task.action_size, len(task.costs), str(fault)), {})
        except Interrupted as stopped:
            line = make_interruption(task.costs, turn.episode, stopped.played.episode)
            self._folder.add_interruption(line, stopped.played)
            raise
