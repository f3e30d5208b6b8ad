"""The tasks, by name."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import UserError, unknown
from ..offline import OfflineData
from ..task import Prior, Task
from . import cartpole as _cartpole
from . import ledge as _ledge
from . import pendulum as _pendulum

__all__ = ["TASKS", "TaskEntry", "find_task", "make_task"]


@dataclass(frozen=True)
class TaskEntry:
    """How a task is made, and which kinds of prior knowledge it comes with."""

    summary: str
    settings: dict[str, Any]
    """What differs from the general defaults; the prior, the budget and the tightening always do."""
    priors: dict[str, Prior]
    build: Callable[[Prior, float], Task]


TASKS = {
    "pendulum": TaskEntry(
        summary="swing up a pendulum, never turning faster than 6 rad/s (GP, appendix F)",
        settings={"prior": "simulator", "budget": 6.0, "tightening": 0.1, "exploration_threshold": 500.0},
        priors={"simulator": _pendulum.SIMULATOR, "careful": _pendulum.CAREFUL, "none": _pendulum.NOTHING},
        build=_pendulum.pendulum,
    ),
    "cartpole": TaskEntry(
        summary="swing up a pole on a cart that must stay within 1.5 m of the middle (GP, appendix F)",
        settings={
            "prior": "offline",
            "budget": 1.5,
            "tightening": 0.05,
            "exploration_threshold": 1200.0,
            "slack": 0.3,
        },
        priors={"offline": _cartpole.OFFLINE, "none": _cartpole.NOTHING},
        build=_cartpole.cartpole,
    ),
    "ledge": TaskEntry(
        summary="push a sled towards a ledge: small enough for the theory's own numbers (GP, certified)",
        settings=_ledge.SETTINGS,
        priors=_ledge.PRIORS,
        build=_ledge.ledge,
    ),
}


def find_task(name: str) -> TaskEntry:
    """The entry of that name."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def make_task(name: str, prior: str | None = None, budget: float | None = None, data: str | Path | None = None) -> Task:
    """The task of that name, with that prior knowledge and budget (by default its own).

    `data` is a file of `sbsrl collect` whose transitions take the place of those that come with the prior.
    """
    entry = find_task(name)
    task = _build(
        name,
        entry.settings["prior"] if prior is None else prior,
        entry.settings["budget"] if budget is None else budget,
    )
    if not data:
        return task
    return replace(task, prior=replace(task.prior, data=OfflineData.load(data).check(task).transitions))


@lru_cache(maxsize=32)
def _build(name: str, prior: str, budget: float) -> Task:
    """The same object for the same task: programs that were compiled for it serve again."""
    entry = find_task(name)
    if prior not in entry.priors:
        raise unknown(f"prior of {name}", prior, entry.priors)
    task = entry.build(entry.priors[prior], budget)
    if task.budget < task.least_cost:
        raise UserError(
            f"no policy can meet budget={task.budget:g}: the cost of {name} is never below {task.least_cost:g}; "
            f"the task's own budget is {entry.settings['budget']:g}."
        )
    return task
