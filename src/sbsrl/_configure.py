"""The settings of JAX that this package relies on: double precision, compiled programs kept on disk, wide vectors.

Gaussian processes are factorised in float64 and planned with in float32, so 64-bit types must be on for the
whole process. Importing `sbsrl` therefore changes settings of the process: the precision and the compilation cache of
JAX, the width of the vectors that XLA computes with, and the threads of OpenBLAS (unless something else, such as scipy,
loaded it before). JAX itself is not imported here; processes that are started later inherit what was put into the
environment.
"""

import os
import sys
from time import perf_counter
from typing import Any

__all__ = ["STARTED", "cache_folder", "configure", "processor_features", "writable"]

STARTED = perf_counter()
"""When the program began, but for the start of Python itself."""


def configure() -> None:
    """Switches on float64 and, unless the user chose a place already, the persistent compilation cache.

    OpenBLAS, which factorises, gets one thread: with more it would sum in an order that depends on the number of cores,
    and its waiting threads cost more than they give. XLA's own threads remain: with some 350 points or more a run on
    two cores rounds differently from one on a single core.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _prefer_wide_vectors()
    _set("jax_enable_x64", True)
    if not _get("jax_compilation_cache_dir") and writable(folder := cache_folder("jax")):
        _set("jax_compilation_cache_dir", folder)
        _set("jax_persistent_cache_min_compile_time_secs", 0.2)
        _set("jax_persistent_cache_min_entry_size_bytes", -1)


VECTOR_WIDTH = "--xla_cpu_prefer_vector_width"
WIDE = "avx512_vbmi2"
"""What processors have that compute with vectors of 512 bits at full speed; the first ones with AVX-512 slow down."""


def _prefer_wide_vectors() -> None:
    """Lets XLA use vectors of 512 bits where the processor has them; by itself it uses 256, which takes a third longer.

    A width that the user put into XLA_FLAGS stays, and so does everything once JAX has begun to compute: XLA has read
    its flags then, and JAX, which files compiled programs under them, would file those of one width under the other.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    bridge = sys.modules.get("jax._src.xla_bridge")
    too_late = bridge is not None and bridge.backends_are_initialized()
    if VECTOR_WIDTH not in flags and not too_late and WIDE in processor_features():
        os.environ["XLA_FLAGS"] = f"{flags} {VECTOR_WIDTH}=512".strip()


def processor_features(path: str = "/proc/cpuinfo") -> set[str]:
    """What the first processor offers, as Linux tells it; nothing where it does not."""
    try:
        with open(path) as lines:
            told = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return set()
    return set(told.partition(":")[2].split())


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
