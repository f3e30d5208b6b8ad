"""The paper's assumptions, one by one: what is given, what can be checked, what fails."""

import itertools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

from ..errors import UserError
from ..kernels import Kernel, Matern, On, Scaled, Sum
from ..task import Task
from .features import expandable
from .setting import Setting

__all__ = ["Assumption", "assumptions", "first_step_cost"]

Standing = Literal["given", "checked", "violated", "not checkable"]


class Assumption(NamedTuple):
    """One assumption, by the paper's label."""

    label: str
    standing: Standing
    why: str


def assumptions(setting: Setting, task: Task | None = None) -> tuple[Assumption, ...]:
    """All five. Without a task, what the user states is taken as given."""
    return (
        Assumption("process_noise", *_process_noise(setting, task)),
        Assumption("rkhs", *_rkhs(setting, task)),
        Assumption("prior_knowledge", *_prior_knowledge(setting, task)),
        Assumption("continuity_sigma", *_continuity(setting)),
        Assumption("information_gain", *_worst([_growth(kernel) for kernel in setting.kernels])),
    )


Verdict = tuple[Standing, str]


def _process_noise(setting: Setting, task: Task | None) -> Verdict:
    if task is None:
        return "given", f"the noise is taken to be Gaussian with sigma_w = {setting.noise:g} in every output."
    true, modelled = np.asarray(task.process_noise), np.asarray(task.prior.noise) * np.asarray(task.prior.scale)
    if np.allclose(true, modelled, rtol=1e-6):
        return "given", "the model's noise is that of the true system."
    if not true.any():
        return "violated", "the true system is free of noise; the bound on costs needs Gaussian noise of size sigma_w."
    return "violated", f"the true noise is {_list(true)}, and the model says {_list(modelled)}."


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{v:.3g}" for v in values)


def _rkhs(setting: Setting, task: Task | None) -> Verdict:
    source = "as stated" if task is None else task.prior.bound_source
    if setting.bound is None:
        return "not checkable", f"no bound B on the norm of the mismatch is known ({source})."
    return "given", f"B = {setting.bound:g}; {source}."


def _prior_knowledge(setting: Setting, task: Task | None) -> Verdict:
    if setting.bound is None:
        return "not checkable", "without B the set of dynamics that must all be safe is not known."
    if task is not None and (cost := first_step_cost(task)) is not None and cost > task.budget:
        return (
            "violated",
            f"no policy is safe on all dynamics within B sqrt(k) of the prior mean: whatever the first action, one of "
            f"them costs {cost:.3g} or more, and the budget is {task.budget:g}.",
        )
    if task is not None and task.margin is not None:
        if setting.margin is None:
            return "violated", "no policy keeps below the budget on all of F_0^B, as robust dynamic programming shows."
        return (
            "checked",
            f"some policy keeps Delta = {setting.margin:.3g} below the budget on all of F_0^B, as robust dynamic "
            "programming shows.",
        )
    if setting.margin is not None:
        return "given", f"some policy is taken to keep Delta = {setting.margin:g} below the budget on all of F_0^B."
    return "not checkable", "whether some policy is safe on all of F_0^B was not checked, and its margin is not known."


MOST_OUTPUTS = 12


def first_step_cost(task: Task, actions: int = 256) -> float | None:
    """A lower bound on what every policy costs on the worst dynamics of F_0^B, from its first step; None: not known.

    min_a max_s c(x_0, a, mu(x_0, a) + s B sqrt(k)), over a dense set of actions and all signs s of the outputs, plus
    the least cost of all further steps if costs are summed. The noise is left out.
    """
    prior, bound = task.prior, task.prior.bound
    if bound is None or task.state_size > MOST_OUTPUTS:
        return None
    x = task.reset(jax.random.key(0))
    unit = qmc.Sobol(task.action_size, rng=0).random_base2(int(np.log2(actions)))
    low, high = np.asarray(task.action_low), np.asarray(task.action_high)
    signs = jnp.asarray(list(itertools.product((-1.0, 1.0), repeat=task.state_size)), x.dtype)
    kernels = prior.kernel if isinstance(prior.kernel, tuple) else (prior.kernel,) * task.state_size

    def worst(a: jax.Array) -> jax.Array:
        z = jnp.concatenate([x, a])
        deviation = jnp.stack([jnp.sqrt(kernel(z, z)) for kernel in kernels]).astype(x.dtype)
        reach = bound * jnp.asarray(prior.scale, x.dtype) * deviation
        return jnp.max(jax.vmap(lambda s: task.cost(x, a, prior.mean(x, a) + s * reach))(signs))

    first = float(jnp.min(jax.jit(jax.vmap(worst))(jnp.asarray(low + (high - low) * unit, x.dtype))))
    return first if task.aggregation == "statewise" else first + (task.horizon - 1) * task.cost_limits[0]


def _continuity(setting: Setting) -> Verdict:
    try:
        steepest = setting.steepest
    except UserError as error:
        return "not checkable", str(error)
    return "given", f"the kernel has L_k = {steepest:.3g}; that the prior mean is Lipschitz, too, is taken as given."


def _growth(kernel: Kernel) -> Verdict:
    """Whether gamma_N^3 = o(N), from the known rates (Vakili 2021)."""
    match kernel:
        case Scaled() | On():
            return _growth(kernel.kernel)
        case Matern():
            return _matern_growth(kernel)
        case Sum() if not expandable(kernel):
            return _worst([_growth(kernel.left), _growth(kernel.right)])
    if kernel.rank is not None:
        return "checked", f"the rank is {kernel.rank}, so gamma_N grows as ln N."
    if expandable(kernel):
        return "checked", f"{kernel.describe()}: gamma_N grows as a power of ln N."
    return "not checkable", f"the rate of {kernel.describe()} is not known."


def _matern_growth(kernel: Matern) -> Verdict:
    d, nu = len(kernel.lengthscales), kernel.nu
    rate = f"Matern: gamma_N grows as N^{d / (2 * nu + d):.2g} up to logarithms"
    if nu > d:
        return "checked", f"{rate}, and nu = {nu:g} > {d} inputs."
    return "violated", f"{rate}; gamma_N^3 = o(N) needs nu > {d}, the number of inputs, and nu = {nu:g}."


WORST: tuple[Standing, ...] = ("violated", "not checkable", "given", "checked")


def _worst(verdicts: list[Verdict]) -> Verdict:
    return min(verdicts, key=lambda verdict: WORST.index(verdict[0]))
