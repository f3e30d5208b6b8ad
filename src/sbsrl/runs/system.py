"""The true system of a run: opened when the first episode is played, and closed when the run ends."""

from collections.abc import Callable
from types import TracebackType
from typing import Any

import gymnasium

from ..errors import UserError
from ..systems.deadline import within
from ..systems.faults import FAILURES, describe
from ..task import Task

__all__ = ["CLOSE_TIMEOUT", "LazySystem"]

CLOSE_TIMEOUT = 10.0
"""Seconds that a system may take to close: one that hangs must not keep its user from knowing."""


class LazySystem:
    """A context that opens the system when it is asked for, so that a run with nothing left to play touches nothing."""

    def __init__(self, task: Task, note: Callable[[str], None]) -> None:
        """`note` is told if the system cannot be closed; that is no reason to lose what happened before."""
        self._task, self._note = task, note
        self._env: gymnasium.Env[Any, Any] | None = None

    def open(self) -> gymnasium.Env[Any, Any]:
        """The system, the same at each call. One that cannot be opened is a UserError."""
        if self._env is None:
            try:
                env = self._task.open()
            except FAILURES as error:
                raise UserError(f"the system of {self._task.name} cannot be opened: {describe(error)}.") from error
            _check(self._task, env)
            self._env = env
        return self._env

    def __enter__(self) -> "LazySystem":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._env is not None:
            try:
                within(CLOSE_TIMEOUT, self._env.close)
            except FAILURES as error:
                self._note(f"closing the system raised {describe(error)}.")


def _check(task: Task, env: Any) -> None:
    """Refuses what is no environment, or one with other actions than the task says."""
    if not isinstance(env, gymnasium.Env):
        raise UserError(f"the system of {task.name} is a {type(env).__name__}; open() must give a gymnasium.Env.")
    shape = getattr(getattr(env, "action_space", None), "shape", None)
    if shape != (task.action_size,):
        raise UserError(
            f"the system of {task.name} has actions of shape {shape}, and the task has {task.action_size} numbers per "
            "action; make them agree."
        )
