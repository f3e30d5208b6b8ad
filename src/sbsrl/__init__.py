"""Learn to control an unknown system without breaking it: Sampling-Based Safe Reinforcement Learning.

Importing the package configures JAX and loads nothing else. Its names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from ._configure import configure
from ._lazy import loader

if TYPE_CHECKING:
    from .api import learn
    from .errors import UserError
    from .methods import METHODS
    from .offline import OfflineData, collect
    from .policy import Controller
    from .runs import Halted, Result, RunFolder, evaluate, export, load, resume
    from .tasks import TASKS, make_task

__all__ = [
    "METHODS",
    "TASKS",
    "Controller",
    "Halted",
    "OfflineData",
    "Result",
    "RunFolder",
    "UserError",
    "collect",
    "evaluate",
    "export",
    "learn",
    "load",
    "make_task",
    "resume",
]

_MODULES = {
    "METHODS": "methods",
    "TASKS": "tasks",
    "Controller": "policy",
    "Halted": "runs",
    "OfflineData": "offline",
    "Result": "runs",
    "RunFolder": "runs",
    "UserError": "errors",
    "collect": "offline",
    "evaluate": "runs",
    "export": "runs",
    "learn": "api",
    "load": "runs",
    "make_task": "tasks",
    "resume": "runs",
}


__getattr__ = loader(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


configure()
