"""Offline data that recipes make are kept on disk: recording a simulation may take minutes, at each start of a run.

A file's name tells all that the data depend on: the task with its settings, the recipe, the code that plays it, the
versions of libraries, and the machine. If anything of that changes, the data are recorded again.
"""

import hashlib
import json
import os
import platform
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from time import perf_counter, time

import jax
import numpy as np

from .._configure import STARTED, cache_folder, writable
from ..atomic import held
from ..errors import UserError
from ..imports import closure, content_of, modules, source_of
from ..offline import OfflineData
from ..versions import versions_now

__all__ = ["MOST_KEPT", "kept", "recording_name"]

MOST_KEPT, MOST_BYTES = 16, 64 * 2**20
"""Files, the ones that were not used for longest go first; and bytes of each, beyond which none is kept."""
PLAYED_BY = ("sbsrl.behaviours", "sbsrl.offline", "sbsrl.systems.episode")
BEGAN = time() - (perf_counter() - STARTED)
"""When this process loaded its code."""


def kept(name: str | None, record: Callable[[], OfflineData]) -> OfflineData:
    """What `record` makes, or made before under that name. Without a name, or a place to keep it, it is made anew."""
    folder = cache_folder("recordings")
    if name is None or not writable(folder):
        return record()
    path = Path(folder) / f"{name}.npz"
    with ExitStack() as stack:
        with suppress(UserError):  # where files cannot be locked, several runs that begin together may all record
            stack.enter_context(held(path.parent, f".{name}.lock"))
        return _found(path) or _kept(record(), path)


def _found(path: Path) -> OfflineData | None:
    """What is kept there, if it can be read."""
    try:
        found = OfflineData.load(path)
    except (OSError, UserError):
        return None
    with suppress(OSError):
        os.utime(path)
    return found


def _kept(data: OfflineData, path: Path) -> OfflineData:
    """The data, which are there from now on, if there is room."""
    if sum(np.asarray(part).nbytes for part in data.transitions) > MOST_BYTES:
        return data
    with suppress(OSError, UserError):
        data.save(path)
        for old in sorted(path.parent.glob("*.npz"), key=lambda file: file.stat().st_mtime)[:-MOST_KEPT]:
            old.unlink(missing_ok=True)
            old.with_name(f".{old.stem}.lock").unlink(missing_ok=True)
    return data


def recording_name(module: str, behaviour: object, *choices: object) -> str | None:
    """Of what a task of this module records of a behaviour, with these choices.

    None where that depends on code that is not known: not of this package, or changed since this process loaded it.
    """
    if module not in modules():
        return None
    known = closure({module, *PLAYED_BY})
    if getattr(behaviour, "__module__", None) not in known or _newest(known) > BEGAN:
        return None
    place = (jax.default_backend(), platform.machine(), platform.node())
    depends = json.dumps([module, versions_now(), place, *map(repr, choices)])
    digest = hashlib.sha256(depends.encode() + _content(known))
    return f"{module.rpartition('.')[2]}-{digest.hexdigest()[:16]}"


def _newest(known: frozenset[str]) -> float:
    """When the code was last written."""
    return max(source_of(module).stat().st_mtime for module in known)


@cache
def _content(known: frozenset[str]) -> bytes:
    return content_of(source_of(module) for module in known)
