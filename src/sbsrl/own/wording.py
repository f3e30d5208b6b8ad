"""What a user passes from Python, in the words that settings and config.json can hold."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import UserError, unknown
from .names import bind_new, name_of
from .settings import INFO
from .system import is_own

__all__ = ["in_words"]

FUNCTIONS = ("reward", "simulator", "fallback")


def in_words(system: Any, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of a system and its settings, with names in place of functions, objects and mappings.

    A task of this package keeps its settings as they are.
    """
    spec = system if isinstance(system, str) else name_of(system, "system")
    if not is_own(spec):
        return spec, dict(settings)
    worded: dict[str, Any] = {}
    for name, value in settings.items():
        plain = name.removeprefix("task.").removeprefix("run.")
        worded[name] = WORDED.get(plain, _same)(value)
        if plain == "budget" and isinstance(value, Mapping):
            worded[name] = _budgets(value, settings.get("cost", settings.get("task.cost", INFO)))
    return spec, worded


def _same(value: Any) -> Any:
    """Arrays and numbers of numpy as plain ones."""
    return value.tolist() if hasattr(value, "tolist") else value


def _source(what: str) -> Callable[[Any], str]:
    return lambda value: name_of(value, what)


def _costs(value: Any) -> tuple[str, ...]:
    """One source or several; a mapping gives them names."""
    if isinstance(value, Mapping):
        return tuple(f"{name}={name_of(source, 'cost')}" for name, source in value.items())
    if isinstance(value, str) or callable(value):
        return (name_of(value, "cost"),)
    return tuple(name_of(source, "cost") for source in value)


def _budgets(budgets: Mapping[str, float], costs: Any) -> tuple[float, ...]:
    """In the order of the costs."""
    if not isinstance(costs, Mapping):
        raise UserError("budget is a mapping from names of costs; give cost as one, too: cost={NAME: SOURCE, ...}.")
    for name in budgets:
        if name not in costs:
            raise unknown("cost", str(name), costs)
    if missing := [name for name in costs if name not in budgets]:
        raise UserError(f"the cost '{missing[0]}' has no budget; give one for each.")
    return tuple(budgets[name] for name in costs)


def _words(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else value


def _data(value: Any) -> str:
    """A file or a dataset by its name; transitions in memory as what only this program can find."""
    return value if isinstance(value, str) else bind_new("data", value) if isinstance(value, tuple) else str(value)


WORDED: Mapping[str, Callable[[Any], Any]] = {
    "cost": _costs,
    "aggregation": _words,
    "state_names": _words,
    "action_names": _words,
    "data": _data,
    **{what: _source(what) for what in FUNCTIONS},
}
"""How settings that are not plain numbers become words."""
