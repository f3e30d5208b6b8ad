"""The settings of JAX that this package relies on: double precision available, compiled programs kept on disk.

Gaussian processes are factorised in float64 and planned with in float32, so 64-bit types must be on for the
whole process. Importing `sbsrl` therefore changes settings of the process: the precision and the compilation cache of
JAX, and the threads of OpenBLAS (unless something else, such as scipy, loaded it before). JAX itself is not imported
here; processes that are started later inherit what was put into the environment.
"""

import os
import sys
from time import perf_counter
from typing import Any

__all__ = ["STARTED", "cache_folder", "configure", "writable"]

STARTED = perf_counter()
"""When the program began, but for the start of Python itself."""


def configure() -> None:
    """Switches on float64 and, unless the user chose a place already, the persistent compilation cache.

    OpenBLAS, which factorises, gets one thread: with more it would sum in an order that depends on the number of cores,
    and its waiting threads cost more than they give. XLA's own threads remain: with some 350 points or more a run on
    two cores rounds differently from one on a single core.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _set("jax_enable_x64", True)
    if not _get("jax_compilation_cache_dir") and writable(folder := cache_folder("jax")):
        _set("jax_compilation_cache_dir", folder)
        _set("jax_persistent_cache_min_compile_time_secs", 0.2)
        _set("jax_persistent_cache_min_entry_size_bytes", -1)


def cache_folder(what: str) -> str:
    """Where something is kept that can be made again: `$XDG_CACHE_HOME/sbsrl/WHAT`, by default below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "sbsrl", what)


def writable(folder: str) -> bool:
    """Makes a folder of the cache; False where that is not possible: without it everything is only slower."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _set(option: str, value: Any) -> None:
    """Sets an option of JAX: in JAX if it is loaded, else in the environment, which it reads when it is loaded."""
    if jax := sys.modules.get("jax"):
        jax.config.update(option, value)
    else:
        os.environ[option.upper()] = str(value)


def _get(option: str) -> Any:
    """The value of an option of JAX, wherever `_set` would put it; None if nobody set it."""
    if jax := sys.modules.get("jax"):
        return jax.config.values[option]
    return os.environ.get(option.upper())
