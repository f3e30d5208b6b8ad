"""The offline phase of another run, to begin with: the same belief and the same prior policy without learning anew."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..loop import Learner
from .folder import RunFolder
from .shared_phase import SharedPhase

__all__ = ["KEPT", "borrow"]

KEPT = "offline"
"""The folder in a run folder that has its offline phase."""
DECIDING = {"run": ("prior", "budget", "data", "episodes"), "method": ("samples", "tightening")}
"""What an offline phase depends on besides the settings of task, belief and solver; episodes by the room for them."""


def borrow(config: Mapping[str, Any], folder: Path, fresh: Learner) -> tuple[Learner, dict[str, float]]:
    """The learner after the offline phase of the run in this folder, and the numbers about it.

    Refuses the phase of another task, belief or solver, and one that began with other data.
    """
    with RunFolder.open(folder) as other:
        theirs = other.config
    if difference := next(_differences(theirs, config), None):
        raise UserError(
            f"the offline phase of {folder} is of another kind of run: {difference}; begin with one that agrees in "
            "task, belief, solver, data, budget, samples, tightening and episodes."
        )
    found = SharedPhase(folder / KEPT).load(fresh)
    if found is None:
        raise UserError(
            f"{folder} has no offline phase to begin with, or it cannot be read; give the folder of a run with "
            "networks, or leave out offline."
        )
    return found


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    """In what the two runs differ that an offline phase depends on, in words."""
    if theirs.get("task") != ours["task"]:
        yield f"its task is {theirs.get('task')}, and here it is {ours['task']}"
    groups = {**DECIDING, **{group: tuple(ours["settings"][group]) for group in ("belief", "solver", "task")}}
    for group in ("belief", "solver", "task", "run", "method"):
        there, here = (config.get("settings", {}).get(group, {}) for config in (theirs, ours))
        for name in sorted(groups[group], key=lambda name: name != "name"):  # which part it is comes first
            if there.get(name) != here[name]:
                said = f"its {group}.{name} is {json.dumps(there.get(name))}, and here it is {json.dumps(here[name])}"
                yield said.replace(".name", "") if name == "name" else said
