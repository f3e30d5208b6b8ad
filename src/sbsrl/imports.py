"""Which modules of this package a module needs, read from its source: nothing is imported to find out."""

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

__all__ = ["closure", "content_of", "imported_modules", "modules", "named_modules", "source_of"]

PACKAGE = Path(__file__).parent
NAME = __package__ or "sbsrl"


@cache
def modules() -> frozenset[str]:
    """All modules of the package, by their full names; a package stands for its `__init__`."""
    return frozenset(_name(file) for file in PACKAGE.rglob("*.py"))


def _name(file: Path) -> str:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join((NAME, *(parts[:-1] if parts[-1] == "__init__" else parts)))


def source_of(module: str) -> Path:
    """Where a module of the package is."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def named_modules(module: str) -> frozenset[str]:
    """The modules of the package that this one names in its imports, wherever they stand but for type checkers only."""
    tree = ast.parse(source_of(module).read_text())
    found = {name for node in _statements(tree) for name in _targets(node, module)}
    return frozenset(found & modules()) - {module}


@cache
def imported_modules(module: str) -> frozenset[str]:
    """The modules that run before this one does, because it imports them.

    Importing a module also runs the `__init__` of every package around it. Those around this module itself are left
    out, unless it takes a name from one: they had begun before.
    """
    named = named_modules(module)
    around = {outer for name in named for outer in _packages(name)} - _packages(module)
    return named | around - {module}


def _packages(module: str) -> set[str]:
    """The packages around a module."""
    parts = module.split(".")
    return {".".join(parts[:i]) for i in range(1, len(parts))}


def _statements(tree: ast.AST) -> Iterable[ast.AST]:
    """All statements that are executed: not those below `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue  # no statement is below one
        if isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            node = ast.Module(node.orelse, [])  # noqa: PLW2901
        yield node
        yield from _statements(node)


def _targets(node: ast.AST, module: str) -> Iterable[str]:
    """What an import statement names: modules, or the module that a name is taken from."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        base = _absolute(node, module)
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield inner if inner in modules() else base


def _absolute(node: ast.ImportFrom, module: str) -> str:
    if not node.level:
        return node.module or ""
    package = module if source_of(module).name == "__init__.py" else module.rpartition(".")[0]
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*base, *(node.module or "").split(".")]).rstrip(".")


def closure(roots: Iterable[str]) -> frozenset[str]:
    """These modules and all whose names they use, directly or not.

    A package counts where a name is taken from it, and not where a module in it is: what it offers besides is not used.
    """
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting.extend(named_modules(module))
    return frozenset(found)


def content_of(files: Iterable[Path]) -> bytes:
    """A digest of what these files are called and contain."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.digest()
