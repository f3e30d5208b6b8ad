"""Offline data that recipes make are kept on disk: recording a simulation may take minutes, at each start of a run.

A file's name tells all that the data depend on: the task with its settings, the recipe, the code that plays it, and the
versions of the libraries that code relies on. If anything of that changes, the data are recorded again.
"""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .._configure import cache_folder, writable
from ..atomic import held
from ..errors import UserError
from ..imports import closure, modules, source_of
from ..offline import OfflineData

__all__ = ["MOST_KEPT", "kept", "recording_name"]

MOST_KEPT = 32
"""Files; the ones that were not used for longest go first."""
LIBRARIES = ("jax", "jaxlib", "numpy", "gymnasium", "mujoco", "dm_control")
PLAYED_BY = ("sbsrl.behaviours", "sbsrl.offline", "sbsrl.systems.episode")


def kept(name: str | None, record: Callable[[], OfflineData]) -> OfflineData:
    """What `record` makes, or made before under that name. Without a name, or a place to keep it, it is made anew."""
    folder = cache_folder("recordings")
    if name is None or not writable(folder):
        return record()
    path = Path(folder) / f"{name}.npz"
    with held(path.parent, f".{name}.lock"):  # of several runs that begin together one records
        return _found(path) or _kept(record(), path)


def _found(path: Path) -> OfflineData | None:
    """What is kept there, if it can be read."""
    try:
        found = OfflineData.load(path)
        os.utime(path)
    except (OSError, UserError):
        return None
    return found


def _kept(data: OfflineData, path: Path) -> OfflineData:
    """The data, which are there from now on, if there is room."""
    with suppress(OSError, UserError):
        data.save(path)
        for old in sorted(path.parent.glob("*.npz"), key=lambda file: file.stat().st_mtime)[:-MOST_KEPT]:
            old.unlink(missing_ok=True)
    return data


def recording_name(module: str, *choices: object) -> str | None:
    """Of data that a task of this module makes with these choices; None where the code is not this package's own."""
    if module not in modules():
        return None
    digest = hashlib.sha256(json.dumps([module, *map(repr, choices)]).encode() + _code(module))
    return f"{module.rpartition('.')[2]}-{digest.hexdigest()[:16]}"


@cache
def _code(module: str) -> bytes:
    """The code that plays a task of this module, and the versions of libraries."""
    digest = hashlib.sha256(json.dumps([(name, _version(name)) for name in LIBRARIES]).encode())
    for file in sorted(source_of(each) for each in closure({module, *PLAYED_BY})):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.digest()


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""
