"""Many runs for one comparison: its arms, several seeds of each, side by side, and none of them twice.

Every run has a folder of its own below the study's home. A study that was interrupted goes on where it stopped, and two
studies that share runs share them on disk too. The folders belong to the code that made them: other code, other home.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..atomic import disk
from ..errors import UserError
from ..loop import Record
from ..settings import PRESETS
from ..workers import worker_pool
from .folder import RunFolder
from .train import Specification, resume, train, versions_now

__all__ = ["Arm", "Runs", "run_study", "study_home"]


class Arm(NamedTuple):
    """What is compared: a method on a task, with settings of its own."""

    label: str
    task: str
    method: str
    changes: tuple[tuple[str, Any], ...] = ()

    def specification(self, seed: int, preset: str) -> Specification:
        """One run. A preset with few episodes shortens ActSafe's phase of exploration."""
        changes = dict(self.changes)
        if "actsafe_episodes" in changes and "episodes" in PRESETS.get(preset, {}):
            changes["actsafe_episodes"] = min(changes["actsafe_episodes"], PRESETS[preset]["episodes"])
        return Specification.make(self.task, self.method, seed, preset, changes)


Runs = Mapping[Arm, Sequence[list[Record]]]
"""The episodes of every seed of every arm."""


def run_study(
    arms: Iterable[Arm],
    seeds: Sequence[int],
    preset: str,
    home: Path,
    workers: int,
    progress: Callable[[float], None] = lambda share: None,
) -> Runs:
    """Runs what has not been run yet, one core each, and returns everything. One study at a time has the home."""
    specs = {arm: [arm.specification(seed, preset) for seed in seeds] for arm in arms}
    folders = {spec: home / _name(spec) for each in specs.values() for spec in each}
    for spec in folders:
        spec.experiment()  # refuses what cannot work before anything is run
    with disk(home):
        home.mkdir(parents=True, exist_ok=True)
    with RunFolder(home) as place:
        place.lock()
        missing = [spec for spec, folder in folders.items() if not _complete(folder)]
        done = len(folders) - len(missing)
        with worker_pool(workers) as pool:
            for finished in as_completed([pool.submit(_finish, spec, folders[spec]) for spec in missing]):
                finished.result()
                done += 1
                progress(done / len(folders))
    return {arm: [RunFolder.open(folders[spec]).records() for spec in each] for arm, each in specs.items()}


def _finish(spec: Specification, folder: Path) -> None:
    """Runs to the end, from wherever it stands."""
    if RunFolder(folder).holds_run:
        resume(folder)
    else:
        train(spec, folder)


def _complete(folder: Path) -> bool:
    if not RunFolder(folder).holds_run:
        return False
    try:
        records = RunFolder.open(folder).records()
    except UserError:  # a line that was being written when the run was killed: resuming repairs it
        return False
    return bool(records) and records[-1].phase == "final"


def _name(spec: Specification) -> str:
    """Runs with equal settings, and equal offline data, have equal names."""
    digest = hashlib.sha256(json.dumps(asdict(spec.settings), sort_keys=True).encode())
    if spec.settings.data:
        digest.update(Path(spec.settings.data).read_bytes())
    return f"{spec.task}-{spec.method}-{digest.hexdigest()[:8]}-s{spec.seed}"


NOT_IN_RUNS = ("report", "laboratory", "cli.py", "api.py", "workers.py", "study.py", "certificate.py")
"""Folders and files of the package that no run's episodes depend on."""


@cache
def _code() -> str:
    """A name for the code that runs depend on, libraries included."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256(json.dumps(versions_now(), sort_keys=True).encode())
    for file in sorted(package.rglob("*")):
        name = file.relative_to(package)
        if file.suffix in {".py", ".npz"} and not {name.parts[0], name.name} & set(NOT_IN_RUNS):
            digest.update(str(name).encode() + file.read_bytes())
    return digest.hexdigest()[:8]


def study_home(root: Path = Path("runs")) -> Path:
    """Where the runs of this version of the code are kept."""
    return root / f"study-{_code()}"
