"""What is promised of a run where a risk was chosen: for the certificate and the table."""

from collections.abc import Sequence
from typing import Any

from ..learner import Experiment
from ..parts import Deciding
from ..record import Record
from ..theory.innovations import tails
from ..theory.words import above, number

__all__ = ["promise", "promise_in_a_line"]

DOUBTFUL = 0.01
"""Data that are so improbable under the belief speak against it."""

ELSE = (
    "It is about draws from this belief only: where prior mean, kernel, scale or noise are wrong it says nothing, and "
    "no number of draws can show that they are right."
)


def promise(experiment: Experiment, records: Sequence[Record]) -> dict[str, Any] | None:
    """What fresh draws of the belief showed of every policy that was played; None where no risk was chosen."""
    method = experiment.settings.method
    if not method.risk:
        return None
    planned = [record for record in records if record.planned]
    covered = [record for record in planned if "risk/bound" in record.metrics]
    return {
        "promised": method.risk,
        "confidence": method.confidence,
        "statement": _statement(experiment, covered),
        "limits": ELSE,
        "calibration": _calibration(planned),
        "episodes": [{"episode": r.episode, **_numbers(r)} for r in covered],
        "not_covered": [r.episode for r in planned if "risk/bound" not in r.metrics],
    }


def _numbers(record: Record) -> dict[str, float]:
    names = ("bound", "violations", "draws", "attempts", "tightening")
    return {name: record.metrics[f"risk/{name}"] for name in names}


def _statement(experiment: Experiment, covered: Sequence[Record]) -> str:
    method, shown = experiment.settings.method, sum(r.metrics["risk/bound"] for r in covered)
    episodes = isinstance(experiment.settings.solver, Deciding)
    meant = "an episode violates" if episodes else "the policy of an episode has an expected cost beyond its budget"
    every = (
        f"if the truth is a draw from this belief, {meant} with probability at most {method.risk:g}: "
        f"estimated, Bayesian (functions drawn afresh for every policy, Clopper and Pearson, confidence "
        f"{method.confidence:g} for all episodes of the run together)"
    )
    if not covered:
        return f"{every}; no episode was played under this promise"
    together = f"the {len(covered)} episodes that were played under it" if len(covered) > 1 else "the episode played"
    return f"{every}; that any of {together} does has probability at most {above(min(shown, 1.0))} (union bound)"


def _calibration(planned: Sequence[Record]) -> str:
    """How the data so far compare with what the belief foretold, one after the other."""
    last = next((r for r in reversed(planned) if "misfit/squares" in r.metrics), None)
    if last is None:
        return "not known: this belief does not say how it compares with its data"
    count, squares = int(last.metrics["misfit/observations"]), last.metrics["misfit/squares"]
    found = tails(count, squares)
    ratio = f"{count} observations are {number((squares / count) ** 0.5)} times as far as foretold (root mean square)"
    if found.farther < DOUBTFUL:
        return (
            f"{ratio}; farther in {above(found.farther)} of draws: the belief is too sure of itself, do not rely on "
            "the promise"
        )
    if found.nearer < DOUBTFUL:
        return f"{ratio}; nearer in {above(found.nearer)} of draws: the belief is more careful than it need be"
    return f"{ratio}: nothing speaks against the belief"


def promise_in_a_line(made: dict[str, Any]) -> str:
    """For the table at the end of a run."""
    bounds = [each["bound"] for each in made["episodes"]]
    if not bounds:
        return "nothing was played under the promise"
    spread = above(max(bounds)) if len(bounds) == 1 else f"{number(min(bounds))} to {above(max(bounds))}"
    beyond = f"; nothing is promised of {len(made['not_covered'])} episodes" if made["not_covered"] else ""
    return (
        f"at most {made['promised']:g} per episode if the truth is a draw from the belief (shown: {spread}, "
        f"confidence {made['confidence']:g}){beyond}. The data: {made['calibration']}"
    )
