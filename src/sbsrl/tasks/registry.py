"""The tasks by name, and where they are made. A task is imported when it is used."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from ..errors import unknown
from ..own.entry import OwnEntry
from ..own.system import is_own
from ..prior import Prior
from ..task import TaskSettings
from ..validation import Word

__all__ = ["TASKS", "TaskEntry", "find_task"]


@dataclass(frozen=True)
class TaskEntry:
    """A line about a task, and the module that makes it.

    The module has `PRIORS` (what may be known beforehand, by name), `PRESETS` (settings that differ from the general
    ones, by preset; the prior, the budget and the tightening always do) and `make(prior, budgets) -> Task`. If
    something may be chosen about the task, it also has `SETTINGS`, a class of settings, and `make` takes one as well.
    """

    summary: str
    module: str

    def load(self) -> ModuleType:
        return import_module(self.module)

    def presets(self, changes: Mapping[str, Any] | None = None) -> Mapping[str, Mapping[str, Any]]:
        """What the task sets, by preset, whatever is changed."""
        presets: Mapping[str, Mapping[str, Any]] = self.load().PRESETS
        return presets

    def own(self, setting: str) -> Any:
        """The task's own value of a setting."""
        return self.presets()["cpu"][setting]

    @property
    def settings(self) -> Any:
        """The class of what may be chosen about the task."""
        return getattr(self.load(), "SETTINGS", TaskSettings)

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
    "canal": TaskEntry(
        "take a boat to the quay, rowing, or with an engine that must be tried in the basin first (GP)",
        "sbsrl.tasks.canal",
    ),
    "rwrl-cartpole": TaskEntry(
        "swing up a pole on a cart that should stay near the middle, on MuJoCo (ensemble, appendix G)",
        "sbsrl.tasks.rwrl_cartpole",
    ),
    "rwrl-humanoid": TaskEntry(
        "walk on two legs within the limits of the joints, on MuJoCo (ensemble, appendix G)",
        "sbsrl.tasks.rwrl_humanoid",
    ),
    "rwrl-quadruped": TaskEntry(
        "run on four legs away from the limits of the joints, on MuJoCo (ensemble, appendix G)",
        "sbsrl.tasks.rwrl_quadruped",
    ),
    "go-to-goal": TaskEntry(
        "drive a point robot to goals past hazards and vases, on MuJoCo (ensemble, appendix G)",
        "sbsrl.tasks.go_to_goal",
    ),
    "race-car": TaskEntry(
        "drive a small race car around obstacles to a goal (ensemble, appendix G)", "sbsrl.tasks.race_car"
    ),
}


def find_task(name: str) -> TaskEntry | OwnEntry:
    """The entry of that name: a task of this package, or a user's system, such as gymnasium:ID or module:name."""
    if is_own(Word().read("task", name)):
        return OwnEntry(name)
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]
