"""What a policy costs at worst, on any dynamics that the prior allows (assumption prior_knowledge of the paper)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax import EXACT
from ..policies import Parameters
from ..problem import at_many
from ..task import Task
from ..types import Scalar
from .expectation import Quadrature, make_expectation

__all__ = ["prior_margin", "surely_reachable", "worst_costs"]

PULLS = 21
"""How many deviations between -B sqrt(k) and B sqrt(k) the adversary may choose from; the ends are among them."""


def prior_margin(task: Task) -> float | None:
    """Delta = d - min over pi of max over F_0^B of J_c(pi, f), pi in the task's class; None if it cannot be computed.

    It can for one known cost, summed over an episode, of a state that is a number within limits (`Quadrature`), with a
    class of policies and a Gaussian-process prior that has a bound B.
    """
    if not _computable(task):
        return None
    rule = make_expectation(task)
    if not isinstance(rule, Quadrature):
        return None
    assert task.policies is not None
    return task.costs[0].budget - float(jnp.min(worst_costs(task, rule, task.policies.lattice())))


def surely_reachable(task: Task, xi: float) -> int | None:
    """How many policies of the task's class have J_c(pi, f) <= d - xi for all f in F_0^B; None if nobody can tell.

    Whatever the truth is, they are in the class Pi_xi^{*,c} that the optimality theorem compares with.
    """
    rule = make_expectation(task) if _computable(task) else None
    if not isinstance(rule, Quadrature):
        return None
    assert task.policies is not None
    return int(jnp.sum(worst_costs(task, rule, task.policies.lattice()) <= task.costs[0].budget - xi))


def _computable(task: Task) -> bool:
    """Whether the task has all that the margin is computed from."""
    known = task.policies is not None and task.limits is not None and task.signals is not None
    bounded = task.prior.gp is not None and task.prior.gp.bound is not None
    return known and bounded and task.state_size == 1 and len(task.costs) == 1


@eqx.filter_jit
def worst_costs(task: Task, rule: Quadrature, thetas: Float[Array, "P p"]) -> Float[Array, " P"]:
    """V_t(x) = max over |e| <= B sqrt(k(z, z)) of E[c + V_{t+1}(mu(z) + e + w)], z = (x, pi(x)), at the initial state.

    Where costs and V are monotone in x the worst e is an end of the interval, and the maximum is exact.
    """
    prior, policies, signals = task.prior.gp, task.policies, task.signals
    assert prior is not None
    assert prior.bound is not None
    assert policies is not None
    assert signals is not None
    (kernel,), reach = prior.kernels, prior.scale[0] * prior.bound
    nodes = rule.nodes[None, :]

    def one(theta: Parameters) -> Scalar:
        a = jax.vmap(lambda x: policies(theta.astype(x.dtype), x), in_axes=-1, out_axes=-1)(nodes)
        z = jnp.concatenate([nodes, a]).T.astype(EXACT)
        width = (reach * jnp.sqrt(jax.vmap(lambda z: kernel(z, z))(z))).astype(nodes.dtype)
        mean = at_many(prior.mean)(nodes, a)[0]
        pulls = jnp.linspace(-1, 1, PULLS, dtype=nodes.dtype)
        matrices = jax.vmap(lambda e: rule.transitions(mean + e * width))(pulls)
        cost = rule.table(lambda x, a, y: signals.costs(x, a, y)[0], a)
        value = jnp.zeros_like(rule.nodes)
        for _ in range(rule.horizon):
            value = jnp.max(jnp.sum(matrices * (cost + value[None, :])[None], axis=2), axis=0)
        return jnp.sum(rule.start * value)

    return jax.lax.map(one, thetas)
