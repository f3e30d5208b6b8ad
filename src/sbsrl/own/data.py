"""Recorded data of a user's system: an archive of arrays, a table with named columns, or a dataset of Minari.

An archive (.npz) has `states`, `actions`, `next_states`, and perhaps `rewards`, `costs` (a column per cost) and
`terminated`, a row per control step. A table (.csv) has a row per control step and columns named as the observation
and the action are, perhaps `reward`, a column per cost, `episode` and `time`. Without columns `next_NAME` the
observation after a step is the one in the next row of the same episode; rows between which time is missing are not
joined.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ..archive import read_arrays
from ..atomic import disk
from ..errors import UserError
from ..minari_data import is_minari, read_episodes
from ..transitions import Transitions
from .description import Description
from .signals import Sources

__all__ = ["Recorded", "checked", "read_recorded", "with_signals"]

NEXT = "next_"
GAP = 1.5
"""Rows farther apart than this many of the usual time between rows have a gap between them."""


class Recorded(NamedTuple):
    """What was recorded of each control step; rewards and costs only where they were."""

    source: str
    states: Float[np.ndarray, "N dx"]
    actions: Float[np.ndarray, "N da"]
    next_states: Float[np.ndarray, "N dx"]
    rewards: Float[np.ndarray, " N"] | None
    costs: Mapping[str, Float[np.ndarray, " N"]]
    terminated: Bool[np.ndarray, " N"]
    notes: tuple[str, ...] = ()
    """What was left out, in words."""


def read_recorded(source: str, shape: Description, costs: Sequence[str]) -> Recorded:
    """What a file or a dataset holds of that system; refuses gaps, and columns too few or of another size."""
    if is_minari(source):
        found = _dataset(source, costs)
    elif source.endswith(".csv"):
        found = _table(Path(source), shape, costs)
    else:
        found = _archive(Path(source), costs)
    return checked(found, shape)


def with_signals(data: Recorded, sources: Sources, costs: Sequence[str]) -> Transitions:
    """The transitions with reward and costs: computed where these are functions, else as they were recorded."""
    reward, *charged = sources.functions()
    rewards = data.rewards if reward is None else _computed(data, reward, "reward")
    if rewards is None:
        raise UserError(
            f"{data.source} has no rewards, and no reward function was given; add a column 'reward', or give reward=..."
        )
    columns = []
    for name, source, function in zip(costs, sources.costs, charged, strict=True):
        recorded = data.costs.get(name, data.costs.get(str(source)))
        column = recorded if function is None else _computed(data, function, f"cost '{name}'")
        if column is None:
            known = ", ".join(data.costs) or "none"
            raise UserError(
                f"{data.source} has no cost '{name}' (its costs: {known}); add it, or give the cost as a function."
            )
        columns.append(column)
    x, a, y = data.states, data.actions, data.next_states
    return Transitions(x, a, y, rewards, np.stack(columns, axis=1), data.terminated)


def _computed(data: Recorded, function: Any, what: str) -> Float[np.ndarray, " N"]:
    rows = zip(data.states, data.actions, data.next_states, strict=True)
    try:
        found = np.array([np.asarray(function(x.copy(), a.copy(), y.copy()), float).reshape(()) for x, a, y in rows])
    except Exception as error:
        raise UserError(f"the {what} function failed on {data.source}: {error!r}.") from error
    if not np.all(np.isfinite(found)):
        raise UserError(f"the {what} function gives {found[~np.isfinite(found)][0]} on {data.source}; mend it.")
    return found


def checked(data: Recorded, shape: Description) -> Recorded:
    """Refuses data of another shape, of other units as far as that shows, and with gaps."""
    rows = len(data.actions)
    if not rows:
        raise UserError(f"{data.source} holds no transitions.")
    sizes = (("states", shape.state_size), ("actions", shape.action_size), ("next_states", shape.state_size))
    for name, size in sizes:
        part = getattr(data, name)
        if part.shape != (rows, size):
            raise UserError(
                f"the {name} of {data.source} have shape {part.shape}, and {(rows, size)} is wanted: {size} numbers "
                "per row."
            )
        _check_numbers(data.source, name, part)
    for name, column in {"rewards": data.rewards, "terminated": data.terminated, **data.costs}.items():
        if column is not None:
            if column.shape != (rows,):
                raise UserError(f"{name} of {data.source} has {len(column)} rows, and there are {rows} actions.")
            _check_numbers(data.source, name, column)
    _check_actions(data, shape)
    return data


def _check_numbers(source: str, name: str, part: np.ndarray) -> None:
    wrong = ~np.isfinite(part.reshape(len(part), -1)).all(axis=1)
    if wrong.any():
        raise UserError(
            f"row {int(np.argmax(wrong))} of the {name} of {source} has a gap, or something that is no number "
            f"({int(wrong.sum())} such rows in all); leave those rows out."
        )


BEYOND = 0.05
"""Share of the range by which recorded actions may exceed the limits: sensors are not exact."""


def _check_actions(data: Recorded, shape: Description) -> None:
    low, high = np.array(shape.action_low), np.array(shape.action_high)
    room = BEYOND * (high - low)
    least, most = data.actions.min(axis=0), data.actions.max(axis=0)
    for i in range(shape.action_size):
        if least[i] < low[i] - room[i] or most[i] > high[i] + room[i]:
            raise UserError(
                f"action {i} of {data.source} lies between {least[i]:g} and {most[i]:g}, and the system takes "
                f"{low[i]:g} to {high[i]:g}: are these other units? Convert them, or give other limits."
            )


# archives ----------------------------------------------------------------------------------------------------------


def _archive(path: Path, costs: Sequence[str]) -> Recorded:
    arrays = read_arrays(path, what="recorded data", remedy="save it with numpy.savez")
    if missing := [name for name in ("states", "actions", "next_states") if name not in arrays]:
        raise UserError(
            f"{path} has no {', '.join(missing)}; save arrays states, actions and next_states (and rewards, costs)."
        )
    if text := [name for name in Transitions._fields if name in arrays and arrays[name].dtype.kind == "U"]:
        raise UserError(f"{', '.join(text)} of {path} is text; save arrays of numbers.")
    x, a, y = (_rows(arrays[name]) for name in ("states", "actions", "next_states"))
    charged = _rows(arrays["costs"]) if "costs" in arrays and np.size(arrays["costs"]) else np.zeros((len(a), 0))
    if charged.shape[1] not in {0, len(costs)}:
        raise UserError(f"the costs of {path} have {charged.shape[1]} columns, and {len(costs)} costs were named.")
    return Recorded(
        source=str(path),
        states=x,
        actions=a,
        next_states=y,
        rewards=np.asarray(arrays["rewards"], float).reshape(-1) if np.size(arrays.get("rewards", ())) else None,
        costs=dict(zip(costs, charged.T, strict=False)),
        terminated=np.asarray(arrays.get("terminated", np.zeros(len(a))), bool).reshape(-1),
    )


def _rows(array: np.ndarray) -> np.ndarray:
    return np.asarray(array, float).reshape(len(array), -1) if np.ndim(array) and np.size(array) else np.zeros((0, 0))


# datasets ----------------------------------------------------------------------------------------------------------


def _dataset(source: str, costs: Sequence[str]) -> Recorded:
    episodes = read_episodes(source)
    if not episodes:
        raise UserError(f"{source} holds no episodes.")
    steps = [len(each.actions) for each in episodes]
    infos = [each.infos if isinstance(each.infos, dict) else {} for each in episodes]
    named = [name for name in infos[0] if all(name in each for each in infos)]
    charged: dict[str, np.ndarray] = {}
    for name in named:
        columns = [_column(info[name], n) for info, n in zip(infos, steps, strict=True)]
        if all(column is not None and (name in costs or np.isfinite(column).all()) for column in columns):
            charged[name] = np.concatenate(columns)  # type: ignore[arg-type]
    try:
        observed = [_rows(np.asarray(each.observations, float)) for each in episodes]
        actions = np.concatenate([_rows(np.asarray(each.actions, float)) for each in episodes])
    except (TypeError, ValueError):
        raise UserError(f"the observations or actions of {source} are no arrays of numbers; flatten them.") from None
    return Recorded(
        source=source,
        states=np.concatenate([x[:-1] for x in observed]),
        actions=actions,
        next_states=np.concatenate([x[1:] for x in observed]),
        rewards=np.concatenate([np.asarray(each.rewards, float).reshape(-1) for each in episodes]),
        costs=charged,
        terminated=np.concatenate([np.asarray(each.terminations, bool).reshape(-1) for each in episodes]),
    )


def _column(values: Any, steps: int) -> np.ndarray | None:
    """One number per step; the entry of a reset, which some collectors add, is left out."""
    try:
        found = np.asarray(values, float)
    except (TypeError, ValueError):
        return None
    return found.reshape(-1)[-steps:] if found.ndim and found.size in {steps, steps + 1} else None


# tables ------------------------------------------------------------------------------------------------------------


def _table(path: Path, shape: Description, costs: Sequence[str]) -> Recorded:
    columns = _columns(path)
    actions = _action_names(path, columns, shape)
    states = list(shape.state_names)
    if missing := [name for name in states if name not in columns]:
        raise UserError(
            f"{path} has no column {', '.join(missing)} (it has {', '.join(columns)}); name the observations with "
            "state_names=..., in the order of the system."
        )
    x, a = (np.stack([columns[name] for name in names], axis=1) for names in (states, actions))
    after = [f"{NEXT}{name}" for name in states]
    others = {name: columns[name] for name in costs if name in columns}
    rewards, ended = columns.get("reward"), columns.get("terminated", np.zeros(len(a)))
    if all(name in columns for name in after):
        y = np.stack([columns[name] for name in after], axis=1)
        return Recorded(str(path), x, a, y, rewards, others, ended.astype(bool))
    kept, notes = _followed(path, columns, len(a))
    rows = np.flatnonzero(kept)
    return Recorded(
        source=str(path),
        states=x[rows],
        actions=a[rows],
        next_states=x[rows + 1],
        rewards=None if rewards is None else rewards[rows],
        costs={name: column[rows] for name, column in others.items()},
        terminated=ended[rows].astype(bool),
        notes=notes,
    )


def _action_names(path: Path, columns: Mapping[str, Any], shape: Description) -> list[str]:
    if all(name in columns for name in shape.action_names):
        return list(shape.action_names)
    raise UserError(
        f"{path} has no column {', '.join(n for n in shape.action_names if n not in columns)} (it has "
        f"{', '.join(columns)}); name the actions with action_names=..."
    )


def _followed(
    path: Path, columns: Mapping[str, np.ndarray], rows: int
) -> tuple[Bool[np.ndarray, " N"], tuple[str, ...]]:
    """Which rows are followed by the next control step, and what that leaves out."""
    kept = np.ones(rows, bool)
    kept[-1:] = False
    if (episode := columns.get("episode")) is not None:
        kept[:-1] &= episode[1:] == episode[:-1]
    time = columns.get("time")
    if time is None or not kept.any():
        return kept, ()
    if not np.isfinite(time).all():
        row = int(np.argmin(np.isfinite(time)))
        raise UserError(f"the time of row {row} of {path} is no number; give seconds since the beginning.")
    apart = np.diff(time)
    usual = float(np.median(apart[kept[:-1]]))
    gaps = kept[:-1] & ((apart > GAP * usual) | (apart < usual / GAP))
    kept[:-1] &= ~gaps
    count = int(gaps.sum())
    notes = (f"{count} of {rows} rows are left out: {usual:g} is the usual time between rows, and not there.",)
    return kept, notes if count else ()


def _columns(path: Path) -> dict[str, Float[np.ndarray, " N"]]:
    """All columns by name; what is no number is NaN."""
    with disk(path), path.open(newline="", encoding="utf-8-sig") as file:
        try:
            names, *rows = list(csv.reader(file))
        except (ValueError, csv.Error, UnicodeDecodeError) as error:
            raise UserError(f"{path} is no table: {error}; the first line must name the columns.") from None
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        raise UserError(f"{path} has two columns of the same name among {', '.join(names)}; rename one.")
    if all(_number(name) == _number(name) for name in names):
        raise UserError(f"{path} begins with numbers; its first line must name the columns.")
    rows = [row for row in rows if row]
    if wrong := [i for i, row in enumerate(rows) if len(row) != len(names)]:
        raise UserError(
            f"row {wrong[0]} of {path} has {len(rows[wrong[0]])} columns, and the first line names {len(names)}; mend "
            "it."
        )
    cells = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())
    return {
        name: _labels(column) if name == "episode" else np.array([_number(cell) for cell in column], float)
        for name, column in cells.items()
    }


def _labels(column: Sequence[str]) -> Float[np.ndarray, " N"]:
    """Numbers for labels of any kind, equal for equal ones."""
    words = [label.strip() for label in column]
    known = {label: float(i) for i, label in enumerate(dict.fromkeys(words))}
    return np.array([known[label] for label in words])


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float({"true": 1.0, "false": 0.0}.get(cell.strip().lower(), "nan"))
