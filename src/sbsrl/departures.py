"""What happened in an episode that the task says cannot: the theorems rest on it, and nothing else would notice."""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._jax import EXACT
from .kernels import Kernel
from .task import Task
from .transitions import Episode

__all__ = ["departure"]

ROUNDING = 1e-6
"""Relative: a limit that is met exactly is not exceeded by what single precision makes of it."""


def departure(task: Task, episode: Episode) -> str:
    """The first thing, in words; empty where everything was as the task says, or it says nothing.

    Looked at are: where the episode began (`fixed_start`), every visited (x, a) and its k(z, z) (`Limits.inputs`, from
    which sigma_max follows), and every cost of a step (`Cost.limits`).
    """
    return next(_departures(task, episode), "") if len(episode.states) else ""


def _departures(task: Task, episode: Episode) -> Iterator[str]:
    if task.fixed_start is not None and not np.allclose(episode.states[0], task.fixed_start, ROUNDING, ROUNDING):
        yield f"it began at {_list(episode.states[0])}, and {task.name} is said to begin at {_list(task.fixed_start)}."
    for i, cost in enumerate(task.costs):
        low, high = cost.limits
        slack = ROUNDING * max(abs(low), abs(high)) if np.isfinite(high - low) else 0.0
        for t in np.flatnonzero((episode.costs[:, i] < low - slack) | (episode.costs[:, i] > high + slack))[:1]:
            yield (
                f"step {t + 1} cost {episode.costs[t, i]:.6g} ({cost.name}), and costs are said to lie between {low:g} "
                f"and {high:g}."
            )
    if task.limits is not None and len(episode.actions):
        yield from _outside(task, episode, task.limits.inputs)


def _outside(task: Task, episode: Episode, limits: tuple[float, ...]) -> Iterator[str]:
    """Inputs beyond the box, and inputs at which the kernel is larger than it is said to be."""
    visited, box = np.concatenate([episode.states[:-1], episode.actions], axis=1), np.asarray(limits)
    padded = np.pad(visited, ((0, max(task.horizon - len(visited), 0)), (0, 0)), mode="edge")
    for t in np.flatnonzero(np.any(np.abs(visited) > box[None] * (1 + ROUNDING), axis=1))[:1]:
        yield f"step {t + 1} was taken at (x, a) = {_list(visited[t])}, outside of the limits {_list(limits)}."
    for kernel in task.prior.gp.kernels if task.prior.gp is not None else ():
        most = kernel.supremum(limits)
        size = np.asarray(_sizes(kernel, jnp.asarray(padded, EXACT)))[: len(visited)]
        for t in np.flatnonzero(size > most * (1 + ROUNDING))[:1]:
            yield (
                f"k(z, z) = {size[t]:.4g} at (x, a) = {_list(visited[t])} in step {t + 1}, and {kernel.describe()} is "
                f"said to be at most {most:.4g}."
            )


@eqx.filter_jit
def _sizes(kernel: Kernel, visited: Float[Array, "T dz"]) -> Float[Array, " T"]:
    return jax.vmap(lambda z: kernel(z, z))(visited)


def _list(values: tuple[float, ...] | Float[np.ndarray, " n"]) -> str:
    return ", ".join(f"{float(value):.4g}" for value in values)
