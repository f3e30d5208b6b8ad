"""The policy that plans anew at every control step, with the planner's memory and the information gathered so far."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT, PLAN
from ..errors import UserError
from ..policy import Metrics
from ..problem import Penalties, Problem
from ..task import Task
from ..types import Action, Actions, Index, PRNGKey, Scalar, State
from ..validation import Number, Whole, declared, validate
from .episode_plan import EpisodePlanner
from .icem import ICEM, Memory, Plan, check_population
from .protocol import Solution
from .refine import Refinement
from .tracking import Regulator, Tracked

__all__ = ["ICEMSettings", "PolicyState", "RecedingHorizon", "ReplanningSolver"]


class PolicyState(NamedTuple):
    """What the policy carries through an episode."""

    memory: Memory
    step: Index
    """How many steps were taken."""
    gathered: Scalar
    """The information of the steps already taken: it counts towards the threshold."""
    spent: Float[Array, " k"] | None = None
    """What the steps already taken cost, where a cost is summed over the episode."""


class RecedingHorizon(eqx.Module):
    """pi_n: at every step solve Problem (1) from where the system really is, and take the first action.

    The exploration constraint is on the whole episode. A plan of H steps with R > H still to go must gather its
    share H/R of what is missing; once nothing is missing, the policy is greedy for the rest of the episode.
    Near the end plans look beyond it, so that the episode does not end on the way into trouble; but only
    information that can still be gathered counts. The same with a cost that is summed over the episode: a plan may
    spend the share min(1, H/R) of what is left of the budget, so that the episode keeps it if every plan does.
    """

    planner: ICEM
    problem: Problem
    """What is planned with: a planner cannot do without its models."""
    episode_steps: int = eqx.field(static=True)
    """T."""
    opening: Actions | None = None
    """The plan from which the first search starts."""

    def init(self) -> PolicyState:
        """At the beginning of an episode: nothing gathered, nothing remembered but the opening."""
        memory = self.planner.init(self.problem.constraint_count)
        if self.opening is not None:
            memory = memory._replace(mean=self.opening)
        spent = jnp.zeros(self.problem.bounds.shape, PLAN) if self.spends else None
        return PolicyState(memory, jnp.zeros((), jnp.int32), jnp.zeros((), PLAN), spent)

    @property
    def spends(self) -> bool:
        """Whether what steps really cost decides what later plans may cost."""
        return "sum" in self.problem.aggregations

    def observe(self, state: PolicyState, reward: float, costs: Float[np.ndarray, " k"]) -> PolicyState:
        """The state that knows what a step really cost."""
        return state if state.spent is None else state._replace(spent=state.spent + jnp.asarray(costs, PLAN))

    def demand(self, state: PolicyState) -> Scalar:
        """The information that the next plan must promise."""
        return self._share(state) * jnp.maximum(self.problem.threshold - state.gathered, 0)

    def allowed(self, state: PolicyState) -> Float[Array, " k"]:
        """What the next plan may cost at most."""
        bounds = self.problem.bounds
        if state.spent is None:
            return bounds
        summed = jnp.array([how == "sum" for how in self.problem.aggregations])
        left = (bounds - state.spent.astype(bounds.dtype)) * self._share(state).astype(bounds.dtype)
        return jnp.where(summed, left, bounds)

    def _share(self, state: PolicyState) -> Scalar:
        """The part of the steps to come that a plan is about."""
        return jnp.minimum(1.0, self.planner.horizon / self.remaining(state).astype(EXACT)).astype(PLAN)

    def remaining(self, state: PolicyState) -> Index:
        """R: steps until the episode ends."""
        return jnp.maximum(self.episode_steps - state.step, 1)

    def plan(self, x: State, state: PolicyState, key: PRNGKey) -> tuple[Plan, Memory]:
        closed = RecedingHorizon(self.planner, self.problem, self.episode_steps)  # one program with all openings
        return _plan(closed, x, state, key)

    def act(self, x: State, state: PolicyState, key: PRNGKey) -> tuple[Action, PolicyState, Metrics]:
        """The first action of a new plan. `violation` is that of the plan on its worst sample."""
        plan, memory = self.plan(x, state, key)
        action, after = _take(self.problem, x, plan, state._replace(memory=memory))
        return action, after, {"violation": plan.evaluation.violation, "evaluated": plan.evaluated}


class ReplanningSolver(eqx.Module):
    """Solves Problem (1) by a policy that replans at every step; its first plan says what can be said beforehand."""

    planner: ICEM
    episode_steps: int = eqx.field(static=True)
    """T."""

    def init(self, key: PRNGKey) -> tuple[()]:
        return ()

    def solve(self, problem: Problem, state: tuple[()], key: PRNGKey) -> tuple[Solution, tuple[()]]:
        """Plans once, from the first of the initial states; the policy starts its own search from what was found."""
        policy = RecedingHorizon(self.planner, problem, self.episode_steps)
        nothing = policy.init()
        plan, _ = policy.plan(problem.starts[0], nothing, key)
        opened = RecedingHorizon(self.planner, problem, self.episode_steps, plan.actions)
        return Solution(opened, plan.evaluation, float(policy.demand(nothing))), ()


@eqx.filter_jit
def _plan(policy: RecedingHorizon, x: State, state: PolicyState, key: PRNGKey) -> tuple[Plan, Memory]:
    problem = policy.problem.demanding(policy.demand(state), policy.remaining(state)).bounded(policy.allowed(state))
    return policy.planner.plan(problem, x, state.memory, key)


@eqx.filter_jit
def _take(problem: Problem, x: State, plan: Plan, state: PolicyState) -> tuple[Action, PolicyState]:
    """The first action of a plan from x, and the state after it."""
    action = plan.actions[0]
    gained = problem.uncertainty(x.astype(PLAN), action)
    return action, state._replace(step=state.step + 1, gathered=state.gathered + gained)


LONGER = 2
"""Times as many iterations for the one plan of an episode as for one that is made anew at every step."""


@dataclass(frozen=True)
class ICEMSettings:
    """Plans actions over a shorter horizon by the improved cross-entropy method, and anew at every step."""

    name: ClassVar[str] = "icem"

    horizon: int = declared(Whole(2, 1000), 20, "H: control steps that a plan looks ahead")
    candidates: int = declared(Whole(4, 1_000_000), 504, "action sequences in the first iteration")
    elites: int = declared(Whole(2, 100_000), 24, "best sequences that the next iteration is fitted to")
    iterations: int = declared(Whole(1, 1000), 4, "iterations per plan")
    patience: int = declared(
        Whole(1, 1000),
        3,
        "times the iterations may be repeated while no plan is safe on all samples and that brings one nearer",
    )
    decay: float = declared(Number(1, 100), 1.25, "factor by which the population shrinks per iteration")
    colour: float = declared(Number(0, 10), 2.0, "exponent of the coloured noise; 0 is white")
    momentum: float = declared(Number(0, 1), 0.1, "weight of the old mean and deviation")
    spread: float = declared(Number(1e-6, 10), 0.5, "initial deviation, as a share of half the action range")
    keep: float = declared(
        Number(0, 1), 0.3, "share of the elites carried to the next iteration and step, at least one"
    )
    gradient_elites: int = declared(
        Whole(0, 100_000), 0, "kept elites that each iteration improves by gradients; 0 is none"
    )
    cost_penalty: float = declared(Number(0), 1000.0, "lambda_c: weight of a violation, summed over samples and costs")
    exploration_penalty: float = declared(Number(0), 10.0, "lambda_sigma: weight of missing information")
    slack: float = declared(
        Number(0), 0.0, "by how much more the end of a plan should stay below the budget: room for the plans to come"
    )

    def __post_init__(self) -> None:
        validate(self, "solver.")
        check_population(self.candidates, self.elites)

    def create(self, task: Task) -> ReplanningSolver:
        """The solver for a task."""
        return ReplanningSolver(self.planner(task), task.horizon)

    def planner(self, task: Task) -> ICEM:
        planner = ICEM(
            low=task.action_low,
            high=task.action_high,
            horizon=self.horizon,
            candidates=self.candidates,
            elites=self.elites,
            iterations=self.iterations,
            penalties=Penalties(self.cost_penalty, self.exploration_penalty, self.slack),
            patience=self.patience,
            decay=self.decay,
            colour=self.colour,
            momentum=self.momentum,
            spread=self.spread,
            keep=self.keep,
            refinement=Refinement(self.gradient_elites) if self.gradient_elites else None,
        )
        if self.gradient_elites > planner.kept_elites:
            raise UserError(
                f"gradient_elites={self.gradient_elites} are more than the {planner.kept_elites} elites that are kept; "
                "use fewer, or raise elites or keep."
            )
        return planner

    def deciding(self, task: Task) -> EpisodePlanner:
        """One plan for the episode, followed with feedback: as many candidates, and a longer search for it."""
        if self.gradient_elites:
            raise UserError(
                f"gradient_elites={self.gradient_elites} improves plans without feedback, and with a risk they are "
                "followed with feedback; use gradient_elites=0, or risk=0."
            )
        if task.prior.gp is None:
            raise UserError(f"the feedback of {task.name} needs the scale of a Gaussian-process prior; use risk=0.")
        regulator = Regulator(task.prior.gp.scale, task.action_low, task.action_high)
        planner = replace(
            self.planner(task),
            horizon=task.horizon,
            iterations=LONGER * self.iterations,
            patience=min(self.patience, 2),
            receding=False,
            scoring=Tracked(regulator),
        )
        return EpisodePlanner(planner, regulator)

    def cost_error(self, task: Task) -> float:
        """By how much a computed J_c may be off: nothing is claimed of single trajectories."""
        return 0.0

    def against_safety(self, task: Task) -> Iterator[str]:
        yield "actions are planned step by step over a shorter horizon; the theorem is about a policy for an episode."

    def against_optimality(self, task: Task) -> Iterator[str]:
        yield "Problem (1) is solved by search, so that infeasibility is evidence and not proof."
