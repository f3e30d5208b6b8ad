"""J_g(pi, f) = E sum_{t<T} g(x_t, a_t, x_{t+1}) of a policy over a whole episode, from the initial distribution.

Two ways to take the expectation: by quadrature, exactly, where the state is a number; and over a fixed set of noise
sequences, for any state. Both are smooth functions of the policy and of the dynamics.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from jaxtyping import Array, Float

from .._jax import PLAN
from ..costs import Aggregation, aggregate
from ..errors import UserError
from ..model import Model
from ..policies import Parameters, PolicyClass
from ..problem import Excess, Problem, at_many, check_costs, over_costs
from ..task import Task
from ..types import Action, Index, PRNGKey, Scalar, State, TransitionFunction

__all__ = [
    "Expectation",
    "Off",
    "Quadrature",
    "Scenarios",
    "make_expectation",
    "measured_error",
    "policy_costs",
    "policy_excess",
    "policy_returns",
    "quadrature_error",
]

Act = Callable[[State], Action]


@runtime_checkable
class Expectation(Protocol):
    """How the expectation is taken."""

    def expected(
        self,
        model: Model,
        act: Act,
        gains: tuple[TransitionFunction, ...],
        aggregations: tuple[Aggregation, ...] | None = None,
    ) -> Float[Array, " g"]:
        """J_g for each g, aggregated as said; None sums all of them."""
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
        self,
        model: Model,
        act: Act,
        gains: tuple[TransitionFunction, ...],
        aggregations: tuple[Aggregation, ...] | None = None,
    ) -> Float[Array, " g"]:
        if set(aggregations or ()) - {"sum"}:
            raise UserError("quadrature is for summed costs; use scenarios for a bound on every step.")
        if model.stochastic:
            raise UserError("quadrature is for models that are functions; use scenarios for one that draws.")
        a, mean = self._decided(model, act)
        matrix = self.transitions(mean)
        paths = self._visits(matrix)[:, None] * matrix
        return jnp.stack([jnp.sum(paths * self.table(g, a)) for g in gains])

    def leaving(self, model: Model, act: Act) -> Scalar:
        """How many steps of an episode are expected to lead beyond the nodes: at least the probability that one does.

        sum_t E[ P(f(x_t) + w outside of the nodes) ]. What happens out there no node says.
        """
        _, mean = self._decided(model, act)
        sides = jnp.stack([mean - self.nodes[0], self.nodes[-1] - mean]) / self.noise
        beyond = jnp.sum(0.5 * erfc(sides / np.float32(np.sqrt(2))), axis=0)
        return jnp.sum(self._visits(self.transitions(mean)) * beyond)

    def finer(self, times: int) -> "Quadrature":
        """The same with so many nodes for every one."""
        count = (len(self.nodes) - 1) * times + 1
        start = jnp.zeros(count, self.start.dtype).at[::times].set(self.start)
        return eqx.tree_at(
            lambda rule: (rule.nodes, rule.start),
            self,
            (jnp.linspace(self.nodes[0], self.nodes[-1], count, dtype=self.nodes.dtype), start),
        )

    def _decided(self, model: Model, act: Act) -> tuple[Float[Array, "da G"], Float[Array, " G"]]:
        """The action at every node, and where it leads without noise."""
        x = self.nodes[None, :]
        a = jax.vmap(act, in_axes=-1, out_axes=-1)(x)
        return a, at_many(model)(x, a)[0]

    def _visits(self, matrix: Float[Array, "G G"]) -> Float[Array, " G"]:
        """How often every node is expected to be visited in an episode."""
        visits, now = self.start, self.start
        for _ in range(self.horizon - 1):
            now = jnp.sum(now[:, None] * matrix, axis=0)  # many small products at once are faster as sums
            visits = visits + now
        return visits

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
    key: PRNGKey
    """Of the noise of models that draw their next state; `noise` is for those that are functions."""

    @classmethod
    def draw(cls, task: Task, count: int, key: PRNGKey) -> "Scenarios":
        """From the task's initial distribution, with the noise that its prior assumes."""
        start_key, noise_key = jax.random.split(key)
        starts = jax.vmap(task.start)(jax.random.split(start_key, count)).astype(PLAN)
        deviation = jnp.asarray(_assumed_noise(task), PLAN)
        shape = (count // 2, task.horizon, task.state_size)
        half = deviation[None, None] * jax.random.normal(noise_key, shape, PLAN)
        noise = jnp.concatenate([half, -half])  # antithetic: odd errors cancel
        return cls(starts[: 2 * (count // 2)], noise, jax.random.fold_in(key, 2))

    def expected(
        self,
        model: Model,
        act: Act,
        gains: tuple[TransitionFunction, ...],
        aggregations: tuple[Aggregation, ...] | None = None,
    ) -> Float[Array, " g"]:
        acts = jax.vmap(act, in_axes=-1, out_axes=-1)

        def step(
            x: Float[Array, "dx K"], now: tuple[Float[Array, "dx K"], PRNGKey]
        ) -> tuple[Float[Array, "dx K"], Float[Array, "g K"]]:
            a = acts(x)
            y = self._next(model, x, a, *now)
            return y, jnp.stack([jax.vmap(g, in_axes=-1)(x, a, y) for g in gains])

        keys = jax.random.split(self.key, self.noise.shape[1])
        _, each = jax.lax.scan(step, self.starts.T, (jnp.moveaxis(self.noise, 0, -1), keys))  # [T, g, K]
        how = aggregations or ("sum",) * len(gains)
        total = [jax.vmap(lambda c, h=h: aggregate(c, h), in_axes=-1)(each[:, i]) for i, h in enumerate(how)]
        return jnp.mean(jnp.stack(total), axis=1)

    def _next(
        self, model: Model, x: Float[Array, "dx K"], a: Float[Array, "da K"], w: Float[Array, "dx K"], key: PRNGKey
    ) -> Float[Array, "dx K"]:
        """A function with the noise of the scenario, or a draw of a model that has noise of its own."""
        if not model.stochastic:
            return at_many(model)(x, a) + w
        draws = jax.vmap(model.draw, in_axes=(-1, -1, 0), out_axes=-1)
        return draws(x, a, jax.random.split(key, x.shape[1]))


ERROR = 3.5e-3
"""Of T C_max: what is set aside for what a cost by quadrature may be off by.

Truncated samples have kinks that the rule does not see: two thirds of this are the most that was seen on the grounds of
the ledge. What it is for the policy of an episode is measured (`measured_error`), and held against this.
"""


def quadrature_error(task: Task) -> float:
    """What the tightening must cover in addition to Delta_zeta: no more than this may J_c be off by."""
    return ERROR * max(cost.spread(task.horizon) for cost in task.costs)


MEASURED = 32
"""Samples on which the error is measured: those on which the policy costs most, which decide about it."""
FINER = (2, 3)
SPARE = 3 / 2
"""A cost that jumps is integrated as if it jumped in the middle between two nodes. Wherever it jumps, the error of that
is at most 3/2 of the larger of the differences to what rules with two and with three nodes for one find."""


class Off(NamedTuple):
    """What the J_c of a policy may be off by, on the samples that decide about it."""

    quadrature: Scalar
    """3/2 of the largest difference to rules with two and three nodes for one. Measured, not proven."""
    leaving: Scalar
    """The largest expected number of steps beyond the nodes."""


@eqx.filter_jit
def measured_error(
    problem: Problem, rule: Quadrature, policies: PolicyClass, theta: Parameters, costs: Float[Array, " C"]
) -> Off:
    """Of a policy with these costs, one for each safety constraint: the largest over those that are dearest."""
    members = jax.lax.top_k(costs, min(MEASURED, len(costs)))[1].astype(jnp.int32)

    def one(m: Index) -> Off:
        coarse = policy_costs(problem, rule, policies, theta, m)
        fine = jnp.stack([policy_costs(problem, rule.finer(n), policies, theta, m) for n in FINER])
        return Off(SPARE * jnp.max(jnp.abs(fine - coarse[None])), _leaving(problem, rule, policies, theta, m))

    each = jax.lax.map(one, members)
    return Off(jnp.max(each.quadrature), jnp.max(each.leaving))


def _leaving(problem: Problem, rule: Quadrature, policies: PolicyClass, theta: Parameters, m: Index) -> Scalar:
    """On sample m, or the most on any sample where the constraint is on their mean."""
    assert problem.samples is not None
    samples, act = problem.samples, _act(policies, theta)
    if problem.constraint == "each":
        return rule.leaving(samples.member(m), act)
    every = jnp.arange(len(samples), dtype=jnp.int32)
    return jnp.max(jax.lax.map(lambda m: rule.leaving(samples.member(m), act), every))


def _assumed_noise(task: Task) -> Float[np.ndarray, " dx"]:
    """The process noise that the prior assumes, in units of the state; none where there is no such prior."""
    gp = task.prior.gp
    if gp is None:
        return np.zeros(task.state_size)
    return np.broadcast_to(gp.noise, (task.state_size,)) * np.asarray(gp.scale)


def policy_returns(
    problem: Problem, expectation: Expectation, policies: PolicyClass, theta: Parameters
) -> tuple[Scalar, Scalar]:
    """J_r(pi, mu_n) and J_{s_n}(pi, mu_n)."""

    def seen(x: State, a: Action, y: State) -> Scalar:
        return problem.uncertainty(x, a).astype(x.dtype)

    reward, gained = expectation.expected(problem.nominal, _act(policies, theta), (problem.reward, seen))
    return jnp.where(jnp.isnan(reward), -jnp.inf, reward), jnp.where(jnp.isnan(gained), 0, gained)


def policy_costs(
    problem: Problem, expectation: Expectation, policies: PolicyClass, theta: Parameters, m: Index
) -> Float[Array, " k"]:
    """Every J_c(pi, f_n^m) of safety constraint m: on sample m, or the mean over all samples."""
    assert problem.samples is not None
    samples, act = problem.samples, _act(policies, theta)

    def on_sample(m: Index) -> Float[Array, " k"]:
        model = samples.member(m)
        check_costs(_cost_count(model, act, problem), problem)
        gains = tuple(lambda x, a, y, i=i: model.costs(x, a, y)[i] for i in range(len(problem.aggregations)))
        return expectation.expected(model, act, gains, problem.aggregations)

    if problem.constraint == "each":
        return on_sample(m)
    return jnp.mean(jax.lax.map(on_sample, jnp.arange(len(samples), dtype=jnp.int32)), axis=0)


def _cost_count(model: Model, act: Act, problem: Problem) -> int:
    """How many costs a model has."""
    x = problem.starts[0].astype(PLAN)
    return jax.eval_shape(lambda x: model.costs(x, act(x), x), x).shape[0]


def policy_excess(
    problem: Problem, expectation: Expectation, policies: PolicyClass, theta: Parameters, m: Index
) -> Excess:
    """By how much a policy exceeds the bounds of safety constraint m."""
    return over_costs(policy_costs(problem, expectation, policies, theta, m) - problem.bounds)


def _act(policies: PolicyClass, theta: Parameters) -> Act:
    return lambda x: policies(theta.astype(x.dtype), x)


def make_expectation(task: Task, count: int = 256) -> Expectation:
    """The best way there is for a task: by quadrature if its state is a bounded number that always starts the same.

    Otherwise over so many scenarios, which are the same in all episodes.
    """
    high = np.inf if task.limits is None else task.limits.inputs[0]
    start, sums = task.fixed_start, all(cost.aggregation == "sum" for cost in task.costs)
    if task.state_size == 1 and np.isfinite(high) and start and sums and task.prior.gp is not None:
        return Quadrature.create(-high, high, start[0], float(_assumed_noise(task)[0]), task.horizon)
    return Scenarios.draw(task, count, jax.random.key(0))
