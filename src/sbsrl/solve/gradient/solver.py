"""The solver: it trains a network between episodes, and lets nothing be played that was not checked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._jax import PLAN
from ...belief.protocol import Renewable
from ...costs import Aggregation, total
from ...networks import Network, init_network
from ...policy import Metrics
from ...problem import Evaluation, Problem
from ...starts import draw_starts
from ...transitions import Episode, Transitions
from ...types import PRNGKey, Scalar, State
from ..protocol import Solution
from .choices import GradientChoices
from .episodes import rows_of
from .lagrangian import updated
from .network_policy import NetworkPolicy, Units, clone
from .segments import Critic, init_critic, visited
from .training import (
    OPTIMISER,
    Forecast,
    Sizes,
    Trained,
    Weights,
    constraints,
    cost_units,
    forecast,
    missing,
    pressures,
    spread_starts,
    train,
    train_segments,
)

__all__ = ["PolicyGradient", "SolverState"]

TRAINED, PASSED, CLONED = 0, 1, 2
"""Where the policy of an episode comes from: from training, from an earlier check that it passed, from the data."""


class SolverState(NamedTuple):
    """What is remembered between episodes."""

    network: Network
    moments: Any
    multipliers: Float[Array, " k"]
    """The mean over the samples, which are drawn anew: none of the new ones is one of the old."""
    curiosity: Scalar
    cloned: Network
    """The prior policy."""
    passed: Network
    """The last policy that passed the check and then really cost little; at first the prior policy."""
    played: Network
    origin: Int[Array, ""]
    """Of what was played."""
    critic: Critic
    """Used where gradients go through segments only."""


@dataclass(frozen=True, eq=False)
class PolicyGradient:
    """Gradients through whole episodes on every sample; a gate before every episode."""

    start: Callable[[PRNGKey], State]
    """Draws an initial state."""
    data: Transitions | None
    """Of the behaviour that is cloned."""
    units: Units
    budgets: tuple[float, ...]
    aggregations: tuple[Aggregation, ...]
    horizon: int
    return_scale: float
    """The unit of J_r."""
    reliable: bool
    """Whether the data keep within the budget on average, so that their clone can be fallen back to."""
    choices: GradientChoices

    def init(self, key: PRNGKey) -> SolverState:
        """A network that has learned nothing."""
        sizes = (len(self.units.mean), *(self.choices.policy_width,) * self.choices.policy_layers, len(self.units.low))
        network = init_network(key, sizes, last=0.1)
        return SolverState(
            network=network,
            moments=OPTIMISER.init(network),
            multipliers=jnp.zeros(len(self.budgets), PLAN),
            curiosity=jnp.zeros((), PLAN),
            cloned=network,
            passed=network,
            played=network,
            origin=jnp.asarray(CLONED, jnp.int32),
            critic=init_critic(
                jax.random.fold_in(key, 1), len(self.units.mean), 2 + len(self.budgets), self.choices.critic_width
            ),
        )

    def prepare(self, problem: Problem, state: SolverState, key: PRNGKey) -> tuple[SolverState, Metrics]:
        """The offline phase: clones the behaviour, then improves it for as long as fresh samples agree that it does."""
        clone_key, key = jax.random.split(key)
        if self.data is not None:
            states, actions = (jnp.asarray(part, PLAN) for part in (self.data.states, self.data.actions))
            network = clone(state.network, self.units, states, actions, self.choices.cloning_updates, clone_key)
            state = state._replace(network=network, cloned=network, passed=network, played=network)
        problem = problem.demanding(jnp.zeros((), PLAN), problem.steps)
        best, blocks, since = state, 0, 0
        cloned = self._checked(problem, state.network, jax.random.fold_in(key, 0))
        score = first = self._score(problem, cloned)
        for i in range(1, self.choices.offline_blocks + 1):
            block_key, check_key = jax.random.split(jax.random.fold_in(key, i))
            state, _ = self._block(problem, state, block_key, self._annealed(problem, cloned, i), offline=True)
            now = self._score(problem, self._checked(problem, state.network, check_key))
            since = 0 if now > score else since + 1
            if now > score:
                best, score, blocks = state, now, i
            if since >= self.choices.offline_patience:
                break
        return best, {"offline_updates": blocks * self.choices.updates, "clone_score": first, "offline_score": score}

    def solve(self, problem: Problem, state: SolverState, key: PRNGKey) -> tuple[Solution, SolverState]:
        """Trains on, then checks with samples and initial states that training has not seen, until one check passes.

        If none does, what is played is the last policy that passed and then really cost little, at first the prior's.
        Data that cost more than the budget make no prior policy to rely on: then it is whichever violates less.
        """
        for i in range(self.choices.checks):
            train_key, check_key = jax.random.split(jax.random.fold_in(key, i))
            state, seen = self._block(problem, state, train_key)
            found, origin = self._checked(problem, state.network, check_key), TRAINED
            if self._violation(problem, found) <= 0:
                break
        else:
            earlier = self._checked(problem, state.passed, jax.random.fold_in(key, self.choices.checks))
            cloned = _same(state.passed, state.cloned)
            better = self._violation(problem, earlier) <= self._violation(problem, found)
            if better or not cloned or self.reliable:
                found, origin = earlier, CLONED if cloned else PASSED
        played = state.network if origin == TRAINED else state.passed
        state = state._replace(played=played, origin=jnp.asarray(origin, jnp.int32))
        evaluation = Evaluation(found.reward, jnp.asarray(self._violation(problem, found)), found.information)
        metrics = {
            "checks": i + 1,
            "origin": int(state.origin),
            "predicted_return": float(found.reward),
            "multiplier": float(jnp.mean(state.multipliers)),
            "curiosity": float(state.curiosity),
            "trained_information": float(seen.information),
        }
        if len(found.costs):
            metrics |= {"worst_sample": float(jnp.max(found.costs)), "mean_sample": float(jnp.mean(found.costs))}
        return Solution(NetworkPolicy(state.played, self.units), evaluation, float(problem.threshold), metrics), state

    def observed(self, state: SolverState, episode: Episode) -> SolverState:
        """After an episode of its policy: one that cost little is one to come back to, another one is forgotten."""
        costs = [total(episode.costs[:, i], how) for i, how in enumerate(self.aggregations)]
        little = all(cost <= GOOD * budget for cost, budget in zip(costs, self.budgets, strict=True))
        if little:
            return state._replace(passed=state.played)
        return state._replace(passed=state.cloned) if int(state.origin) == PASSED else state

    def _annealed(self, problem: Problem, cloned: Forecast, block: int) -> Float[Array, " k"]:
        """The bounds of an offline block: at first what the prior policy costs on the worst sample, then their own."""
        left = max(0.0, 1 - block / self.choices.annealing) ** 1.5 if self.choices.annealing else 0.0
        if not left or not len(cloned.costs):
            return problem.bounds
        return problem.bounds + left * jnp.maximum(jnp.max(cloned.costs, axis=0) - problem.bounds, 0)

    def _block(
        self,
        problem: Problem,
        state: SolverState,
        key: PRNGKey,
        bounds: Float[Array, " k"] | None = None,
        offline: bool = False,
    ) -> tuple[SolverState, Forecast]:
        """The updates of an episode, within these bounds, by default the problem's."""
        start_key, train_key = jax.random.split(key)
        count = self.choices.updates
        starts = draw_starts(self.start, count * (self.choices.each + self.choices.nominal), start_key)
        starts = starts.reshape(count, -1, starts.shape[-1]).astype(PLAN)
        shape = (problem.constraint_count, len(self.budgets))
        multipliers = jnp.broadcast_to(state.multipliers[None], shape)
        before = Trained(state.network, state.moments, multipliers, state.curiosity)
        limits, weights = problem.bounds if bounds is None else bounds, self._weights(offline)
        critic = state.critic
        if self.choices.segment:
            after, critic, seen = self._segments(problem, before, critic, starts, limits, weights, train_key)
        else:
            after, seen = train(before, self.units, problem, starts, limits, self._sizes, weights, train_key)
        return state._replace(
            network=after.network,
            moments=after.moments,
            multipliers=jnp.mean(after.multipliers, axis=0) if shape[0] else state.multipliers,
            curiosity=after.curiosity,
            critic=critic,
        ), seen

    def _segments(
        self,
        problem: Problem,
        before: Trained,
        critic: Critic,
        starts: Float[Array, "U K dx"],
        bounds: Float[Array, " k"],
        weights: Weights,
        key: PRNGKey,
    ) -> tuple[Trained, Critic, Forecast]:
        """Whole episodes say how much each constraint presses; then gradients go through segments."""
        seen_key, visit_key, train_key = jax.random.split(key, 3)
        sizes, count = self._sizes, 0 if problem.samples is None else len(problem.samples)
        seen = forecast(before.network, self.units, problem, starts[0], self.horizon, sizes.nominal, seen_key)
        g, lacking = constraints(problem, seen.costs, bounds), missing(problem, seen.information)
        rate, limit = weights.multiplier_rate, weights.multiplier_limit
        multipliers = updated(weights.kind, before.multipliers, g, rate, limit)
        curiosity = jnp.where(problem.threshold > 0, updated(weights.kind, before.curiosity, lacking, rate, limit), 0)
        before = before._replace(multipliers=multipliers, curiosity=curiosity)
        pushed = pressures(problem, seen, before, weights, bounds)
        rows = rows_of(problem, sizes.each, sizes.nominal)
        placed = spread_starts(starts[0], count, sizes.each, sizes.nominal)
        first = visited(before.network, self.units, problem, rows, placed, self.horizon, sizes.segment, visit_key)
        network, moments, critic = train_segments(
            before, critic, self.units, problem, first, starts, pushed, self._scale(problem), sizes, weights, train_key
        )
        return before._replace(network=network, moments=moments), critic, seen

    def _scale(self, problem: Problem) -> Float[Array, " v"]:
        """The unit of each signal per step: of an episode it is that of the whole."""
        units = [self.return_scale, *np.asarray(cost_units(problem), float)]
        information = float(problem.threshold) or self.choices.trust or 1.0
        return jnp.asarray(np.array([*units, information]) / self.horizon, PLAN)

    @property
    def _sizes(self) -> Sizes:
        chosen = self.choices
        return Sizes(self.horizon, chosen.each, chosen.nominal, chosen.unsteadiness, chosen.updates, chosen.segment)

    def _weights(self, offline: bool) -> Weights:
        chosen = self.choices
        return Weights(
            kind=chosen.penalty,
            rate=(chosen.offline_rate if offline else 0.0) or chosen.policy_rate,
            discount=chosen.discount,
            return_scale=self.return_scale,
            total=chosen.safety_weight,
            curvature=chosen.curvature,
            multiplier_rate=chosen.multiplier_rate,
            multiplier_limit=chosen.multiplier_limit,
            trust=chosen.trust,
            trust_weight=chosen.trust_weight,
        )

    def _checked(self, problem: Problem, network: Network, key: PRNGKey) -> Forecast:
        """What fresh samples say from fresh initial states."""
        start_key, sample_key, roll_key = jax.random.split(key, 3)
        fresh = problem
        if isinstance(problem.samples, Renewable):
            fresh = eqx.tree_at(lambda tree: tree.samples, problem, problem.samples.renewed(sample_key))
        starts = draw_starts(self.start, self.choices.check_starts + CHECK_NOMINAL, start_key)
        return forecast(network, self.units, fresh, starts, self.horizon, CHECK_NOMINAL, roll_key)

    def _violation(self, problem: Problem, found: Forecast) -> float:
        """By how much the worst constraint is exceeded, in its own unit; 0 if none is, or there is none."""
        excess = np.asarray(constraints(problem, found.costs, problem.bounds) * cost_units(problem)[None])
        worst = float(np.max(excess, initial=0.0))
        return worst if np.isfinite(worst) else float("inf")

    def _score(self, problem: Problem, found: Forecast) -> float:
        """The return that most samples agree on, less what violations are worth."""
        pessimistic = float(found.reward)
        if len(found.sampled_rewards):
            pessimistic = float(jnp.mean(found.sampled_rewards) - jnp.std(found.sampled_rewards))
        hinge = np.maximum(np.asarray(constraints(problem, found.costs, problem.bounds)), 0)
        penalty = self.choices.safety_weight * (float(hinge.mean()) if hinge.size else 0.0)
        return pessimistic / self.return_scale - penalty


CHECK_NOMINAL = 4
"""Initial states from which the nominal model is asked in a check."""
GOOD = 0.5
"""The share of every budget that a policy may really have cost, to be one to come back to."""


def _same(one: Network, other: Network) -> bool:
    return all(bool(jnp.array_equal(a, b)) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))
