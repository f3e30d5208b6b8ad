"""What a policy costs at worst, on any dynamics that the prior allows (assumption prior_knowledge of the paper)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax import EXACT
from ..errors import UserError
from ..kernels import Kernel
from ..policies import Parameters
from ..problem import at_many
from ..task import Task
from ..types import Scalar
from .returns import Quadrature, expectation

__all__ = ["prior_margin", "worst_costs"]

PULLS = 21
"""How many deviations between -B sqrt(k) and B sqrt(k) the adversary may choose from; the ends are among them."""


def prior_margin(task: Task) -> float:
    """Delta = d - min over pi of max over F_0^B of J_c(pi, f), for a task with a class of policies on a line."""
    if task.policies is None or task.prior.bound is None:
        raise UserError(f"{task.name} has no class of policies, or no bound B: its margin cannot be computed.")
    rule = expectation(task)
    if not isinstance(rule, Quadrature):
        raise UserError(f"the margin of {task.name} can be computed only where costs are found by quadrature.")
    return task.budget - float(jnp.min(worst_costs(task, rule, task.policies.lattice())))


@eqx.filter_jit
def worst_costs(task: Task, rule: Quadrature, thetas: Float[Array, "P k"]) -> Float[Array, " P"]:
    """V_t(x) = max over |e| <= B sqrt(k(z, z)) of E[c + V_{t+1}(mu(z) + e + w)], z = (x, pi(x)), at the initial state.

    Where costs and V are monotone in x the worst e is an end of the interval, and the maximum is exact.
    """
    kernel, policies, bound = task.prior.kernel, task.policies, task.prior.bound
    assert isinstance(kernel, Kernel)
    assert policies is not None
    assert bound is not None
    nodes = rule.nodes[None, :]

    def one(theta: Parameters) -> Scalar:
        a = jax.vmap(lambda x: policies(theta.astype(x.dtype), x), in_axes=-1, out_axes=-1)(nodes)
        z = jnp.concatenate([nodes, a]).T.astype(EXACT)
        width = (task.prior.scale[0] * bound * jnp.sqrt(jax.vmap(lambda z: kernel(z, z))(z))).astype(nodes.dtype)
        mean = at_many(task.prior.mean)(nodes, a)[0]
        pulls = jnp.linspace(-1, 1, PULLS, dtype=nodes.dtype)
        matrices = jax.vmap(lambda e: rule.transitions(mean + e * width))(pulls)
        cost = rule.table(task.cost, a)
        value = jnp.zeros_like(rule.nodes)
        for _ in range(rule.horizon):
            value = jnp.max(jnp.sum(matrices * (cost + value[None, :])[None], axis=2), axis=0)
        return jnp.sum(rule.start * value)

    return jax.lax.map(one, thetas)
