"""The tasks, by name. A task is imported when it is used."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium

from ..data_sources import find, given_content
from ..errors import UserError, unknown
from ..offline import OfflineData, is_recipe
from ..own.entry import OwnEntry
from ..task import Task, TaskSettings
from ..validation import Numbers, Word
from .recordings import kept, recording_name
from .registry import TASKS, TaskEntry, find_task

__all__ = ["TASKS", "Given", "TaskEntry", "find_task", "given_files", "make_task", "open_system"]


class Given(NamedTuple):
    """The files that a run depends on, by their content, since it keeps copies of its own."""

    data: bytes | None
    """Offline data; None if there are none, or a recipe makes them."""
    prior: bytes | None
    """What is known of a user's system; None of a task of this package."""


def make_task(
    name: str,
    prior: str | None = None,
    budget: float | tuple[float, ...] | None = None,
    data: str | Path | None = None,
    settings: Any = None,
) -> Task:
    """The task of that name, with that prior knowledge and budget, or one budget per cost (by default its own).

    `data` takes the place of what comes with the prior: a file of `sbsrl collect`, or BEHAVIOUR:EPISODES:SEED where the
    task is simulated. `settings` are the task's own, if it has any. Of a user's system the prior is a file of
    `sbsrl prior`, and there is no budget but the given one.
    """
    entry = find_task(name)
    if isinstance(entry, OwnEntry):
        return entry.make(Word().read("prior", prior or ""), budget, settings, str(data or ""))
    budgets = Numbers().read("budget", entry.own("budget") if budget is None else budget)
    chosen = (name, entry.own("prior") if prior is None else Word().read("prior", prior), budgets, settings)
    task = _build(*chosen)
    if not data:
        return task
    found = _recorded(*chosen, str(data)) if is_recipe(str(data)) else find(task, str(data))
    return replace(task, prior=replace(task.prior, data=found.transitions))


def given_files(task: Task, prior: str, data: str, settings: Any) -> Given:
    """Those that were given for a task."""
    entry = find_task(task.name)
    if isinstance(entry, OwnEntry):
        return Given(entry.data_content(settings, prior, data) if data else None, entry.prior_content(prior))
    return Given(given_content(task, data) if data and not is_recipe(data) else None, None)


def open_system(task: str, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """Connects to the true system of the task of that name, as Gymnasium does for its own ids."""
    return make_task(task).connect(render_mode)


@lru_cache(maxsize=16)
def _recorded(name: str, prior: str, budgets: tuple[float, ...], settings: Any, data: str) -> OfflineData:
    """What a recipe makes: the same as before for the same arguments, since a simulation need not be played twice."""
    task = _build(name, prior, budgets, settings)
    behaviour = task.behaviours.get(data.split(":", maxsplit=1)[0])
    recording = recording_name(TASKS[name].module, behaviour, prior, budgets, settings, data)
    return kept(recording, lambda: find(task, data))


@lru_cache(maxsize=32)
def _build(name: str, prior: str, budgets: tuple[float, ...], settings: Any = None) -> Task:
    """The same object for the same task: programs that were compiled for it serve again."""
    entry = TASKS[name]
    if prior not in entry.priors():
        raise unknown(f"prior of {name}", prior, entry.priors())
    wanted = len(Numbers().read("budget", entry.own("budget")))
    if len(budgets) != wanted:
        raise UserError(f"{name} has {wanted} cost{'s' if wanted > 1 else ''}, and {len(budgets)} budgets were given.")
    chosen = () if entry.settings is TaskSettings else (settings or entry.settings(),)
    task: Task = entry.load().make(entry.priors()[prior], budgets, *chosen)
    return task
