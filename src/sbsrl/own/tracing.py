"""Functions that a user wrote with numpy, as functions that JAX can trace.

A function is called with JAX's arrays as it is; if it does not stand that, a copy of it is made in which `numpy` and
`math` are JAX's. What comes out is compared with the original, so that a function is used only where both agree.
"""

import builtins
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import EXACT

__all__ = ["agrees", "traceable"]

TOLERANCE = 1e-6
"""By which the copy may differ from the original, relative to the largest number that comes out."""
DEPTH = 8
"""Functions in functions that are copied as well."""


def traceable(function: Callable[..., Any], points: Sequence[Sequence[np.ndarray]]) -> Callable[..., jax.Array] | None:
    """A function of the same arguments that JAX can trace, as an array; None where there is none.

    It agrees with the original at all `points`, each a list of arguments.
    """
    for candidate in (function, translated(function)):
        if candidate is None:
            continue
        as_array = partial(_as_array, candidate)
        if agrees(function, as_array, points):
            return as_array
    return None


def _as_array(function: Callable[..., Any], *arguments: Any) -> jax.Array:
    return jnp.asarray(_stacked(function(*arguments)), EXACT)


def _stacked(value: Any) -> Any:
    """Lists and tuples of numbers as an array: JAX does not convert lists of its own arrays without being asked."""
    if isinstance(value, list | tuple):
        return jnp.stack([jnp.asarray(_stacked(each), EXACT) for each in value])
    return value


def agrees(
    function: Callable[..., Any], candidate: Callable[..., jax.Array], points: Sequence[Sequence[np.ndarray]]
) -> bool:
    """Whether the candidate can be traced and gives what the function gives, at every point."""
    try:
        compiled = jax.jit(candidate)
        for point in points:
            wanted = np.asarray(function(*(np.array(each, float) for each in point)), float)
            found = np.asarray(compiled(*(jnp.asarray(each, EXACT) for each in point)))
            if wanted.shape != found.shape or not np.all(np.isfinite(wanted)):
                return False
            if np.abs(wanted - found).max(initial=0) > TOLERANCE * (1 + np.abs(wanted).max(initial=0)):
                return False
    except Exception:  # whatever a user's function makes of a tracer
        return False
    return True


OTHER_NAMES = MappingProxyType(
    {"atan2": "arctan2", "atan": "arctan", "asin": "arcsin", "acos": "arccos", "fabs": "abs", "pow": "power"}
)
"""What functions of `math` are called in numpy, where that is something else."""


class _Math:
    """`math` for arrays."""

    def __getattr__(self, name: str) -> Any:
        constant = getattr(math, name)
        return constant if isinstance(constant, float) else getattr(jnp, OTHER_NAMES.get(name, name))


class _Numpy:
    """`numpy` for arrays of JAX: the same names, double precision where numpy would have it, lists welcome."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(jnp, name)
        if name in {"array", "asarray"}:
            return lambda value, *_, **__: jnp.asarray(_stacked(value), EXACT)
        if name in {"maximum", "minimum", "clip", "concatenate", "stack", "hstack", "sum", "max", "min", "mean", "dot"}:
            return lambda first, *rest, **options: found(_listed(name, first), *rest, **options)
        return found


def _listed(name: str, value: Any) -> Any:
    """A list of parts stays one where parts are joined; elsewhere it is an array."""
    if name in {"concatenate", "stack", "hstack"} and isinstance(value, list | tuple):
        return [jnp.asarray(_stacked(each), EXACT) for each in value]
    return _stacked(value)


def _float(x: Any = 0.0) -> Any:
    return jnp.asarray(x, EXACT).reshape(())


def _extreme(pairwise: Callable[..., Any], of_all: Callable[..., Any]) -> Callable[..., Any]:
    """`max` or `min` of Python, of several numbers or of the parts of one array."""

    def extreme(first: Any, *rest: Any) -> Any:
        if not rest:
            return of_all(jnp.asarray(_stacked(first), EXACT))
        return reduce(pairwise, (jnp.asarray(each, EXACT) for each in (first, *rest)))

    return extreme


INSISTENT: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "float": _float,
        "abs": jnp.abs,
        "max": _extreme(jnp.maximum, jnp.max),
        "min": _extreme(jnp.minimum, jnp.min),
    }
)
"""What takes the place of functions of Python that insist on numbers."""


def translated(function: Callable[..., Any], depth: int = DEPTH) -> Callable[..., Any] | None:
    """A copy of a function of Python with JAX's numpy and math; None where it is none, or has none of its own."""
    if isinstance(function, MethodType):
        inner = translated(function.__func__, depth)
        return inner and partial(inner, function.__self__)
    if isinstance(function, partial):
        inner = translated(function.func, depth)
        return inner and partial(inner, *function.args, **function.keywords)
    if not isinstance(function, FunctionType) or not depth:
        return None
    names = {**function.__globals__}
    used = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in used:
        if name in names:
            names[name] = _replaced(names[name], depth)
        elif name in INSISTENT and hasattr(builtins, name):
            names[name] = INSISTENT[name]
    cells = tuple(CellType(_replaced(_content(cell), depth)) for cell in function.__closure__ or ())
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells or None)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _codes(code: CodeType) -> list[CodeType]:
    """The code, and that of functions that are defined within it."""
    return [code, *(inner for each in code.co_consts if inspect.iscode(each) for inner in _codes(each))]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _replaced(thing: Any, depth: int) -> Any:
    """What stands for a thing that a function uses: JAX's for numpy's and math's, a copy for another function."""
    if thing is np or thing is math:
        return _Numpy() if thing is np else _Math()
    home, name = str(getattr(thing, "__module__", "")), str(getattr(thing, "__name__", ""))
    package = home.partition(".")[0]
    if isinstance(thing, FunctionType) and package not in {"jax", "numpy"}:
        return translated(thing, depth - 1) or thing
    if callable(thing) and (isinstance(thing, np.ufunc) or package == "numpy"):
        return getattr(_Numpy(), name) if hasattr(jnp, name) else thing
    if callable(thing) and home == "math":
        return getattr(_Math(), name, thing)
    return thing
