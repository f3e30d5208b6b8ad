"""config.json: all that determines a run, in a form that cannot be changed unnoticed."""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..costs import Cost
from ..errors import UserError
from ..methods import make_method
from ..own.names import file_of
from ..parts import PARTS
from ..settings import Settings, make_settings
from ..specification import Specification
from ..task import Task
from ..tasks import find_task
from ..versions import versions_now
from .things import words_in

__all__ = ["check_digest", "digest", "make_config", "read_config", "sealed", "what_changed"]

UNCHECKED = ("digest", "versions", "sources")
"""What may differ from when the run began."""


def make_config(spec: Specification, task: Task, first_episodes: int = 0) -> dict[str, Any]:
    """The whole resolved configuration, and what tables and pictures need to know of the task; sealed.

    `first_episodes` were played before there was a belief, and have the first lines of the ledger.
    """
    config: dict[str, Any] = {
        "task": spec.task,
        "method": spec.method,
        "seed": spec.seed,
        "preset": spec.preset,
        "settings": spec.settings.plain(),
        "system": {
            "horizon": task.horizon,
            "costs": [
                {"name": c.name, "budget": c.budget, "aggregation": c.aggregation, "least": _least(c, task.horizon)}
                for c in task.costs
            ],
        },
    }
    if first_episodes:
        config["first_episodes"] = first_episodes
    return sealed(config)


def _least(cost: Cost, horizon: int) -> float | None:
    """The smallest aggregated cost that there can be; None where nothing bounds it, since JSON has no infinity."""
    found = cost.least(horizon)
    return found if math.isfinite(found) else None


def sealed(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same as it will be read, where tuples are lists, with versions, digests of the user's code, and its own."""
    plain = json.loads(json.dumps(config))
    return {**plain, "versions": versions_now(), "sources": _sources(plain), "digest": digest(plain)}


def _sources(config: Mapping[str, Any]) -> dict[str, str]:
    """A digest of each file of the user's code that the configuration names something in, by the words for it."""
    files = {word.partition(":")[0]: file_of(word) for word in words_in(config)}
    return {place: hashlib.sha256(file.read_bytes()).hexdigest()[:12] for place, file in sorted(files.items()) if file}


def digest(config: Mapping[str, Any]) -> str:
    """A name for the configuration: equal for equal ones."""
    checked = {key: value for key, value in config.items() if key not in UNCHECKED}
    return hashlib.sha256(json.dumps(checked, sort_keys=True).encode()).hexdigest()


def check_digest(path: Path, config: Mapping[str, Any]) -> None:
    """Refuses a configuration that was edited."""
    if config.get("digest") != digest(config):
        raise UserError(
            f"{path} was edited, so the run could not go on as it began; restore it, start a new run, or insist with "
            "--insist."
        )


def read_config(path: Path, config: Mapping[str, Any], insist: bool = False) -> Specification:
    """The run that the configuration describes; refuses one that was edited, unless the user insists on it."""
    if not insist:
        check_digest(path, config)
    try:
        settings = _settings(config["task"], config["method"], config["settings"])
        _check_complete(config["settings"], settings)
        return Specification(config["task"], config["method"], config["seed"], config["preset"], settings)
    except (TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{path} does not fit this version of sbsrl ({error}).") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _check_complete(plain: Mapping[str, Mapping[str, Any]], settings: Settings) -> None:
    """Refuses a configuration that leaves something to a default: that may be another one in another version."""
    for group, values in settings.plain().items():
        if missing := sorted(values.keys() - plain.get(group, {}).keys()):
            raise UserError(f"there is no {group}.{missing[0]}; restore it.")


def _settings(task: str, method: str, plain: Mapping[str, Mapping[str, Any]]) -> Settings:
    changes: dict[str, Any] = {group: plain[group]["name"] for group in PARTS}
    for group, values in plain.items():
        changes |= {f"{group}.{name}": value for name, value in values.items() if (name, group) not in NAMES}
    return make_settings(make_method(method).settings, (), changes, find_task(task).settings)


NAMES = {("name", group) for group in PARTS}


def what_changed(config: Mapping[str, Any]) -> list[str]:
    """What is not as it was when the run began, in sentences; the configuration may say anything of that."""
    told = []
    if versions := _changes(config.get("versions"), versions_now()):
        told.append(f"versions changed since the run began ({versions}): results may differ in the last digits.")
    if "sources" in config and (sources := _changes(config["sources"], _sources(config))):
        told.append(
            f"your code changed since the run began ({sources}): from here on the run is not the one that it would "
            "have been."
        )
    return told


def _changes(saved: Any, now: Mapping[str, str]) -> str:
    then = saved if isinstance(saved, Mapping) else {}
    return ", ".join(f"{name} {then.get(name)} -> {now[name]}" for name in now if then.get(name) != now[name])
