"""The settings of a Gaussian-process belief, which make the belief of a task and say what it does not prove."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import UserError
from ..model import Signals
from ..prior import GPPrior
from ..task import Task
from ..types import PRNGKey
from .checks import check_points
from .choices import SAMPLERS, GPChoices
from .gp import GPBelief
from .uncertainty import largest_uncertainty
from .weights import WeightBelief

__all__ = ["GPSettings"]


@dataclass(frozen=True)
class GPSettings(GPChoices):
    """An exact Gaussian process around the prior mean: what samples are, what is called uncertain, how sure it is."""

    name: ClassVar[str] = "gp"
    calibrated: ClassVar[bool] = True

    def create(self, task: Task, episodes: int, key: PRNGKey) -> GPBelief | WeightBelief:
        """The belief before the first of so many episodes, which knows the offline data of the task's prior.

        A belief of weights where it fits; else the belief of all points, which refuses more than it can hold. Nothing
        in it is random, so the key is not used.
        """
        prior, signals, data = _known_prior(task), _known_signals(task), task.prior.data
        _check_mean(task, prior)
        belief: GPBelief | WeightBelief
        if WeightBelief.fits(prior, self):
            belief = WeightBelief.create(prior, task.input_size, episodes, self, signals=signals, chunk=task.horizon)
        else:
            offline = 0 if data is None else len(data.actions)
            check_points(task.horizon, episodes, offline)
            points = task.horizon * episodes + offline
            belief = GPBelief.create(
                prior, task.input_size, points, episodes, self, signals=signals, chunk=task.horizon
            )
        return belief if data is None else belief.condition_on(data)

    def largest_uncertainty(self, task: Task) -> float:
        """sup_z s_0(z): what no step can exceed, however little is known."""
        limits = (math.inf,) * task.input_size if task.limits is None else task.limits.inputs
        return largest_uncertainty(_known_prior(task), limits, self.uncertainty)

    def describe(self, task: Task) -> dict[str, Any]:
        """Model and samples, for the certificate."""
        prior = _known_prior(task)
        return {
            "rkhs_bound_source": prior.bound_source,
            "scale": list(prior.scale),
            "kernel": prior.describe_kernel(),
            "hyper_parameters": "fitted to the data, which voids the guarantee" if self.fitted else "fixed",
            "samples": SAMPLERS[self.sampler],
        }

    def against_safety(self, task: Task) -> Iterator[str]:
        """Why the safety theorem does not apply to runs with this belief, one sentence each; none if it may."""
        prior = _known_prior(task)
        if self.sampler != "truncated":
            yield f"samples are {SAMPLERS[self.sampler]}; the theorem is about functions of the prior."
        if any(kernel.rank is None for kernel in prior.kernels):
            drawn = prior.describe_kernel()
            yield f"draws of {drawn} by Fourier features are not exactly those of the Gaussian process."
        if self.fitted:
            yield "kernel and noise are fitted to the data."
        if self.convention == "paper" and np.min(prior.noise) < 1:
            yield "the paper's confidence width is too narrow for sigma_w < 1."


def _check_mean(task: Task, prior: GPPrior) -> None:
    """Refuses a prior mean that is not a state where episodes begin."""
    x, a = task.start(jax.random.key(0)), jnp.asarray(task.middle_action)
    try:
        y = np.asarray(jax.jit(prior.mean)(x, a))  # compiled once, however often a belief is made
    except Exception as error:
        raise UserError(f"the prior's mean fails where episodes of {task.name} begin: {error}.") from error
    if y.shape != (task.state_size,) or not np.all(np.isfinite(y)):
        raise UserError(
            f"the prior's mean of {task.name} is {y.tolist()} where episodes begin; it must be {task.state_size} "
            "finite numbers."
        )


def _known_prior(task: Task) -> GPPrior:
    if task.prior.gp is None:
        raise UserError(
            f"belief=gp needs a prior with mean, scale, kernel and noise, and the prior '{task.prior.name}' of "
            f"{task.name} has none; choose another prior, or another belief."
        )
    return task.prior.gp


def _known_signals(task: Task) -> Signals:
    if task.signals is None:
        raise UserError(
            f"belief=gp needs a reward and costs that are known functions, which a Gaussian process does not learn, "
            f"and {task.name} has none; give the task its signals, or choose another belief."
        )
    return task.signals
