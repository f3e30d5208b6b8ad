"""From a task and the settings of a run to what the theory is asked: its premises, and the facts it judges by."""

import itertools
import math
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

from ._jax import EXACT
from .belief.choices import GPChoices
from .errors import UserError
from .kernels import Kernel
from .prior import GPPrior
from .settings import Settings
from .shape import described
from .solve.robust import prior_margin, surely_reachable
from .task import Limits, Task
from .theory.assumptions import TaskFacts
from .theory.premises import Premises

__all__ = ["first_step_cost", "premises_of", "surely_reachable", "task_facts", "unbounded_returns", "uncertifiable"]


def premises_of(task: Task, settings: Settings, **changes: Any) -> Premises:
    """The premises of a run of this task, in units of the prior's scale; `changes` replace fields of `Premises`.

    Refuses tasks of which no theorem speaks (`uncertifiable`), and those with costs or rewards of any size
    (`unbounded_returns`) unless both `cost` and `reward` are among the changes.
    """
    prior, limits = _required(task)
    if (unbounded := unbounded_returns(task)) and not {"cost", "reward"} <= changes.keys():
        raise UserError(f"nothing can be certified: {unbounded}")
    (cost,) = task.costs
    known = {
        **_model(prior),
        "limits": limits.inputs,
        "outputs": task.state_size,
        "horizon": task.horizon,
        "bound": prior.bound,
        "budget": cost.budget,
        "cost": cost.limits[1] - cost.limits[0],
        "reward": limits.reward[1] - limits.reward[0],
        "least": cost.least(task.horizon),
        "margin": _margin(task),
        "aggregation": cost.aggregation,
    }
    return Premises(**{**known, **_chosen(settings), **changes})


def _model(prior: GPPrior) -> dict[str, Any]:
    """Kernel and noise, in units in which every output has the same noise.

    Where outputs differ in noise, output j is measured in units in which its noise is the smallest one: dividing f_j
    and sigma_j by c divides the kernel by c^2 and leaves the norm B as it is.
    """
    kernels, noise = prior.kernels, np.broadcast_to(prior.noise, len(prior.scale))
    least = float(noise.min())
    if np.ptp(noise) > 0:
        kernels = tuple((least / float(s)) ** 2 * k for s, k in zip(noise, _kernels(prior), strict=True))
    return {"kernel": kernels if len(kernels) > 1 else kernels[0], "noise": least}


def _kernels(prior: GPPrior) -> tuple[Kernel, ...]:
    """One per output."""
    return prior.kernels if len(prior.kernels) > 1 else prior.kernels * len(prior.scale)


def _chosen(settings: Settings) -> dict[str, Any]:
    """What the settings of a run choose of the premises."""
    method, belief = settings.method, settings.belief
    if not isinstance(belief, GPChoices):
        raise UserError(
            f"nothing can be certified: the theorems are about Gaussian processes, not belief={belief.name}."
        )
    return {
        "delta": belief.delta,
        "convention": belief.convention,
        "epsilon": method.accuracy or None,
        "samples": method.samples,
        "form": method.form,
        "tightening": method.tightening[0],
    }


# what a task must have ---------------------------------------------------------------------------------------------


def uncertifiable(task: Task) -> str | None:
    """Why no theorem speaks of this task, whatever its numbers are, in a sentence; None if one does."""
    if len(task.costs) > 1:
        return f"the theorems are about one cost, and {task.name} has {len(task.costs)}."
    if task.prior.gp is None:
        return f"the prior of {task.name} is no Gaussian process, and the theorems are about one; give Prior.gp."
    if task.limits is None:
        return f"{task.name} does not say within which limits inputs and rewards lie; give Task.limits."
    return None


def unbounded_returns(task: Task) -> str | None:
    """That costs or rewards of a step have no bound, which every theorem needs, in a sentence; None if they have."""
    ranges = {f"cost '{cost.name}'": cost.limits for cost in task.costs}
    if len(task.costs) == 1:
        ranges = {"cost": task.costs[0].limits}
    ranges["reward"] = (-math.inf, math.inf) if task.limits is None else task.limits.reward
    for name, (low, high) in ranges.items():
        if not math.isfinite(high - low):
            return f"the {name} of a step of {task.name} has no bound (it lies between {low:g} and {high:g})."
    return None


def _required(task: Task) -> tuple[GPPrior, Limits]:
    """The prior and the limits of a task that a theorem speaks of."""
    if reason := uncertifiable(task):
        raise UserError(f"nothing can be certified: {reason}")
    return described(task)


# what is known of the task -----------------------------------------------------------------------------------------


def task_facts(task: Task) -> TaskFacts:
    """What the assumptions are judged by; for a task with a Gaussian-process prior."""
    prior, _ = described(task)
    modelled = np.broadcast_to(prior.noise, task.state_size) * np.asarray(prior.scale)
    return TaskFacts(
        modelled_noise=tuple(modelled.tolist()),
        true_noise=None if task.equations is None else tuple(task.equations.noise),
        bound_source=prior.bound_source,
        first_step_cost=first_step_cost(task),
        robust_margin=_robust_margin(task),
    )


_robust_margin = lru_cache(maxsize=4)(prior_margin)


def _margin(task: Task) -> float | None:
    """Delta, if it can be computed and there is one."""
    margin = _robust_margin(task)
    return margin if margin is not None and margin > 0 else None


MOST_OUTPUTS = 12
"""Outputs beyond which the 2^d_x corners of the set of next states are too many."""


def first_step_cost(task: Task, actions: int = 256) -> float | None:
    """A lower bound on what every policy costs on the worst dynamics of F_0^B, from its first step; None: not known.

    min_a max_s c(x_0, a, mu(x_0, a) + s B sqrt(k)) for the first cost, over a dense set of actions and all signs s of
    the outputs, plus the least cost of all further steps if costs are summed. The noise is left out. Not known where
    episodes do not all begin at one state.
    """
    prior, signals, start = task.prior.gp, task.signals, task.fixed_start
    if prior is None or prior.bound is None or signals is None or start is None or task.state_size > MOST_OUTPUTS:
        return None
    bound, cost = prior.bound, task.costs[0]
    x = jnp.asarray(start, EXACT)
    unit = qmc.Sobol(task.action_size, rng=0).random_base2(int(np.log2(actions)))
    low, high = np.asarray(task.action_low), np.asarray(task.action_high)
    signs = jnp.asarray(list(itertools.product((-1.0, 1.0), repeat=task.state_size)), x.dtype)

    def worst(a: jax.Array) -> jax.Array:
        z = jnp.concatenate([x, a])
        deviation = jnp.stack([jnp.sqrt(kernel(z, z)) for kernel in _kernels(prior)]).astype(x.dtype)
        reach = bound * jnp.asarray(prior.scale, x.dtype) * deviation
        return jnp.max(jax.vmap(lambda s: signals.costs(x, a, prior.mean(x, a) + s * reach)[0])(signs))

    first = float(jnp.min(jax.jit(jax.vmap(worst))(jnp.asarray(low + (high - low) * unit, x.dtype))))
    return first if cost.aggregation == "statewise" else first + (task.horizon - 1) * cost.limits[0]
