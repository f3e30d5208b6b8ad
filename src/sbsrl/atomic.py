"""Files that are either written whole or not at all, and disk errors in one clear line."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import UserError

__all__ = ["disk", "held", "write_atomically"]


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turns the failure of a disk into a message that the user can act on."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"cannot use {path} ({reason}); make room there, or choose another place.") from error


@contextmanager
def held(folder: Path, name: str = ".lock") -> Iterator[None]:
    """While one process is inside, others that hold the same file of that folder wait. Makes the folder."""
    with disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / name).open("w")
    with lock:
        with disk(folder):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _flush_folder(path: Path) -> None:
    """Makes a new name in the folder survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces the file in one step that survives a crash at any moment."""
    with disk(path):
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _flush_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
