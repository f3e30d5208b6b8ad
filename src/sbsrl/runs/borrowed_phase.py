"""The offline phase of another run, to begin with: the same belief and the same prior policy without learning anew."""

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..learner import Learner
from .folder import RunFolder
from .shared_phase import SharedPhase

__all__ = ["KEPT", "borrow"]

KEPT = "offline"
"""The folder in a run folder that has its offline phase."""
DECIDING = {"run": ("prior", "budget", "episodes"), "method": ("samples", "tightening")}
"""What an offline phase depends on besides the data and the settings of task, belief and solver; on the episodes by
the room for them."""


def borrow(
    config: Mapping[str, Any], data: bytes | None, folder: Path, fresh: Learner
) -> tuple[Learner, dict[str, float]]:
    """The learner after the offline phase of the run in this folder, and the numbers about it.

    Refuses the phase of another task, belief or solver, and one that began with other data; `data` is the content of
    those of this run, None if they are made by a recipe.
    """
    with RunFolder.open(folder) as other:
        theirs, kept = other.config, other.data.read_bytes() if other.data.exists() else None
    differences = chain(_differences(theirs, config), _other_data(theirs, config, kept, data))
    if difference := next(differences, None):
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


def _other_data(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], kept: bytes | None, data: bytes | None
) -> Iterator[str]:
    """Whether the data differ: by their content if they were given, by their recipe if not."""
    there, here = (config.get("settings", {}).get("run", {}).get("data") for config in (theirs, ours))
    if kept != data or (data is None and there != here):
        yield f"its data are {json.dumps(there)}, and here they are {json.dumps(here)}, which are not the same"


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
