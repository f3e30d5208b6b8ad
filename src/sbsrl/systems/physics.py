"""MuJoCo and dm-control, an extra of this package: loaded by the tasks that need them, or explained in one line.

They are loaded without a library for drawing. Whoever draws chooses one (`graphics`); whoever trains needs none, and
looking for one takes time.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..errors import UserError

__all__ = ["load_mujoco", "load_suite"]

INSTALL = "pip install 'sbsrl[mujoco]'"
OLDEST, TOO_NEW, WANTED = (3, 17), (4,), "mujoco>=3.17,<4"
"""Versions of MuJoCo with which dm-control loads its models."""
MEND = f"pip uninstall -y mujoco mujoco-core mujoco-studio && pip install '{WANTED}'"
"""Parts of version 4 that an installation of version 3 would leave behind go first."""


def load_mujoco(task: str) -> Any:
    """The module `mujoco`; a UserError that names the task if it is missing, or another version than it must be."""
    _check_version(task)
    try:
        with _without_drawing():
            import mujoco  # noqa: PLC0415  (an extra: only who uses it needs it)
    except ImportError as error:
        raise _missing(task, error) from None
    return mujoco


def load_suite(task: str) -> Any:
    """The module `dm_control.suite`, under the same conditions."""
    load_mujoco(task)
    try:
        with _without_drawing():
            from dm_control import suite  # noqa: PLC0415  (an extra: only who uses it needs it)
    except ImportError as error:
        raise _missing(task, error) from None
    return suite


def _check_version(task: str) -> None:
    try:
        found = version("mujoco")
    except PackageNotFoundError as error:
        raise _missing(task, error) from None
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if not OLDEST <= numbers < TOO_NEW:
        raise UserError(f"the task {task} needs {WANTED}, and version {found} is installed; mend it with {MEND}")


def _missing(task: str, error: Exception) -> UserError:
    return UserError(f"the task {task} needs MuJoCo and dm-control ({error}); install them with {INSTALL}.")


@contextmanager
def _without_drawing() -> Iterator[None]:
    """While the libraries are loaded, they are told to look for no display, unless the user names a backend."""
    given = os.environ.get("MUJOCO_GL")
    os.environ["MUJOCO_GL"] = given or "disabled"  # an empty one is none
    try:
        yield
    finally:
        if given is None:
            del os.environ["MUJOCO_GL"]
        else:
            os.environ["MUJOCO_GL"] = given
