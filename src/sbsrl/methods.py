"""The methods. Each says in a few lines how its Problem is built at episode n; nothing else distinguishes them."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._jax import PLAN
from .belief.protocol import Belief, Samples, Uncertainty
from .errors import UserError, unknown
from .problem import Only, Penalties, Problem, at_many
from .settings import Settings
from .task import Task
from .theory import Episodes, exploration_threshold
from .types import Action, Dynamics, PRNGKey, Scalar, State

__all__ = ["METHODS", "Method", "make_method", "threshold_at_width_one"]


@dataclass(frozen=True)
class Context:
    """What a method may use to build its problem."""

    task: Task
    belief: Belief
    settings: Settings
    episode: int
    exploring: bool
    """Whether the exploration constraint is still demanded."""
    final: bool
    """Whether this is the policy that is returned in the end, which explores no more."""
    key: PRNGKey
    """Of the samples; the same in all episodes of a run."""

    def threshold(self) -> Scalar:
        """d_sigma^n: fixed; or d_sigma^0 B / beta_n; or that of an accuracy epsilon of the returns (theorem merged)."""
        shrinking = threshold_at_width_one(self.task, self.settings)
        if shrinking is None:
            return jnp.asarray(self.settings.exploration_threshold)
        return shrinking / jnp.max(self.belief.width())

    def draw_samples(self) -> Samples:
        """f_n^1 .. f_n^M."""
        return self.belief.samples(self.key, self.settings.samples)


def threshold_at_width_one(task: Task, settings: Settings) -> float | None:
    """beta_n d_sigma^n of a threshold that shrinks, and None for one that is fixed; refuses what means nothing."""
    bound, scale = task.prior.bound, set(task.prior.scale)
    if not (settings.accuracy or settings.shrinking):
        return None
    if bound is None:
        raise UserError(
            f"a threshold that shrinks needs a bound on the mismatch, and prior '{task.prior.name}' has none; use "
            "another prior, or accuracy=0, shrinking=false and a fixed exploration_threshold."
        )
    if not settings.accuracy:
        return settings.exploration_threshold * bound
    if len(scale) > 1 or settings.uncertainty != "deviation":
        raise UserError(
            "accuracy needs uncertainty=deviation and one scale for all outputs, since then s_n is that of theorem 2; "
            "set them, or use accuracy=0 and a fixed exploration_threshold."
        )
    # lambda_n is proportional to beta_n
    return scale.pop() * exploration_threshold(settings.accuracy, 1.0, Episodes.of(task), settings.form)


@dataclass(frozen=True)
class Method:
    """A name, a line about it, and how its problem is built."""

    name: str
    summary: str
    problem: Callable[[Context], Problem]
    explores: bool = False
    """Whether its problem has an exploration constraint while it can be met."""
    cautious: bool = False
    """Whether its problem demands safety on every sample, which is what the theorems are about."""


def _problem(
    context: Context,
    samples: Samples | None,
    nominal: Dynamics | None = None,
    curious: bool = False,
) -> Problem:
    task, belief, settings = context.task, context.belief, context.settings
    uncertainty = belief.uncertainty()
    return Problem(
        reward=Curiosity(uncertainty) if curious else task.reward,
        nominal=nominal or belief.nominal(),
        cost=task.cost,
        aggregation=task.aggregation,
        samples=samples,
        bound=jnp.asarray(task.budget - settings.tightening, PLAN),
        uncertainty=uncertainty,
        threshold=jnp.asarray(context.threshold() if context.exploring else 0.0, PLAN),
        steps=jnp.asarray(settings.horizon, jnp.int32),
        exploring=jnp.asarray(context.exploring or curious),
        penalties=Penalties(settings.cost_penalty, settings.exploration_penalty, settings.slack),
    )


def sbsrl(context: Context) -> Problem:
    """Problem (1): safe on every sample, and informative."""
    return _problem(context, context.draw_samples())


def mean(context: Context) -> Problem:
    """Safe on the nominal dynamics only; otherwise as sbsrl."""
    nominal = context.belief.nominal()
    return _problem(context, Only(nominal), nominal)


def unsafe(context: Context) -> Problem:
    """No safety constraint; otherwise as greedy."""
    return _problem(context, None)


def actsafe(context: Context) -> Problem:
    """Pure exploration for the first episodes, then pure exploitation; safe on every sample throughout."""
    curious = context.episode < context.settings.actsafe_episodes and not context.final
    return _problem(context, context.draw_samples(), curious=curious)


def oracle(context: Context) -> Problem:
    """Plans with the true dynamics: what the same planner could earn at best."""
    truth = context.task.dynamics
    return _problem(context, Only(truth), truth)


class Curiosity(eqx.Module):
    """The uncertainty s_n as a reward."""

    uncertainty: Uncertainty

    def __call__(self, x: State, a: Action, y: State) -> Scalar:
        return self.uncertainty(x, a)

    def many(self, x: Float[Array, "dx C"], a: Float[Array, "da C"], y: Float[Array, "dx C"]) -> Float[Array, " C"]:
        """The same at C transitions, as columns."""
        return at_many(self.uncertainty)(x, a)


METHODS = {
    method.name: method
    for method in (
        Method(
            "sbsrl", "safe on every sampled dynamics, exploration as a constraint", sbsrl, explores=True, cautious=True
        ),
        Method("mean", "safe on the mean dynamics only, otherwise as sbsrl", mean, explores=True),
        Method(
            "actsafe",
            "explores purely for a few episodes, then exploits; safe on every sample",
            actsafe,
            cautious=True,
        ),
        Method("greedy", "sbsrl without the exploration constraint", sbsrl, cautious=True),
        Method("unsafe", "greedy without any safety constraint", unsafe),
        Method("oracle", "the same planner knowing the true dynamics, as a reference", oracle),
    )
}


def make_method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]
