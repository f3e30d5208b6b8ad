"""The state of a learner on disk, twice: where it stands, and where it stood before. Nothing in it can execute code.

A checkpoint is a file of plain arrays with the number of lines of `episodes.jsonl` that it accounts for, the identity
of its run, and a checksum over all of this. Whatever is killed, and whenever, one good checkpoint is left.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ..atomic import disk, write_atomically
from ..errors import UserError
from ..leaves import from_arrays, misfit, to_arrays, with_nan

__all__ = ["CURRENT", "PREVIOUS", "Loaded", "load_checkpoint", "save_checkpoint"]

CURRENT, PREVIOUS, ASIDE = "learner.safetensors", "previous.safetensors", ".previous.safetensors.tmp"


class Loaded(NamedTuple):
    """A learner that was saved."""

    learner: Any
    lines: int
    """How many lines of the ledger it accounts for."""
    note: str | None
    """In one sentence, what is wrong with the current checkpoint where the previous one had to be used."""


class _FaultError(Exception):
    """What is wrong with a checkpoint, as the end of a sentence that begins with its name."""


def save_checkpoint(folder: Path, learner: Any, lines: int, identity: str) -> None:
    """Makes the learner, any pytree, the current checkpoint, and what was current the previous one.

    `identity` is a digest of all that determines the run. A learner with NaN is refused, and both files stay as
    they are.
    """
    arrays = to_arrays(learner)
    if name := with_nan(arrays):
        raise UserError(
            f"the learner is not saved, since its {name} has NaN: look for readings or data that make no sense. What "
            f"is in {folder} is kept."
        )
    digest = _digest(arrays, lines, identity)
    content = save(arrays, metadata={"lines": str(lines), "identity": identity, "sha256": digest})
    current, aside = folder / CURRENT, folder / ASIDE
    with disk(folder):
        folder.mkdir(exist_ok=True)
        _keep_aside(current, aside)
    write_atomically(current, content)
    with disk(folder):
        if aside.exists():  # only now: until the new one is in place the old previous one may be the only good one
            os.replace(aside, folder / PREVIOUS)


def _keep_aside(current: Path, aside: Path) -> None:
    """A second name for the current checkpoint, or a copy where the file system has no second names."""
    aside.unlink(missing_ok=True)
    if not current.exists():
        return
    try:
        os.link(current, aside)
    except OSError:
        shutil.copyfile(current, aside)


def load_checkpoint(folder: Path, template: Any, identity: str) -> Loaded | None:
    """The learner that was saved, in the structure of the template; None if there is no checkpoint at all.

    A checkpoint of another run, a damaged one, one with NaN or one that does not fit the template is not used: the
    previous one is, or, if that is no better, a UserError says why.
    """
    faults = list[str]()
    with disk(folder):
        paths = [path for path in (folder / CURRENT, folder / PREVIOUS) if path.exists()]
    for path in paths:
        try:
            learner, lines = _read(path, template, identity)
        except _FaultError as fault:
            faults.append(f"{path} {fault}")
        else:
            return Loaded(learner, lines, _note(path, faults, lines))
    if not faults:
        return None
    raise UserError(
        f"{', and '.join(faults)}; restore it, or delete the folder {folder} to have the learner rebuilt from the "
        "trajectories."
    )


def _note(path: Path, faults: list[str], lines: int) -> str | None:
    if path.name == CURRENT:
        return None
    why = faults[0] if faults else f"{path.with_name(CURRENT)} is missing"
    return f"{why}: the previous checkpoint is used, which accounts for {lines} lines of the ledger."


def _read(path: Path, template: Any, identity: str) -> tuple[Any, int]:
    """The learner and its number of lines, of a file in which nothing is wrong."""
    arrays, metadata = _open(path)
    if not {"identity", "sha256"} <= metadata.keys() or not metadata.get("lines", "").isdecimal():
        raise _FaultError("has no checksum, so that this version of sbsrl did not make it")
    if metadata["sha256"] != _digest(arrays, metadata["lines"], metadata["identity"]):
        raise _FaultError("is damaged (its checksum is not that of its content)")
    if metadata["identity"] != identity:
        raise _FaultError("belongs to another run (its configuration, seed or data differ)")
    if difference := misfit(template, arrays):
        raise _FaultError(f"does not fit the learner of this configuration ({difference})")
    if name := with_nan(arrays):
        raise _FaultError(f"has NaN in {name}")
    return from_arrays(template, arrays), int(metadata["lines"])


def _open(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    if not path.is_file():
        raise _FaultError("is not a file")
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except OSError as error:
        raise _FaultError(f"cannot be read ({error.strerror or error})") from None
    except (SafetensorError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise _FaultError(f"is damaged ({' '.join(str(error).split())})") from None


def _digest(arrays: Mapping[str, np.ndarray], lines: int | str, identity: str) -> str:
    """SHA-256 over the lines, the identity, and each array's name, type, shape and bytes."""
    digest = hashlib.sha256(json.dumps([str(lines), identity]).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
