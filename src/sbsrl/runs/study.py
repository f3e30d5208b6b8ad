"""Many runs for one comparison: its arms, several seeds of each, side by side, and none of them twice.

Every run has a folder of its own below the study's home. A study that was interrupted goes on where it stopped, and two
studies that share runs share them on disk too. A folder's name tells the settings and the code of its run: a run is
made again when a module that it uses has changed, and only then.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ..atomic import disk
from ..data_sources import given_content
from ..errors import UserError
from ..imports import closure, content_of, modules, source_of
from ..methods import make_method
from ..offline import is_recipe
from ..parts import find_part
from ..record import Record
from ..settings import PRESETS
from ..specification import Specification
from ..tasks import TASKS
from ..validation import kinds
from ..versions import versions_now
from ..workers import worker_pool
from .begin import resume
from .folder import RunFolder
from .shared_phase import SharedPhase
from .train import train

__all__ = ["STUDIES", "Arm", "Runs", "folder_of", "run_study"]

STUDIES = Path("runs") / "study"
"""Where the runs of studies are kept."""


class Arm(NamedTuple):
    """What is compared: a method on a task, with settings of its own."""

    label: str
    task: str
    method: str
    changes: tuple[tuple[str, Any], ...] = ()

    def specification(self, seed: int, preset: str) -> Specification:
        """One run. A preset of few episodes shortens it; a setting that counts them is at most their number."""
        changes = dict(self.changes)
        if few := PRESETS.get(preset, {}).get("run.episodes"):
            changes["episodes"] = min(changes.get("episodes", few), few)
        episodes = Specification.make(self.task, self.method, seed, preset, {}).settings.run.episodes
        for name in changes.keys() & _counts_episodes(self.method):
            changes[name] = min(changes[name], changes.get("episodes", episodes))
        return Specification.make(self.task, self.method, seed, preset, changes)


def _counts_episodes(method: str) -> set[str]:
    fields = make_method(method).settings.__dataclass_fields__
    return {name for name in kinds(make_method(method).settings) if fields[name].metadata.get("counts_episodes")}


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
    folders = {run_name(spec): (spec, home / run_name(spec)) for each in specs.values() for spec in each}
    for spec, _ in folders.values():
        spec.experiment()  # refuses what cannot work before anything is run
    with disk(home):
        home.mkdir(parents=True, exist_ok=True)
    with RunFolder(home) as place:
        place.lock()
        missing = [(spec, folder) for spec, folder in folders.values() if not _complete(folder)]
        done = len(folders) - len(missing)
        with worker_pool(workers) as pool:
            for finished in as_completed([pool.submit(_finish, spec, folder) for spec, folder in missing]):
                finished.result()
                done += 1
                progress(done / len(folders))
    return {arm: [RunFolder.open(folders[run_name(s)][1]).records() for s in each] for arm, each in specs.items()}


def folder_of(arm: Arm, seed: int, preset: str, home: Path) -> Path:
    """Where a run of a study is kept."""
    return home / run_name(arm.specification(seed, preset))


def _finish(spec: Specification, folder: Path) -> None:
    """Runs to the end, from wherever it stands."""
    if RunFolder(folder).holds_run:
        resume(folder)
    else:
        train(spec, folder, shared=shared_phase(spec, folder.parent))


def shared_phase(spec: Specification, home: Path) -> SharedPhase | None:
    """What runs of a study share whose offline phase depends on equal settings and code; None: nothing.

    Of the method's settings these are the samples and the tightening, whatever the method.
    """
    if spec.settings.run.offline_seed < 0:
        return None
    plain = spec.settings.plain()
    plain["method"] = {name: plain["method"][name] for name in ("samples", "tightening")}
    return SharedPhase(home / "offline" / f"{spec.task}-{_digest(spec, plain)}")


def _complete(folder: Path) -> bool:
    if not RunFolder(folder).holds_run:
        return False
    try:
        records = RunFolder.open(folder).records()
    except UserError:  # a line that was being written when the run was killed: resuming repairs it
        return False
    return bool(records) and records[-1].phase == "final" and records[-1].ended != "fault"


def run_name(spec: Specification) -> str:
    """Runs with equal settings, equal offline data and equal code have equal names."""
    return f"{spec.task}-{spec.method}-{settings_digest(spec)}-s{spec.seed}"


def settings_digest(spec: Specification) -> str:
    """Of settings, offline data and code."""
    return _digest(spec, spec.settings.plain())


def _digest(spec: Specification, plain: Mapping[str, Any]) -> str:
    """The same with these settings."""
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    if spec.settings.run.data and not is_recipe(spec.settings.run.data):
        digest.update(given_content(spec.experiment().task, spec.settings.run.data))
    digest.update(code_digest(spec.task, spec.settings.belief.name, spec.settings.solver.name).encode())
    return digest.hexdigest()[:10]


@cache
def code_digest(task: str, belief: str, solver: str) -> str:
    """A name for the code and data that runs of this kind depend on, libraries included.

    Of the registries only the chosen entries count: what else may be chosen makes no difference to a run.
    """
    entries = [
        TASKS[task].module,
        *(find_part(group, n)[1:] for group, n in (("belief", belief), ("solver", solver))),
    ]
    digest = hashlib.sha256(json.dumps([versions_now(), entries], sort_keys=True).encode())
    digest.update(content_of(_files(task, belief, solver)))
    return digest.hexdigest()


REGISTRIES = {"sbsrl.parts", "sbsrl.tasks.registry"}


def _files(task: str, belief: str, solver: str) -> set[Path]:
    """Of the package, the loop, the boundary, the judge, the task with its data, the parts, and all they import."""
    parts = {find_part("belief", belief).module, find_part("solver", solver).module, TASKS[task].module}
    roots = {
        "sbsrl",
        "sbsrl.loop",
        "sbsrl.specification",
        "sbsrl.systems.episode",
        "sbsrl.runs.judge",
    } | parts & modules()
    own = {source_of(module) for module in closure(roots) - REGISTRIES}
    others = {Path(str(import_module(module).__file__)) for module in parts - modules()}
    return own | others | set((source_of("sbsrl.tasks").parent / "data").glob(f"{task}*"))
