"""The tasks, by name. A task is imported when it is used."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium

from ..errors import UserError, unknown
from ..offline import OfflineData
from ..prior import Prior
from ..task import Task
from ..validation import Numbers

__all__ = ["TASKS", "TaskEntry", "find_task", "make_task", "open_system"]


@dataclass(frozen=True)
class TaskEntry:
    """A line about a task, and the module that makes it.

    The module has `PRIORS` (what may be known beforehand, by name), `PRESETS` (settings that differ from the general
    ones, by preset; the prior, the budget and the tightening always do) and `make(prior, budgets) -> Task`.
    """

    summary: str
    module: str

    def load(self) -> ModuleType:
        return import_module(self.module)

    def presets(self) -> Mapping[str, Mapping[str, Any]]:
        presets: Mapping[str, Mapping[str, Any]] = self.load().PRESETS
        return presets

    def own(self, setting: str) -> Any:
        """The task's own value of a setting."""
        return self.presets()["cpu"][setting]

    def priors(self) -> Mapping[str, Prior]:
        priors: Mapping[str, Prior] = self.load().PRIORS
        return priors


TASKS = {
    "pendulum": TaskEntry(
        "swing up a pendulum, never turning faster than 6 rad/s (GP, appendix F)", "sbsrl.tasks.pendulum"
    ),
    "cartpole": TaskEntry(
        "swing up a pole on a cart that must stay within 1.5 m of the middle (GP, appendix F)", "sbsrl.tasks.cartpole"
    ),
    "ledge": TaskEntry(
        "push a sled towards a ledge: small enough for the theory's own numbers (GP, certified)", "sbsrl.tasks.ledge"
    ),
}


def find_task(name: str) -> TaskEntry:
    """The entry of that name."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def make_task(
    name: str,
    prior: str | None = None,
    budget: float | tuple[float, ...] | None = None,
    data: str | Path | None = None,
) -> Task:
    """The task of that name, with that prior knowledge and budget, or one budget per cost (by default its own).

    `data` is a file of `sbsrl collect` whose transitions take the place of those that come with the prior.
    """
    entry = find_task(name)
    budgets = Numbers().read("budget", entry.own("budget") if budget is None else budget)
    task = _build(name, entry.own("prior") if prior is None else prior, budgets)
    if not data:
        return task
    return replace(task, prior=replace(task.prior, data=OfflineData.load(data).check(task).transitions))


def open_system(task: str, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """Connects to the true system of the task of that name, as Gymnasium does for its own ids. It has no pictures."""
    if render_mode is not None:
        raise UserError(f"the environment of {task} has no render_mode '{render_mode}'; leave it out.")
    return make_task(task).open()


@lru_cache(maxsize=32)
def _build(name: str, prior: str, budgets: tuple[float, ...]) -> Task:
    """The same object for the same task: programs that were compiled for it serve again."""
    entry = find_task(name)
    if prior not in entry.priors():
        raise unknown(f"prior of {name}", prior, entry.priors())
    wanted = len(Numbers().read("budget", entry.own("budget")))
    if len(budgets) != wanted:
        raise UserError(f"{name} has {wanted} cost{'s' if wanted > 1 else ''}, and {len(budgets)} budgets were given.")
    task: Task = entry.load().make(entry.priors()[prior], budgets)
    return task
