"""A pytree as named plain arrays, and back into the shape of a template."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from .errors import UserError

__all__ = ["check_form", "from_arrays", "misfit", "nan_in", "to_arrays", "with_nan"]


def to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """All arrays and numbers of the tree by path, keys as their bits. Other leaves, as functions, are left out."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): _plain(leaf) for path, leaf in leaves if _has_state(leaf)}


def from_arrays(template: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The inverse of `to_arrays`: a tree like the template with these arrays, which must fit it."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    restored = [
        _restore(leaf, arrays[jax.tree_util.keystr(path)]) if _has_state(leaf) else leaf for path, leaf in leaves
    ]
    return jax.tree.unflatten(structure, restored)


def check_form(what: str, before: Any, after: Any) -> None:
    """Refuses a state whose structure, shapes or types are not those that it had: it could not be restored."""
    if _form(before) == _form(after):
        return
    difference = misfit(before, to_arrays(after)) or "its structure is another one"
    raise UserError(f"{what} must keep its shapes and types, in which it is saved, and does not: {difference}.")


def _form(tree: Any) -> Any:
    """What must not change: everything but the numbers."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) if isinstance(leaf, jax.Array) else type(leaf) for leaf in leaves]


def misfit(template: Any, arrays: Mapping[str, np.ndarray]) -> str | None:
    """The first difference in names, shapes or types, in words; None if the arrays fit the template."""
    wanted = to_arrays(template)
    if missing := sorted(wanted.keys() - arrays.keys()):
        return f"it has no {missing[0]}"
    if unknown := sorted(arrays.keys() - wanted.keys()):
        return f"it has {unknown[0]}, which the learner has not"
    for name, like in wanted.items():
        array = arrays[name]
        if (array.dtype, array.shape) != (like.dtype, like.shape):
            return f"{name} is {array.dtype} {array.shape} and not {like.dtype} {like.shape}"
    return None


def with_nan(arrays: Mapping[str, np.ndarray]) -> str | None:
    """The name of the first array with NaN. Infinite numbers are allowed: they stand for what is not bounded."""
    return next((name for name, a in arrays.items() if a.dtype.kind in "fc" and np.isnan(a).any()), None)


def nan_in(tree: Any) -> str | None:
    """The name of an array of the tree with NaN; None if there is none."""
    numbers = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array) and _is_float(leaf)]
    return with_nan(to_arrays(tree)) if _any_nan(numbers) else None


@jax.jit
def _any_nan(arrays: list[Array]) -> Bool[Array, ""]:
    return jnp.any(jnp.stack([jnp.isnan(array).any() for array in arrays])) if arrays else jnp.zeros((), bool)


def _is_float(leaf: Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.inexact)


def _has_state(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | complex)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf, order="C")


def _restore(like: Any, array: np.ndarray) -> Any:
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
    if isinstance(like, jax.Array):
        return jnp.asarray(array)
    if isinstance(like, np.ndarray):
        return array
    return array[()] if isinstance(like, np.generic) else array.item()
