"""The words under which a user's systems and functions are found again.

`module:name` is something in a module that can be imported, `file.py:name` something in a file, both also from the
folder in which the program was started; `module:` and `file.py` are the module itself. What has no such name (a lambda,
an object, a function within another) is known as `local:...` while the program runs, and is not found by any other.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from secrets import token_hex
from types import ModuleType
from typing import Any

from ..errors import UserError
from ..systems.faults import FAILURES, describe

__all__ = ["LOCAL", "bind", "bind_new", "file_of", "find", "is_local", "name_of"]

LOCAL = "local:"
GYMNASIUM = "gymnasium:"
"""How names begin that Gymnasium finds."""
PROCESS = token_hex(4)
"""In local words, so that those of another program never stand for something here."""
FILE = "sbsrl_file_"
"""How names of modules begin that were read from a file."""
_KNOWN: dict[str, Any] = {}
"""What was named in this process."""


def is_local(word: str) -> bool:
    """Whether only the program that named it can find it."""
    return word.startswith(LOCAL)


def find(word: str, what: str) -> Any:
    """What the word stands for; `what` says in a complaint what was looked for."""
    if word in _KNOWN:
        return _KNOWN[word]
    if is_local(word):
        raise UserError(
            f"the {what} was an object of the program that began this, which cannot be found again; say it once more "
            f"from Python, as in sbsrl.resume(DIR, {what}=...), or put it into a module and name it module:name."
        )
    place, colon, name = word.partition(":")
    found: Any = _module(place, word, what)
    for part in name.split(".") if colon and name else ():
        if not hasattr(found, part):
            offered = ", ".join(sorted(n for n in dir(found) if not n.startswith("_"))[:12]) or "nothing"
            raise UserError(f"the {what} {word}: {place} has no '{name}'; it has {offered}.")
        found = getattr(found, part)
    return found


def _module(place: str, word: str, what: str) -> ModuleType:
    try:
        with _from_here():
            return _file(Path(place)) if place.endswith(".py") else import_module(place)
    except ModuleNotFoundError as error:
        if error.name and f"{place}.".startswith(f"{error.name}.") and not place.endswith(".py"):
            raise UserError(
                f"the {what} {word}: there is no module '{place}' here or among the installed ones; give module:name, "
                "or file.py:name."
            ) from None
        raise UserError(f"the {what} {word} cannot be imported: {describe(error)}.") from error
    except FileNotFoundError:
        raise UserError(f"the {what} {word}: there is no file {place}; give module:name, or file.py:name.") from None
    except FAILURES as error:
        raise UserError(f"the {what} {word} cannot be imported: {describe(error)}.") from error


@contextmanager
def _from_here() -> Iterator[None]:
    """While modules of the working folder can be imported, as `python -m` would."""
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path.remove("")


def _file(path: Path) -> ModuleType:
    """The module in a file, executed once per process."""
    whole = path.resolve(strict=True)
    name = f"{FILE}{whole.stem}_{sha256(str(whole).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, whole)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(whole)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def file_of(word: str) -> Path | None:
    """The file of the user's code in which the word's thing is; None for words that name nothing in one."""
    place, colon, _ = word.partition(":")
    if place.endswith(".py"):
        return Path(place).resolve() if Path(place).is_file() else None
    if not colon or word.startswith((LOCAL, GYMNASIUM)):
        return None
    with _from_here(), suppress(*FAILURES):
        found = find_spec(place)
        if found is not None and found.has_location and found.origin:
            return Path(found.origin)
    return None


def name_of(thing: Any, what: str) -> str:
    """A word for a thing, by which `find` finds it: where it can be imported from, else a local one."""
    if isinstance(thing, str):
        return thing
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if isinstance(thing, ModuleType):
        module, name = thing.__name__, ""
    if module and name is not None and module != "__main__" and "<" not in name and not module.startswith(FILE):
        try:
            if find(f"{module}:{name}", what) is thing:
                return f"{module}:{name}"
        except UserError:
            pass
    if module == "__main__" and (script := _in_script(thing, str(name))):
        bind(script, thing)  # here it is this object: the script is not executed once more
        return script
    for word, known in _KNOWN.items():
        if known is thing and word.startswith(f"{LOCAL}{what}-"):
            return word
    return bind_new(what, thing)


def _in_script(thing: Any, name: str) -> str | None:
    """The word for something at the top of the script that is running: its file and its name there."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    whole = getattr(main, "__spec__", None) is None and str(file).endswith(".py") and ":" not in str(file)
    if not whole or getattr(main, name, None) is not thing:
        return None
    path = Path(str(file)).resolve()
    here = Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{name}"


def bind_new(what: str, thing: Any) -> str:
    """A new local word for a thing."""
    prefix = f"{LOCAL}{what}-{PROCESS}-"
    word = f"{prefix}{1 + sum(each.startswith(prefix) for each in _KNOWN)}"
    bind(word, thing)
    return word


def bind(word: str, thing: Any) -> None:
    """From now on the local word stands for this."""
    _KNOWN[word] = thing
