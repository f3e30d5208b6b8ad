"""The solver: it trains a network between episodes, and lets nothing be played that was not checked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._jax import PLAN
from ...costs import Aggregation, total
from ...networks import Network, init_network
from ...policy import Metrics
from ...problem import Evaluation, Problem
from ...starts import draw_starts
from ...transitions import Episode, Transitions
from ...types import Flag, PRNGKey, Scalar, State
from ..protocol import Solution
from .choices import GradientChoices
from .episodes import rows_of
from .gate import CLONED, KEPT, PASSED, RESTING, TRAINED, TRIED, Candidate, Gate, collapsed
from .lagrangian import updated
from .network_policy import NetworkPolicy, Units, clone, constant
from .proven import Proven, added, best, is_newest, newest, nothing_proven, played_again
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
    recalled_starts,
    spread_starts,
    train,
    train_segments,
)

__all__ = ["PolicyGradient", "SolverState"]


class SolverState(NamedTuple):
    """What is remembered between episodes."""

    network: Network
    moments: Any
    multipliers: Float[Array, " k"]
    """The mean over the samples, which are drawn anew: none of the new ones is one of the old."""
    curiosity: Scalar
    cloned: Network
    """The prior policy."""
    proven: Proven
    """Policies that passed the check and then really cost little."""
    played: Network
    origin: Int[Array, ""]
    """Of what was played."""
    cleared: Flag
    """Whether what was played had passed the gate."""
    promised: Scalar
    """The return that the samples promised of what was played."""
    optimism: Float[Array, " recent"]
    """By how much such promises exceeded what was earned, in the last episodes."""
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
    safe_action: tuple[float, ...] | None
    """Of the task, if it has one."""
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
            proven=nothing_proven(network, len(self.budgets)),
            played=network,
            origin=jnp.asarray(CLONED, jnp.int32),
            cleared=jnp.zeros((), bool),
            promised=jnp.zeros((), PLAN),
            optimism=jnp.zeros(RECENT, PLAN),
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
            state = state._replace(network=network, cloned=network, played=network)
        problem = problem.demanding(jnp.zeros((), PLAN), problem.steps)
        improved, blocks, since = state, 0, 0
        first = now = top = before = self._gate.candidate(problem, state.network, CLONED, jax.random.fold_in(key, 0))
        for i in range(1, self.choices.offline_blocks + 1):
            block_key, check_key = jax.random.split(jax.random.fold_in(key, i))
            before = now if i - 1 == self.choices.free_blocks else before
            bounds = self._annealed(problem, before.found, i)
            asked = now.problem if self.choices.refuted else problem
            state, _ = self._block(asked, state, block_key, bounds, self._offline_rate(i))
            now = self._gate.candidate(problem, state.network, TRAINED, check_key)
            better = (now.violation <= 0, now.score) > (top.violation <= 0, top.score)
            since = 0 if better else since + 1
            if better:
                improved, top, blocks = state, now, i
            if since >= self.choices.offline_patience:
                break
            if since and since % PATIENT == 0 and collapsed(now, top) and i > self._annealed_after:
                state = improved._replace(multipliers=state.multipliers, critic=state.critic)
        return improved, {
            "offline_updates": blocks * self.choices.rounds * self.choices.updates,
            "clone_score": first.score,
            "offline_score": top.score,
            "offline_violation": top.violation,
        }

    def learned(self, state: SolverState) -> dict[str, NetworkPolicy]:
        """The clone, and what became of it offline."""
        networks = {"prior": state.cloned, "offline": state.network}
        return {name: NetworkPolicy(network, self.units) for name, network in networks.items()}

    def solve(self, problem: Problem, state: SolverState, key: PRNGKey) -> tuple[Solution, SolverState]:
        """Trains on, then checks with samples and initial states that training has not seen, until one check passes.

        After a check that failed, training goes on, if so chosen with the samples that refuted the policy. Training
        that loses what the policy could do is undone. What is played is the best that passes, the policy as it was
        before included; if nothing passes, see `_instead`.
        """
        begun, key = state, jax.random.fold_in(key, bool(problem.threshold > 0))  # an episode may be solved twice
        kept = self._gate.candidate(problem, state.network, KEPT, jax.random.fold_in(key, self.choices.checks))
        tried, undone = [kept], 0
        for i in range(self.choices.checks):
            train_key, check_key = jax.random.split(jax.random.fold_in(key, i))
            state, seen = self._block(problem, state, train_key)
            now = self._gate.candidate(problem, state.network, TRAINED, check_key)
            problem = now.problem if self.choices.refuted else problem
            if collapsed(now, kept):
                state = state._replace(network=begun.network, moments=begun.moments)
                undone += 1
                continue
            tried.append(now)
            if now.violation <= 0:
                break
        chosen = self._best(problem, tried) or self._instead(problem, state, tried, key)
        training = {"checks": i + 1, "undone": undone, "trained_information": float(seen.information)}
        return self._solution(problem, chosen, training, state)

    def conclude(self, problem: Problem, state: SolverState, key: PRNGKey) -> tuple[Solution, SolverState]:
        """What is returned: the policy of `solve`, unless one that was tried really earned more than that will.

        A promise counts less than experience, by the most that promises were too high in the last episodes.
        """
        solution, after = self.solve(problem, state, key)
        if self.choices.returned == "newest" or not after.proven.any:
            return solution, after
        tried = best(after.proven)
        if float(after.promised) - float(np.max(after.optimism)) > tried.earned:
            return solution, after
        again = jax.random.fold_in(key, self.choices.checks + 2)
        chosen = self._gate.candidate(problem, tried.network, TRIED, again)
        return self._solution(problem, chosen, solution.metrics, after)

    def _solution(
        self, problem: Problem, chosen: Candidate, training: Metrics, state: SolverState
    ) -> tuple[Solution, SolverState]:
        """A policy that was chosen, with what samples say of it; and the state that knows so."""
        found = chosen.found
        state = state._replace(
            played=chosen.network,
            origin=jnp.asarray(chosen.origin, jnp.int32),
            cleared=jnp.asarray(chosen.violation <= 0),
            promised=jnp.asarray(chosen.earned * self.return_scale, PLAN),
        )
        metrics = {
            **training,
            "origin": chosen.origin,
            "predicted_return": float(found.reward),
            "multiplier": float(jnp.mean(state.multipliers)),
            "curiosity": float(state.curiosity),
        }
        if len(found.costs):
            metrics |= {"worst_sample": float(jnp.max(found.costs)), "mean_sample": float(jnp.mean(found.costs))}
        evaluation = Evaluation(found.reward, jnp.asarray(chosen.violation), found.information)
        return Solution(NetworkPolicy(state.played, self.units), evaluation, float(problem.threshold), metrics), state

    def _best(self, problem: Problem, tried: list[Candidate]) -> Candidate | None:
        """Of those that pass, the one that samples promise most of; where information is demanded, the last one."""
        passing = [each for each in tried if each.violation <= 0]
        if not passing:
            return None
        return passing[-1] if problem.threshold > 0 else max(passing, key=lambda each: each.earned)

    def _instead(self, problem: Problem, state: SolverState, tried: list[Candidate], key: PRNGKey) -> Candidate:
        """What is played if nothing that was tried passes.

        It is the newest policy that passed and then really cost little; if there is none, the prior's. Data that cost
        more than the budget make no prior policy to rely on, unless it passes: then it is the action that the task
        calls safe, whatever the samples say of it. Without one it is whichever violates least.
        """
        check_key = jax.random.fold_in(key, self.choices.checks + 1)
        if state.proven.any:
            return self._gate.candidate(problem, newest(state.proven), PASSED, check_key)
        cloned = self._gate.candidate(problem, state.cloned, CLONED, check_key)
        if cloned.violation <= 0 or self.reliable:
            return cloned
        if self.safe_action is not None:
            network = constant(state.cloned, self.units, jnp.asarray(self.safe_action))
            return self._gate.candidate(problem, network, RESTING, check_key)
        return min((*tried, cloned), key=lambda each: each.violation)

    def observed(self, state: SolverState, episode: Episode) -> SolverState:
        """After an episode of its policy: one that passed and cost little is one to come back to.

        One that was played before is forgotten when the mean over its episodes is no longer little. An episode that was
        cut short says nothing.
        """
        if episode.ended not in ("horizon", "terminated", "truncated"):
            return state
        earned = float(np.sum(episode.rewards))
        state = state._replace(optimism=_pushed(state.optimism, float(state.promised) - earned))
        costs = np.array([total(episode.costs[:, i], how) for i, how in enumerate(self.aggregations)], np.float32)
        budgets = np.array(self.budgets, np.float32)
        little = budgets - np.float32(1 - self.choices.good) * np.abs(budgets)
        if is_newest(state.proven, state.played):
            return state._replace(proven=played_again(state.proven, costs, earned, little))
        if not bool(state.cleared) or int(state.origin) == RESTING or np.any(costs > little):
            return state
        return state._replace(proven=added(state.proven, state.played, costs, earned))

    def _annealed(self, problem: Problem, before: Forecast, block: int) -> Float[Array, " k"]:
        """The bounds of an offline block: at first none, then what the policy cost on the worst sample when they began
        to count, then their own."""
        since = block - self.choices.free_blocks
        if since <= 0:
            return problem.bounds + FREE * cost_units(problem)
        left = max(0.0, 1 - since / self.choices.annealing) ** 1.5 if self.choices.annealing else 0.0
        if not left or not len(before.costs):
            return self._wanted(problem)
        return self._wanted(problem) + left * jnp.maximum(jnp.max(before.costs, axis=0) - self._wanted(problem), 0)

    def _wanted(self, problem: Problem) -> Float[Array, " k"]:
        """What training aims at: a little less than the gate demands, since it sees other samples."""
        return problem.bounds - self.choices.margin * jnp.abs(problem.bounds)

    @property
    def _annealed_after(self) -> int:
        """The offline block from which on the bounds are their own."""
        return self.choices.free_blocks + self.choices.annealing

    def _offline_rate(self, block: int) -> float:
        """Of an offline block: it falls from `offline_rate` to `policy_rate`, by the same factor in every block."""
        first, last = self.choices.offline_rate or self.choices.policy_rate, self.choices.policy_rate
        return first * (last / first) ** (block / self.choices.offline_blocks) if first else 0.0

    def _block(
        self,
        problem: Problem,
        state: SolverState,
        key: PRNGKey,
        bounds: Float[Array, " k"] | None = None,
        rate: float | None = None,
    ) -> tuple[SolverState, Forecast]:
        """The updates between two checks, within these bounds, by default those that are wanted."""
        for i in range(self.choices.rounds):
            state, seen = self._round(problem, state, jax.random.fold_in(key, i), bounds, rate)
        return state, seen

    def _round(
        self, problem: Problem, state: SolverState, key: PRNGKey, bounds: Float[Array, " k"] | None, rate: float | None
    ) -> tuple[SolverState, Forecast]:
        start_key, train_key = jax.random.split(key)
        count = self.choices.updates
        starts = draw_starts(self.start, count * (self.choices.each + self.choices.nominal), start_key)
        starts = starts.reshape(count, -1, starts.shape[-1]).astype(PLAN)
        speed = jnp.asarray(self.choices.policy_rate if rate is None else rate, PLAN)
        shape = (problem.constraint_count, len(self.budgets))
        multipliers = jnp.broadcast_to(state.multipliers[None], shape)
        before = Trained(state.network, state.moments, multipliers, state.curiosity)
        limits, weights = self._wanted(problem) if bounds is None else bounds, self._weights
        critic = state.critic
        if self.choices.segment:
            after, critic, seen = self._segments(problem, before, critic, starts, limits, speed, train_key)
        else:
            after, seen = train(before, self.units, problem, starts, limits, self._sizes, weights, speed, train_key)
        return state._replace(
            network=after.network,
            moments=after.moments,
            multipliers=jnp.mean(after.multipliers, axis=0) if shape[0] else jnp.zeros_like(state.multipliers),
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
        rate: Scalar,
        key: PRNGKey,
    ) -> tuple[Trained, Critic, Forecast]:
        """Whole episodes say how much each constraint presses; then gradients go through segments."""
        seen_key, visit_key, train_key, recall_key = jax.random.split(key, 4)
        sizes, weights, count = self._sizes, self._weights, 0 if problem.samples is None else len(problem.samples)
        seen = forecast(before.network, self.units, problem, starts[0], self.horizon, sizes.nominal, seen_key)
        g, lacking = constraints(problem, seen.costs, bounds), missing(problem, seen.information)
        eta, limit = weights.multiplier_rate, weights.multiplier_limit
        multipliers = updated(weights.kind, before.multipliers, g, eta, limit)
        curiosity = jnp.where(problem.threshold > 0, updated(weights.kind, before.curiosity, lacking, eta, limit), 0)
        before = before._replace(multipliers=multipliers, curiosity=curiosity)
        pushed = pressures(problem, seen, before, weights, bounds, self._information_unit(problem))
        rows = rows_of(problem, sizes.each, sizes.nominal)
        starts = self._recalled(starts, recall_key)
        placed = spread_starts(starts[0], count, sizes.each, sizes.nominal)
        first = visited(before.network, self.units, problem, rows, placed, self.horizon, sizes.segment, visit_key)
        scale = self._scale(problem)
        network, moments, critic = train_segments(
            before, critic, self.units, problem, first, starts, pushed, scale, sizes, weights, rate, train_key
        )
        return before._replace(network=network, moments=moments), critic, seen

    def _recalled(self, starts: Float[Array, "U K dx"], key: PRNGKey) -> Float[Array, "U K dx"]:
        """The starts of segments: some of them are states of the data, which the policy need not find by itself."""
        if self.data is None or not self.choices.recalled:
            return starts
        numbers = jax.random.randint(key, starts.shape[:2], 0, len(self.data.states))
        states = jnp.asarray(self.data.states, PLAN)[numbers]
        return jnp.where(jnp.asarray(recalled_starts(self._sizes))[None, :, None], states, starts)

    def _scale(self, problem: Problem) -> Float[Array, " v"]:
        """The unit of each signal per step: of an episode it is that of the whole."""
        units = [self.return_scale, *np.asarray(cost_units(problem), float)]
        return jnp.asarray(np.array([*units, self._information_unit(problem)]) / self.horizon, PLAN)

    def _information_unit(self, problem: Problem) -> float:
        """Of J_s: what bounds it, from above or from below."""
        return self.choices.trust or float(problem.threshold) or 1.0

    @property
    def _gate(self) -> Gate:
        chosen = self.choices
        return Gate(self.start, self.units, self.horizon, self.return_scale, chosen.check_starts, chosen.safety_weight)

    @property
    def _sizes(self) -> Sizes:
        chosen = self.choices
        return Sizes(
            horizon=self.horizon,
            each=chosen.each,
            nominal=chosen.nominal,
            unsteadiness=chosen.unsteadiness,
            updates=chosen.updates,
            segment=chosen.segment,
            robust=chosen.robust,
            recalled=chosen.recalled if self.data is not None else 0.0,
            steepest=chosen.steepest,
        )

    @property
    def _weights(self) -> Weights:
        chosen = self.choices
        return Weights(
            kind=chosen.penalty,
            discount=chosen.discount,
            return_scale=self.return_scale,
            total=chosen.safety_weight,
            curvature=chosen.curvature,
            multiplier_rate=chosen.multiplier_rate,
            multiplier_limit=chosen.multiplier_limit,
            trust=chosen.trust,
            trust_weight=chosen.trust_weight,
        )


PATIENT = 3
"""Offline blocks without improvement, after which a policy that has collapsed goes back to the best."""
FREE = 1e6
"""How far away a bound is that does not count yet, in units of the bound."""
RECENT = 8
"""Episodes over which promises are compared with what was earned."""


def _pushed(recent: Float[Array, " recent"], value: float) -> Float[Array, " recent"]:
    """With a new value in front, without the oldest."""
    return jnp.asarray(np.concatenate([[value], np.asarray(recent)[:-1]]).astype(np.float32))
