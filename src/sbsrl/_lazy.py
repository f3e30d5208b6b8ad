"""Names of a package that are loaded when they are first used (PEP 562)."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["loader"]


def loader(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `homes` says in which of its modules each name is.

    No name may be that of a module: as soon as the module is imported, the package's attribute would be the module.
    """
    if both := sorted(homes.keys() & set(homes.values())):
        raise ValueError(f"{', '.join(both)}: the name of a module of {package} and of something in it")

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f".{homes[name]}", package), name)

    return load
