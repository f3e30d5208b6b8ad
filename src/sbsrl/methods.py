"""The methods. Each says in a few lines how its Problem is built at episode n; nothing else distinguishes them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._jax import PLAN
from .belief.protocol import Belief, Calibrated, Samples, Switchable
from .errors import UserError, unknown
from .model import Model
from .own.names import find
from .parts import Cloning
from .policy import Policy
from .problem import Bonus, Curiosity, Only, Problem, SwitchRule
from .settings import MethodSettings, Settings
from .shape import episode_shape
from .solve.protocol import Solution
from .task import Task
from .theory.exploration import exploration_threshold
from .types import PRNGKey, Scalar
from .validation import Number, Switch, Whole, declared

__all__ = [
    "CONTROL",
    "DEFAULT",
    "METHODS",
    "REFERENCE",
    "Context",
    "Method",
    "check_prior_policy",
    "make_method",
    "threshold_at_width_one",
]


@dataclass(frozen=True)
class Context:
    """What a method may use to build its problem and its policy."""

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
    noise: PRNGKey
    """Of what samples draw when they are asked for a next state; of this episode."""
    starts: Float[Array, "K dx"]
    """Initial states."""

    def threshold(self) -> Scalar:
        """d_sigma^n: fixed; or d_sigma^0 B / beta_n; or that of an accuracy epsilon of the returns (theorem merged)."""
        shrinking = threshold_at_width_one(self.task, self.settings)
        if shrinking is None:
            method = self.settings.method
            return jnp.asarray(method.exploration_threshold * method.exploration_decay**self.episode)
        assert isinstance(self.belief, Calibrated)
        return shrinking / jnp.max(self.belief.width())

    def draw_samples(self) -> Samples:
        """f_n^1 .. f_n^M."""
        return self.belief.samples(self.key, self.settings.method.samples)


def threshold_at_width_one(task: Task, settings: Settings) -> float | None:
    """beta_n d_sigma^n of a threshold that shrinks, and None for one that is fixed; refuses what means nothing."""
    method, gp = settings.method, task.prior.gp
    if not (method.accuracy or method.shrinking):
        return None
    if not settings.belief.calibrated:
        raise UserError(
            f"a threshold that shrinks needs confidence sets, and belief={settings.belief.name} has none; use "
            "accuracy=0, shrinking=false and a fixed exploration_threshold."
        )
    if gp is None or gp.bound is None:
        raise UserError(
            f"a threshold that shrinks needs a bound on the mismatch, and prior '{task.prior.name}' has none; use "
            "another prior, or accuracy=0, shrinking=false and a fixed exploration_threshold."
        )
    if not method.accuracy:
        return method.exploration_threshold * gp.bound
    if len(set(gp.scale)) > 1 or getattr(settings.belief, "uncertainty", None) != "deviation":
        raise UserError(
            "accuracy needs uncertainty=deviation and one scale for all outputs, since then s_n is that of theorem 2; "
            "set them, or use accuracy=0 and a fixed exploration_threshold."
        )
    # lambda_n is proportional to beta_n
    return gp.scale[0] * exploration_threshold(method.accuracy, 1.0, episode_shape(task), method.form)


def _no_check(task: Task, settings: Settings) -> None:
    """Nothing that this method could be asked is refused."""


def _as_solved(context: Context, solution: Solution) -> Policy:
    """The policy that the solver found."""
    return solution.policy


@dataclass(frozen=True)
class Method:
    """A name, a line about it, how its problem is built, and how its policy acts."""

    name: str
    summary: str
    problem: Callable[[Context], Problem]
    policy: Callable[[Context, Solution], Policy] = _as_solved
    """What is played: the solution's policy, or a wrapper of it that may act differently, such as a safety filter."""
    settings: type[MethodSettings] = MethodSettings
    check: Callable[[Task, Settings], None] = _no_check
    """Refuses settings that mean nothing for this method."""
    explores: bool = False
    """Whether its problem has an exploration constraint while it can be met."""
    cautious: bool = False
    """Whether its problem demands safety on every sample, which is what the theorems are about."""
    needs_equations: bool = False
    """Whether it plans with the true dynamics: a reference, not a method."""

    def demands_information(self, settings: Settings) -> bool:
        """Whether information is demanded at first: a threshold of nothing is none."""
        return self.explores and bool(settings.method.accuracy or settings.method.exploration_threshold)


def _problem(context: Context, samples: Samples | None, nominal: Model | None = None, curious: bool = False) -> Problem:
    task, belief, method = context.task, context.belief, context.settings.method
    uncertainty, nominal = belief.uncertainty(), nominal or belief.nominal()
    tightening = np.broadcast_to(method.tightening, len(task.costs))
    return Problem(
        objective=Curiosity(uncertainty) if curious else None,
        nominal=nominal,
        samples=samples,
        bounds=jnp.asarray(np.array([c.budget - t for c, t in zip(task.costs, tightening, strict=True)], PLAN)),
        aggregations=tuple(cost.aggregation for cost in task.costs),
        uncertainty=uncertainty,
        threshold=jnp.asarray(context.threshold() if context.exploring else 0.0, PLAN),
        steps=jnp.asarray(task.horizon, jnp.int32),
        exploring=jnp.asarray(context.exploring or curious),
        starts=context.starts,
        key=context.noise,
    )


def sbsrl(context: Context) -> Problem:
    """Problem (1): safe on every sample, and informative."""
    return _problem(context, context.draw_samples())


def mean(context: Context) -> Problem:
    """Safe on the nominal dynamics only, or for networks, as in the paper, on the mean over the samples."""
    if not context.settings.belief.calibrated:
        problem = sbsrl(context)
        return replace(problem, constraint="mean")
    nominal = context.belief.nominal()
    return _problem(context, Only(nominal), nominal)


def unsafe(context: Context) -> Problem:
    """No safety constraint; otherwise as greedy."""
    return _problem(context, None)


@dataclass(frozen=True)
class ActSafeSettings(MethodSettings):
    """Problem (1), and for how long to explore before."""

    actsafe_episodes: int = declared(
        Whole(0), 3, "episodes of pure exploration before exploitation begins", counts_episodes=True
    )


def actsafe(context: Context) -> Problem:
    """Pure exploration for the first episodes, then pure exploitation; safe on every sample throughout."""
    assert isinstance(context.settings.method, ActSafeSettings)
    curious = context.episode < context.settings.method.actsafe_episodes and not context.final
    return _problem(context, context.draw_samples(), curious=curious)


@dataclass(frozen=True)
class BonusSettings(MethodSettings):
    """Problem (1) without its exploration constraint, and what information is worth instead."""

    bonus_weight: float = declared(
        Number(0), 1.0, "lambda: reward that a unit of information adds until the final policy"
    )


def bonus(context: Context) -> Problem:
    """Maximises J_r + lambda J_s, the usual alternative to a constraint; safe on every sample; greedy in the end."""
    method = context.settings.method
    assert isinstance(method, BonusSettings)
    problem = _problem(context, context.draw_samples())
    if context.final or not method.bonus_weight:
        return problem
    both = Bonus(problem.reward, problem.uncertainty, jnp.asarray(method.bonus_weight, PLAN))
    return replace(problem, objective=both, exploring=jnp.asarray(True))


def _check_phases(task: Task, settings: Settings) -> None:
    """Refuses exploration that never ends."""
    assert isinstance(settings.method, ActSafeSettings)
    phase, episodes = settings.method.actsafe_episodes, settings.run.episodes
    if episodes < phase:
        raise UserError(
            f"actsafe would explore for {phase} episodes and the run has {episodes}; use at least {phase} episodes, "
            f"or set actsafe_episodes to {episodes} or less."
        )


def _check_threshold(task: Task, settings: Settings) -> None:
    """Refuses a threshold that means nothing, or that no policy could ever meet."""
    threshold_at_width_one(task, settings)
    if settings.method.accuracy:
        return
    most = task.horizon * settings.belief.largest_uncertainty(task)
    if settings.method.exploration_threshold > most:
        raise UserError(
            f"no episode can meet exploration_threshold={settings.method.exploration_threshold:g}: {task.horizon} "
            f"steps give at most {most:.4g}, even where nothing is known; use less."
        )


def check_prior_policy(task: Task, settings: Settings, who: str) -> None:
    """Refuses what hands over to a prior policy, and predicts with networks when to, where there is none of these."""
    solver, belief = settings.solver, settings.belief
    if not isinstance(solver, Cloning):
        raise UserError(
            f"{who} hands over to a prior policy, and solver={solver.name} makes none: use a solver of networks, such "
            "as solver=gradient, with offline data."
        )
    if not solver.has_prior_policy(task):
        raise UserError(
            f"{who} hands over to a prior policy, which solver={solver.name} makes of offline data, and "
            f"{task.name} has none: give some with data=FILE, or data=BEHAVIOUR:EPISODES:SEED."
        )
    if belief.calibrated:
        raise UserError(
            f"{who} asks networks what the rest of an episode costs, and belief={belief.name} is none; use "
            "belief=ensemble."
        )


def mbpo(context: Context) -> Problem:
    """Safe on average over trajectories that follow another network at each step (TS1), and nothing to explore.

    Return and cost are those of the same trajectories, as in MBPO: no sample is ever followed to its end.
    """
    belief, count = context.belief, context.settings.method.samples
    assert isinstance(belief, Switchable)
    samples = belief.switching(count)
    problem = _problem(context, samples, samples.member(jnp.asarray(0, jnp.int32)))
    return replace(problem, constraint="mean")


def _check_networks(task: Task, settings: Settings) -> None:
    if settings.belief.calibrated:
        raise UserError(
            f"mbpo and sooper follow another network at each step, and belief={settings.belief.name} has no networks; "
            "use belief=ensemble."
        )


@dataclass(frozen=True)
class SooperSettings(MethodSettings):
    """Problem (1) on average, and when to hand over to the prior policy."""

    pessimism: float = declared(
        Number(0), 0.01, "share of every budget that a unit of uncertainty J_sigma adds to the predicted costs"
    )
    optimism: float = declared(Number(0), 1.0, "reward that a unit of uncertainty J_sigma adds while it plans")
    planned: bool = declared(
        Switch(),
        False,
        "whether plans know that episodes go over to the prior policy, for what that is worth; then it is for good, "
        "otherwise it is asked anew at every step",
    )


def sooper(context: Context) -> Problem:
    """As mbpo, with pessimistic costs and a reward for uncertainty; episodes go over to the prior policy in time.

    That is where the cost so far and what the prior policy would cost from there reach the budget, on the true system,
    and on the models if plans are to know of it.
    """
    method = context.settings.method
    assert isinstance(method, SooperSettings)
    budgets = np.array([cost.budget for cost in context.task.costs])
    curious = 0.0 if context.final else method.optimism
    pessimism = jnp.asarray(method.pessimism * np.abs(budgets), PLAN)
    rule = SwitchRule(jnp.asarray(budgets, PLAN), pessimism, jnp.asarray(curious, PLAN), method.planned)
    return replace(mbpo(context), switch=rule)


def _check_sooper(task: Task, settings: Settings) -> None:
    check_prior_policy(task, settings, "sooper")
    _check_networks(task, settings)
    assert isinstance(settings.method, SooperSettings)
    if settings.method.planned and isinstance(settings.solver, Cloning) and settings.solver.critics:
        raise UserError(
            "sooper plans with its switch through whole episodes only, since critics do not know what an episode has "
            "cost so far; use planned=no, or solver=gradient with segment=0."
        )
    if any(cost.aggregation != "sum" for cost in task.costs):
        raise UserError(
            f"{task.name} has a cost that is not summed over the episode, and sooper adds what an episode has cost to "
            "what it will; use another method."
        )


def oracle(context: Context) -> Problem:
    """Plans with the true dynamics: what the same planner could earn at best."""
    assert context.task.equations is not None
    truth = context.task.equations.model
    return _problem(context, Only(truth), truth)


def _check_equations(task: Task, settings: Settings) -> None:
    if task.equations is None:
        raise UserError(f"the equations of {task.name} are not known, so nothing can plan with them.")


METHODS = {
    method.name: method
    for method in (
        Method(
            "sbsrl",
            "safe on every sampled dynamics, exploration as a constraint",
            sbsrl,
            check=_check_threshold,
            explores=True,
            cautious=True,
        ),
        Method(
            "mean", "safe on the mean dynamics only, otherwise as sbsrl", mean, check=_check_threshold, explores=True
        ),
        Method(
            "actsafe",
            "explores purely for a few episodes, then exploits; safe on every sample",
            actsafe,
            settings=ActSafeSettings,
            check=_check_phases,
            cautious=True,
        ),
        Method(
            "bonus",
            "reward plus a fixed multiple of information; safe on every sample",
            bonus,
            settings=BonusSettings,
            cautious=True,
        ),
        Method("mbpo", "safe on average, on networks that change at each step", mbpo, check=_check_networks),
        Method(
            "sooper",
            "as mbpo with pessimistic costs, and hands over to the prior policy in time",
            sooper,
            settings=SooperSettings,
            check=_check_sooper,
        ),
        Method("greedy", "sbsrl without the exploration constraint", sbsrl, cautious=True),
        Method("unsafe", "greedy without any safety constraint", unsafe),
        Method(
            "oracle",
            "the same planner knowing the true dynamics, as a reference",
            oracle,
            check=_check_equations,
            needs_equations=True,
        ),
    )
}

DEFAULT, REFERENCE, CONTROL = METHODS["sbsrl"], METHODS["oracle"], METHODS["mean"]
"""What is run unless said otherwise; what no method can beat; and the one that trusts its mean, for comparison."""


def make_method(name: str) -> Method:
    """The method of that name: one of this package, or module:NAME of a user's own."""
    if name in METHODS:
        return METHODS[name]
    if ":" not in name:
        raise unknown("method", name, METHODS)
    found = find(name, "method")
    if not isinstance(found, Method):
        raise UserError(f"the method {name} is a {type(found).__name__}; make it a sbsrl.methods.Method.")
    return found
