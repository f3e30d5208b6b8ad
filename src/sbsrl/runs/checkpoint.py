"""The state of a run in one file of plain arrays. Nothing in it can execute code."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ..atomic import write_atomically
from ..errors import UserError
from ..loop import Learner

__all__ = ["load_checkpoint", "save_checkpoint"]


def save_checkpoint(path: Path, learner: Learner, lines: int) -> None:
    """Saves all arrays of the learner and how many lines of `episodes.jsonl` they account for."""
    arrays = {name: np.asarray(_plain(leaf)) for name, leaf in _named_arrays(learner)}
    write_atomically(path, save(arrays, metadata={"lines": str(lines)}))


def load_checkpoint(path: Path, template: Learner) -> tuple[Learner, int]:
    """The saved learner, in the shape of a fresh one for the same configuration."""
    names = [name for name, _ in _named_arrays(template)]
    leaves, structure = jax.tree.flatten(template)
    try:
        with safe_open(path, framework="numpy") as file:
            saved = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            lines = int((file.metadata() or {}).get("lines", -1))
    except SafetensorError as error:
        raise UserError(f"{path} is damaged ({error}); restore it, or delete it to start the run anew.") from None
    if lines < 0 or {n: a.shape for n, a in saved.items()} != {n: _plain(a).shape for n, a in _named_arrays(template)}:
        raise UserError(
            f"{path} does not fit the configuration beside it; restore config.json, or use the version of sbsrl "
            "that made it."
        )
    restored = [_restore(saved[name], leaf) for name, leaf in zip(names, leaves, strict=True)]
    return jax.tree.unflatten(structure, restored), lines


def _named_arrays(learner: Learner) -> list[tuple[str, Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(learner)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _restore(saved: np.ndarray, like: Any) -> Any:
    return jax.random.wrap_key_data(jnp.asarray(saved)) if _is_key(like) else jnp.asarray(saved)
