"""How this package uses JAX: double precision available, compiled programs kept on disk.

Gaussian processes are factorised in float64 and planned with in float32, so 64-bit types must be on for the
whole process. Importing `sbsrl` therefore changes global settings: the precision and the compilation cache of JAX, and
the threads of OpenBLAS (unless something else, such as scipy, loaded it before).
"""

import os
from pathlib import Path

# Before JAX loads it: OpenBLAS, which factorises, would sum in an order that depends on the number of cores, and its
# waiting threads cost more than they give. With one thread a run is the same on any number of cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import jax.numpy as jnp

PLAN = jnp.float32
"""The precision of planning: rollouts of the nominal and of the sampled dynamics."""

EXACT = jnp.float64
"""The precision of beliefs: Gram matrices, factors, posterior variances."""


def cache_folder() -> Path:
    """Where compiled programs are kept: `$XDG_CACHE_HOME/sbsrl/jax`, by default below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sbsrl" / "jax"


def configure() -> None:
    """Switches on float64 and, unless the user chose a place already, the persistent compilation cache."""
    jax.config.update("jax_enable_x64", True)
    if jax.config.values["jax_compilation_cache_dir"]:
        return
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # no cache is only slower
    if os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
