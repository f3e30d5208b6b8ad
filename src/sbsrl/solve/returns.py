"""J_g(pi, f) = E sum_{t<T} g(x_t, a_t, x_{t+1}) of a policy over a whole episode, from the initial distribution.

Two ways to take the expectation: by quadrature, exactly, where the state is a number; and over a fixed set of noise
sequences, for any state. Both are smooth functions of the policy and of the dynamics.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import PLAN
from ..errors import UserError
from ..policies import Parameters, PolicyClass
from ..problem import Problem, at_many
from ..task import Aggregation, Task, aggregate
from ..types import Action, Dynamics, Index, PRNGKey, Scalar, State, TransitionFunction

__all__ = [
    "Quadrature",
    "Returns",
    "Scenarios",
    "expectation",
    "policy_cost",
    "policy_excess",
    "policy_returns",
    "quadrature_error",
]

Act = Callable[[State], Action]


@runtime_checkable
class Returns(Protocol):
    """How the expectation is taken."""

    def expected(
        self, dynamics: Dynamics, act: Act, gains: tuple[TransitionFunction, ...], aggregation: Aggregation = "sum"
    ) -> Float[Array, " g"]:
        """J_g for each g."""
        ...


class Quadrature(eqx.Module):
    """For states that are a number: the trapezoidal rule on equidistant nodes.

    The rule is spectrally accurate for a function times a normal density: with nodes two thirds of sigma_w apart its
    error is below 1e-9 if the function is smooth at that distance and the nodes cover where the state can be. A step is
    less smooth: the cost of the ledge is right to 3e-5. So is a kink, as truncated samples have (`quadrature_error`).
    """

    nodes: Float[Array, " G"]
    start: Float[Array, " G"]
    """The initial distribution: a probability for each node."""
    noise: float = eqx.field(static=True)
    horizon: int = eqx.field(static=True)

    @classmethod
    def create(cls, low: float, high: float, start: float, noise: float, horizon: int) -> "Quadrature":
        """Nodes over [low, high], one of which is the state that every episode begins at."""
        if not low < start < high:
            raise UserError(f"the initial state {start:g} is not between {low:g} and {high:g}.")
        step = noise / 1.5
        before, after = int((start - low) / step), int((high - start) / step)
        nodes = start + step * np.arange(-before, after + 1)
        return cls(jnp.asarray(nodes, PLAN), jnp.asarray(np.arange(len(nodes)) == before, PLAN), noise, horizon)

    def expected(
        self, dynamics: Dynamics, act: Act, gains: tuple[TransitionFunction, ...], aggregation: Aggregation = "sum"
    ) -> Float[Array, " g"]:
        if aggregation != "sum":
            raise UserError("quadrature is for summed costs; use scenarios for a bound on every step.")
        x = self.nodes[None, :]
        a = jax.vmap(act, in_axes=-1, out_axes=-1)(x)
        matrix = self.transitions(at_many(dynamics)(x, a)[0])
        visits, now = self.start, self.start
        for _ in range(self.horizon - 1):
            now = jnp.sum(now[:, None] * matrix, axis=0)  # many small products at once are faster as sums
            visits = visits + now
        paths = visits[:, None] * matrix
        return jnp.stack([jnp.sum(paths * self.table(g, a)) for g in gains])

    def table(self, g: TransitionFunction, a: Float[Array, "da G"]) -> Float[Array, "G G"]:
        """g(node, action there, next node)."""
        pair = lambda x, a, y: g(x[None], a, y[None])  # noqa: E731
        return jax.vmap(jax.vmap(pair, (None, None, 0)), (0, 1, None))(self.nodes, a, self.nodes)

    def transitions(self, mean: Float[Array, " G"]) -> Float[Array, "G G"]:
        """p(node' | node). Rows are normalised: nothing is lost beyond the last node."""
        mean = jnp.clip(mean, self.nodes[0], self.nodes[-1])  # further out no node would have a density above 0
        density = jnp.exp(-0.5 * ((self.nodes[None, :] - mean[:, None]) / self.noise) ** 2)
        return density / jnp.sum(density, axis=1, keepdims=True)


class Scenarios(eqx.Module):
    """For any state: the mean over K initial states and noise sequences, the same for all policies and dynamics."""

    starts: Float[Array, "K dx"]
    noise: Float[Array, "K T dx"]

    @classmethod
    def draw(cls, task: Task, count: int, key: PRNGKey) -> "Scenarios":
        """From the task's initial distribution, with the noise that its prior assumes."""
        start_key, noise_key = jax.random.split(key)
        starts = jax.vmap(task.reset)(jax.random.split(start_key, count)).astype(PLAN)
        deviation = jnp.asarray(np.broadcast_to(task.prior.noise, (task.state_size,)) * task.prior.scale, PLAN)
        shape = (count // 2, task.horizon, task.state_size)
        half = deviation[None, None] * jax.random.normal(noise_key, shape, PLAN)
        return cls(starts[: 2 * (count // 2)], jnp.concatenate([half, -half]))  # antithetic: odd errors cancel

    def expected(
        self, dynamics: Dynamics, act: Act, gains: tuple[TransitionFunction, ...], aggregation: Aggregation = "sum"
    ) -> Float[Array, " g"]:
        many, acts = at_many(dynamics), jax.vmap(act, in_axes=-1, out_axes=-1)

        def step(x: Float[Array, "dx K"], w: Float[Array, "dx K"]) -> tuple[Float[Array, "dx K"], Float[Array, "g K"]]:
            a = acts(x)
            y = many(x, a) + w
            return y, jnp.stack([jax.vmap(g, in_axes=-1)(x, a, y) for g in gains])

        _, each = jax.lax.scan(step, self.starts.T, jnp.moveaxis(self.noise, 0, -1))
        total = jax.vmap(jax.vmap(lambda g: aggregate(g, aggregation), in_axes=-1), in_axes=1)(each)
        return jnp.mean(total, axis=1)


ERROR = 3.5e-3
"""Of T C_max: what a cost by quadrature may be off by on truncated samples, whose kinks the rule does not see.

Measured and not proven: two thirds of it are the most that was seen on the grounds of the ledge.
"""


def quadrature_error(task: Task) -> float:
    """What J_c may be off by; the tightening must cover it in addition to Delta_zeta."""
    return ERROR * task.horizon * (task.cost_limits[1] - task.cost_limits[0])


def policy_returns(
    problem: Problem, returns: Returns, policies: PolicyClass, theta: Parameters
) -> tuple[Scalar, Scalar]:
    """J_r(pi, mu_n) and J_{s_n}(pi, mu_n)."""

    def seen(x: State, a: Action, y: State) -> Scalar:
        return problem.uncertainty(x, a).astype(x.dtype)

    reward, gained = returns.expected(problem.nominal, _act(policies, theta), (problem.reward, seen))
    return jnp.where(jnp.isnan(reward), -jnp.inf, reward), jnp.where(jnp.isnan(gained), 0, gained)


def policy_cost(problem: Problem, returns: Returns, policies: PolicyClass, theta: Parameters, m: Index) -> Scalar:
    """J_c(pi, f_n^m)."""
    assert problem.samples is not None
    act = _act(policies, theta)
    return returns.expected(problem.samples.member(m), act, (problem.cost,), problem.aggregation)[0]


def policy_excess(problem: Problem, returns: Returns, policies: PolicyClass, theta: Parameters, m: Index) -> Scalar:
    """max(J_c(pi, f_n^m) - d + Delta_zeta, 0)."""
    hinge = jnp.maximum(policy_cost(problem, returns, policies, theta, m) - problem.bound, 0)
    return jnp.where(jnp.isnan(hinge), jnp.inf, hinge)


def _act(policies: PolicyClass, theta: Parameters) -> Act:
    return lambda x: policies(theta.astype(x.dtype), x)


def expectation(task: Task, count: int = 256) -> Returns:
    """The best way there is for a task: by quadrature if its state is a bounded number that always starts the same.

    Otherwise over so many scenarios, which are the same in all episodes.
    """
    low, high = -task.input_limits[0], task.input_limits[0]
    starts = np.unique([float(task.reset(jax.random.key(i))[0]) for i in range(4)])
    if task.state_size == 1 and np.isfinite(high) and len(starts) == 1 and task.aggregation == "sum":
        noise = float(np.ravel(task.prior.noise)[0]) * task.prior.scale[0]
        return Quadrature.create(low, high, float(starts[0]), noise, task.horizon)
    return Scenarios.draw(task, count, jax.random.key(0))
