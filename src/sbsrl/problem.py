"""Problem (1) of the paper (label pb:1), and the value that appendix F gives to a sequence of actions.

    maximise  J_r(pi, mu_n)
    subject to  J_c(pi, f_n^m) <= d - Delta_zeta   for every m = 1 .. M       (safety)
                J_{s_n}(pi, mu_n) >= d_sigma^n                                (exploration)

With several costs, safety is demanded for each. With fixed penalties:

    J_r(mu_n) - lambda_c sum_m max(J_c(f_n^m) - d + Delta_zeta, 0) - lambda_sigma max(d_sigma^n - J_s(mu_n), 0)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .belief.protocol import Samples, Uncertainty
from .costs import Aggregation, aggregate
from .model import Model
from .types import Action, Actions, Dynamics, Flag, Index, PRNGKey, Scalar, State, States, TransitionFunction

__all__ = [
    "Bonus",
    "Candidates",
    "Constraint",
    "Curiosity",
    "Evaluation",
    "Excess",
    "Only",
    "Penalties",
    "Problem",
    "SwitchRule",
    "Trajectories",
    "excess",
    "explored",
    "feasible",
    "information",
    "nominal_return",
    "nominal_returns",
    "over_costs",
    "path_costs",
    "penalised",
    "penalties",
    "rollout",
    "rollouts",
    "surplus",
    "surplus_of",
]

Constraint = Literal["each", "mean"]
"""Whether the budget bounds the cost on every sample, or its mean over the samples."""


@dataclass(frozen=True)
class Penalties:
    """The fixed weights of appendix F."""

    cost: float
    """lambda_c."""
    exploration: float
    """lambda_sigma."""
    slack: float = 0.0
    """By how much more the end of a plan is to stay below the bound, growing linearly from its beginning.

    A plan that just meets the bound at its end leaves the plan of the next step, which looks one step further, no room.
    Slack is paid for in the value and does not decide about feasibility. Appendix F has none.
    """


class Only(eqx.Module):
    """A set of samples with a single member: safety on the nominal model, or on none but the true one."""

    model: Model

    def __len__(self) -> int:
        return 1

    def member(self, m: Index) -> Model:
        return self.model


class SwitchRule(NamedTuple):
    """When episodes go over to the prior policy (SOOPER): where what was charged and its cost-to-go reach a budget."""

    budgets: Float[Array, " k"]
    pessimism: Float[Array, " k"]
    """What a unit of uncertainty adds to each cost."""
    optimism: Scalar
    """What a unit of uncertainty adds to the reward, until an episode goes over."""
    planned: bool
    """Whether plans know of it: then it is for good. If not, only the true system is asked, anew at every step."""


class Problem(eqx.Module):
    """What is to be solved before an episode: an objective and two constraints."""

    objective: TransitionFunction | None
    """What a method maximises in the place of the nominal model's reward; None: that reward."""
    nominal: Model
    """mu_n: the objective and the exploration constraint are evaluated on it."""
    samples: Samples | None
    """f_n^1 .. f_n^M: safety is demanded on each; None demands nothing."""
    bounds: Float[Array, " k"]
    """d - Delta_zeta of each cost."""
    aggregations: tuple[Aggregation, ...] = eqx.field(static=True)
    """How each cost of an episode is formed from its steps."""
    uncertainty: Uncertainty
    """s_n."""
    threshold: Scalar
    """d_sigma^n; 0 demands nothing."""
    steps: Index
    """How many steps gather information, and add to costs that are summed: the episode ends after them."""
    exploring: Flag
    """Whether the method asks for exploration, by the threshold or by its objective."""
    starts: Float[Array, "K dx"]
    """Initial states: draws from rho_0, as far as it is known."""
    key: PRNGKey
    """Of the noise of samples that draw their next state."""
    constraint: Constraint = eqx.field(static=True, default="each")
    switch: SwitchRule | None = None
    """If not None, episodes go over to the prior policy in time; only solvers that make one can be asked so."""

    def demanding(self, threshold: Scalar, steps: int | Index) -> "Problem":
        """The same problem, with so much information to be gathered in so many steps."""
        fields = lambda problem: (problem.threshold, problem.steps)  # noqa: E731
        return eqx.tree_at(fields, self, (threshold, jnp.asarray(steps, jnp.int32)))

    def bounded(self, bounds: Float[Array, " k"]) -> "Problem":
        """The same problem with other bounds on the costs."""
        return eqx.tree_at(lambda problem: problem.bounds, self, bounds)

    def with_noise(self, key: PRNGKey) -> "Problem":
        """The same problem, with other noise of samples that draw: a plan must not fit the noise of the one before."""
        return eqx.tree_at(lambda problem: problem.key, self, key)

    @property
    def reward(self) -> TransitionFunction:
        """r: what is maximised."""
        return self.nominal.reward if self.objective is None else self.objective

    @property
    def constraint_count(self) -> int:
        """How many safety constraints there are: M, or one for their mean."""
        if self.samples is None:
            return 0
        return 1 if self.constraint == "mean" else len(self.samples)


Candidates = Float[Array, "H da C"]
"""Sequences of actions."""

Trajectories = Float[Array, "H1 dx C"]


class Evaluation(NamedTuple):
    """What is known of a sequence of actions, or, with a leading axis, of many."""

    value: Float[Array, "..."]
    """The penalised objective, or -inf where it was not needed."""
    violation: Float[Array, "..."]
    """max_m max(J_c(f_n^m) - d + Delta_zeta, 0), over all costs."""
    information: Float[Array, "..."]
    """J_{s_n}(mu_n), or 0 where no exploration is demanded."""


class Excess(NamedTuple):
    """By how much a candidate, or each of many, exceeds the bounds under one safety constraint."""

    charged: Float[Array, "..."]
    """max(J_c(f) - d + Delta_zeta, 0) with the slack on top of the costs, summed over the costs: what is penalised."""
    beyond: Float[Array, "..."]
    """The same without slack, and the largest over the costs: 0 means feasible."""


def feasible(evaluation: Evaluation) -> Bool[Array, "..."]:
    """Whether the safety constraint holds on every sample."""
    return evaluation.violation <= 0


def rollout(dynamics: Dynamics, x: State, actions: Actions) -> States:
    """x_0 .. x_H under these actions."""

    def step(x: State, a: Array) -> tuple[State, State]:
        y = dynamics(x, a)
        return y, y

    _, after = jax.lax.scan(step, x, actions)
    return jnp.concatenate([x[None, :], after])


# What follows is for C candidates at once. Their axis comes last: what a step needs of all of them is then contiguous.


def at_many(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of (x, a), for columns of states and actions: its own method `many`, if it has one, is faster."""
    return getattr(function, "many", None) or jax.vmap(function, in_axes=-1, out_axes=-1)


class Curiosity(eqx.Module):
    """The uncertainty s_n as a reward."""

    uncertainty: Uncertainty

    def __call__(self, x: State, a: Action, y: State) -> Scalar:
        return self.uncertainty(x, a)

    def many(self, x: Float[Array, "dx C"], a: Float[Array, "da C"], y: Float[Array, "dx C"]) -> Float[Array, " C"]:
        """The same at C transitions, as columns."""
        return at_many(self.uncertainty)(x, a)


class Bonus(eqx.Module):
    """r + lambda s_n: the uncertainty as a bonus of the reward, with a fixed weight."""

    reward: TransitionFunction
    uncertainty: Uncertainty
    weight: Scalar
    """lambda."""

    def __call__(self, x: State, a: Action, y: State) -> Scalar:
        return self.reward(x, a, y) + self.weight * self.uncertainty(x, a)

    def many(self, x: Float[Array, "dx C"], a: Float[Array, "da C"], y: Float[Array, "dx C"]) -> Float[Array, " C"]:
        """The same at C transitions, as columns."""
        return at_many(self.reward)(x, a, y) + self.weight * at_many(self.uncertainty)(x, a)


def rollouts(dynamics: Dynamics, x: State, actions: Candidates) -> Trajectories:
    """x_0 .. x_H of every candidate."""
    many = at_many(dynamics)

    def step(x: Float[Array, "dx C"], a: Float[Array, "da C"]) -> tuple[Float[Array, "dx C"], Float[Array, "dx C"]]:
        y = many(x, a)
        return y, y

    start = jnp.broadcast_to(x[:, None], (x.shape[0], actions.shape[-1]))
    _, after = jax.lax.scan(step, start, actions)
    return jnp.concatenate([start[None], after])


def drawn_rollouts(model: Model, x: State, actions: Candidates, key: PRNGKey) -> Trajectories:
    """x_0 .. x_H of every candidate; a model that draws has the same noise for all candidates."""
    if not model.stochastic:
        return rollouts(model, x, actions)

    def step(x: Float[Array, "dx C"], now: tuple[Array, PRNGKey]) -> tuple[Float[Array, "dx C"], Float[Array, "dx C"]]:
        a, noise = now
        y = jax.vmap(lambda x, a: model.draw(x, a, noise), in_axes=-1, out_axes=-1)(x, a)
        return y, y

    start = jnp.broadcast_to(x[:, None], (x.shape[0], actions.shape[-1]))
    _, after = jax.lax.scan(step, start, (actions, jax.random.split(key, len(actions))))
    return jnp.concatenate([start[None], after])


def along(g: TransitionFunction, states: Trajectories, actions: Candidates) -> Float[Array, "H C"]:
    """g at every step of every candidate, all at once if it can be asked for many."""
    if many := getattr(g, "many", None):
        columns: Float[Array, " HC"] = many(*(side_by_side(part) for part in (states[:-1], actions, states[1:])))
        return columns.reshape(actions.shape[0], actions.shape[-1])
    return jax.vmap(jax.vmap(g, in_axes=-1))(states[:-1], actions, states[1:])


def nominal_return(problem: Problem, states: Trajectories, actions: Candidates) -> Float[Array, " C"]:
    """J_r(mu_n) along the nominal trajectories."""
    return jnp.sum(along(problem.reward, states, actions), axis=0)


def nominal_returns(problem: Problem, x: State, actions: Candidates) -> tuple[Float[Array, " C"], Trajectories]:
    """J_r(mu_n), which bounds the value from above since penalties only lower it, and the nominal trajectories."""
    states = rollouts(problem.nominal, x, actions)
    reward = nominal_return(problem, states, actions)
    return jnp.where(jnp.isnan(reward), -jnp.inf, reward), states


def side_by_side(parts: Float[Array, "H d C"]) -> Float[Array, "d HC"]:
    """All steps of all candidates as columns."""
    return jnp.moveaxis(parts, 1, 0).reshape(parts.shape[1], -1)


def information(problem: Problem, states: Trajectories, actions: Candidates) -> Float[Array, " C"]:
    """J_{s_n}(mu_n): what the nominal trajectories would teach."""
    steps, _, count = actions.shape
    gained = at_many(problem.uncertainty)(side_by_side(states[:-1]), side_by_side(actions)).reshape(steps, count)
    gained = jnp.where(jnp.isnan(gained), 0, gained)  # what is not a number teaches nothing
    return jnp.sum(jnp.where((jnp.arange(steps, dtype=jnp.int32) < problem.steps)[:, None], gained, 0), axis=0)


Rollout = Callable[[Model, PRNGKey], Trajectories]
"""How the trajectories of a model are computed; the key is of its noise."""


def excess(problem: Problem, m: Index, x: State, actions: Candidates, slack: float = 0.0) -> Excess:
    """By how much the candidates exceed the bounds of safety constraint m: on sample m, or on the mean of all."""

    def roll(model: Model, key: PRNGKey) -> Trajectories:
        return drawn_rollouts(model, x, actions, key)

    exact = over_costs(surplus(problem, m, roll, actions))
    if not slack:
        return exact
    return exact._replace(charged=over_costs(surplus(problem, m, roll, actions, slack)).charged)


def over_costs(surplus: Float[Array, "k *C"]) -> Excess:
    """What is charged is the sum of the hinges of all costs; what decides about feasibility is the largest."""
    hinge = jnp.maximum(surplus, 0)
    hinge = jnp.where(jnp.isnan(hinge), jnp.inf, hinge)  # a trajectory that is not a number is not safe
    return Excess(jnp.sum(hinge, axis=0), jnp.max(hinge, axis=0))


def surplus(problem: Problem, m: Index, roll: Rollout, actions: Candidates, slack: float = 0.0) -> Float[Array, "k C"]:
    """J_c - d + Delta_zeta of each cost under safety constraint m, with a slack that grows along the trajectories."""
    return surplus_of(problem, m, lambda model, key: path_costs(problem, model, roll(model, key), actions, slack))


def surplus_of(
    problem: Problem, m: Index, costs_on: Callable[[Model, PRNGKey], Float[Array, "k C"]]
) -> Float[Array, "k C"]:
    """J_c - d + Delta_zeta of each cost under safety constraint m, where `costs_on` gives J_c on a model."""
    assert problem.samples is not None
    samples = problem.samples

    def cost(m: Index) -> Float[Array, "k C"]:
        return costs_on(samples.member(m), jax.random.fold_in(problem.key, m))

    if problem.constraint == "each":
        return cost(m) - problem.bounds[:, None]
    each = jax.lax.map(cost, jnp.arange(len(samples), dtype=jnp.int32))
    return jnp.mean(each, axis=0) - problem.bounds[:, None]


def path_costs(
    problem: Problem, model: Model, states: Trajectories, actions: Candidates, slack: float = 0.0
) -> Float[Array, "k C"]:
    """Every cost of every trajectory, aggregated."""
    costs = jax.vmap(jax.vmap(model.costs, in_axes=-1, out_axes=-1))(states[:-1], actions, states[1:])  # [H, k, C]
    check_costs(costs.shape[1], problem)
    if slack:
        costs += jnp.linspace(0, slack, costs.shape[0], dtype=costs.dtype)[:, None, None]
    charged = (jnp.arange(len(costs), dtype=jnp.int32) < problem.steps)[:, None]  # beyond the end nothing is summed
    over_time = [
        jax.vmap(lambda c, how=how: aggregate(c, how), in_axes=-1)(
            jnp.where(charged, costs[:, i], 0) if how == "sum" else costs[:, i]
        )
        for i, how in enumerate(problem.aggregations)
    ]
    return jnp.stack(over_time)


def check_costs(given: int, problem: Problem) -> None:
    """Refuses a model with another number of costs than the problem has: JAX would silently take one for another."""
    if given != len(problem.aggregations):
        raise ValueError(f"a model has {given} costs and the problem {len(problem.aggregations)}")


def explored(
    problem: Problem, weights: Penalties, returns: Float[Array, "..."], gathered: Float[Array, "..."]
) -> Float[Array, "..."]:
    """The value but for the cost: J_r - lambda_sigma max(d_sigma - J_s, 0)."""
    return returns - weights.exploration * jnp.maximum(problem.threshold - gathered, 0)


def penalties(weights: Penalties, hinges: Float[Array, "..."]) -> Float[Array, "..."]:
    """lambda_c max(J_c(f^m) - d + Delta_zeta, 0)."""
    return weights.cost * hinges if weights.cost > 0 else jnp.zeros_like(hinges)


def penalised(value: Float[Array, "..."], penalties: Float[Array, "... M"]) -> Float[Array, "..."]:
    """The value less the penalties of all samples, summed in their order.

    The sum is monotone in each penalty, also after rounding. So with zeros in the place of those that are not known yet
    it is an upper bound.
    """
    return value - jnp.sum(penalties, axis=-1)
