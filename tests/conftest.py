"""Strictness for every test: no silent promotion of types or ranks; fresh keys; small problems that are shared."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before JAX is loaded. Every program is kept, however small: most of the time of the tests is compilation, and both
# processes of the tests and all that they start use the same programs.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR",
    str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sbsrl" / "tests"),
)
os.environ["XDG_CACHE_HOME"] = os.environ["JAX_COMPILATION_CACHE_DIR"] + "-home"  # nothing of a user's own
# One thread per process: there are as many processes as cores.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 --xla_cpu_parallel_codegen_split_count=1"
)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import jax
import pytest
from hypothesis import settings

import sbsrl  # noqa: F401  (configures JAX before the options below)

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")  # a failure that comes and goes helps nobody

TINY: dict[str, Any] = {
    "episodes": 2,
    "samples": 3,
    "candidates": 16,
    "elites": 4,
    "iterations": 2,
    "horizon": 6,
    "features": 16,
}


MAPS, MOST_MAPS = Path("/proc/self/maps"), 25_000
"""Compiled programs are mapped into memory piece by piece, and Linux ends a process that has 65,530 pieces."""


@pytest.fixture(autouse=True, scope="module")
def forget_programs() -> Iterator[None]:
    """Compiled programs of earlier files are forgotten before there are too many of them."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()


@pytest.fixture
def tiny() -> dict[str, Any]:
    """Settings under which an episode takes a second. They learn little; they run every line."""
    return dict(TINY)


@pytest.fixture
def tiny_flags() -> list[str]:
    """The same on the command line."""
    return [word for key, value in TINY.items() for word in ("--set", f"{key}={value}")]


@pytest.fixture
def getkey() -> Callable[[], jax.Array]:
    """A function that hands out a new key at each call."""
    key = jax.random.key(5678)

    def next_key() -> jax.Array:
        nonlocal key
        key, new = jax.random.split(key)
        return new

    return next_key
