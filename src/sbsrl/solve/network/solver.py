"""The solver: it trains a network between episodes, and lets nothing be played that was not checked."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...costs import total
from ...networks import Network, equal, init_network
from ...policy import Metrics, Policy
from ...problem import Evaluation, Problem
from ...recorded_costs import mean_costs
from ...transitions import Episode, Transitions
from ...types import PRNGKey
from ..protocol import Solution
from .backup import EVALUATED, RENEWED, Backup, Filtered, evaluate_prior, switched
from .choices import NetworkChoices
from .domain import Domain
from .forecast import Forecast
from .gate import CLONED, COLLAPSE, KEPT, PASSED, RESTING, TRAINED, TRIED, Candidate, Gate, collapsed
from .improver import OPTIMISER, Improver, Listening, Trained, signal_units, weights_of
from .network_policy import NetworkPolicy, clone, constant
from .offline import OfflinePhase, wanted
from .outlook import added_to, nothing_visited, outlook_of, placed
from .proven import added, best, is_newest, newest, played_again
from .region import Region, after_another, moved, shortfall, shrunk, within
from .segments import init_critic
from .state import SolverState, init_state, pushed, times_dearer

__all__ = ["NetworkSolver", "SolverState"]


@dataclass(frozen=True, eq=False)
class NetworkSolver:
    """A network that an improver trains on the samples; a gate before every episode."""

    domain: Domain
    choices: NetworkChoices
    improver: Improver

    def init(self, key: PRNGKey) -> SolverState:
        """A network that has learned nothing."""
        units, chosen = self.domain.units, self.choices
        sizes = (len(units.mean), *(chosen.policy_width,) * chosen.policy_layers, len(units.low))
        network = init_network(key, sizes, last=0.1)
        costs = len(self.domain.budgets)
        backup = init_critic(jax.random.fold_in(key, 2), len(units.mean), 2 + costs, chosen.critic_width)
        memory = self.improver.init(jax.random.fold_in(key, 1))
        visited = nothing_visited(len(units.mean), chosen.pieces)
        return init_state(network, costs, memory, backup, visited, chosen.radius)

    def prepare(self, problem: Problem, state: SolverState, key: PRNGKey) -> tuple[SolverState, Metrics]:
        """The offline phase: clones the behaviour, then improves it for as long as fresh samples agree that it does."""
        clone_key, key = jax.random.split(key)
        data = self.domain.data
        if data is not None:
            states, actions = (jnp.asarray(part, PLAN) for part in (data.states, data.actions))
            network = clone(state.network, self.domain.units, states, actions, self.choices.cloning_updates, clone_key)
            state = state._replace(network=network, cloned=network, played=network)
            state = state._replace(region=self._about(network, data))
        problem = self._placed(problem.demanding(jnp.zeros((), PLAN), problem.steps), state, key)
        state = self._compared(problem, state, key)
        problem = self._anchored(problem, state, key)
        found = OfflinePhase(self.choices, self._gate, self._block).improved(problem, state, key)
        return found.state._replace(prior=found.state.network), {
            "offline_updates": found.blocks * self.choices.rounds * self.choices.updates,
            "clone_score": found.first.score,
            "offline_score": found.top.score,
            "offline_violation": found.top.violation,
        }

    def _about(self, clone: Network, data: Transitions) -> Region:
        """A region about the clone of these data."""
        costs = jnp.asarray(mean_costs(self.domain.aggregations, data), PLAN)
        return Region(clone, jnp.asarray(self.choices.radius, PLAN), costs, jnp.ones((), PLAN))

    def _compared(self, problem: Problem, state: SolverState, key: PRNGKey) -> SolverState:
        """With what the data cost, and what is foretold of their clone."""
        if not self.choices.corrected or problem.samples is None:
            return state
        pair = jnp.stack([state.region.costs, self._foretold(problem, state.cloned, key)])
        return state._replace(compared=jnp.broadcast_to(pair, state.compared.shape))

    def learned(self, state: SolverState) -> dict[str, NetworkPolicy]:
        """The clone, and what became of it offline: the prior policy."""
        networks = {"clone": state.cloned, "prior": state.prior}
        return {name: NetworkPolicy(network, self.domain.units) for name, network in networks.items()}

    def ways_out(self, state: SolverState) -> tuple[NetworkPolicy, ...]:
        """The prior policy; then what knows nothing new: the clone of data within the budget, else the safe action."""
        last = state.cloned if self.domain.reliable else self._resting(state)
        networks = (state.prior,) if last is None else (state.prior, last)
        return tuple(NetworkPolicy(network, self.domain.units) for network in networks)

    def _resting(self, state: SolverState) -> Network | None:
        """The action that the task calls safe, always."""
        if self.domain.safe_action is None:
            return None
        return constant(state.cloned, self.domain.units, jnp.asarray(self.domain.safe_action))

    def solve(self, problem: Problem, state: SolverState, key: PRNGKey) -> tuple[Solution, SolverState]:
        """Trains on, then checks with samples and initial states that training has not seen, until one check passes.

        After a check that failed, training goes on, if so chosen with the samples that refuted the policy. Training
        that loses what the policy could do is undone. What is played is the best that passes, the policy as it was
        before included; if nothing passes, see `_instead`.
        """
        key = jax.random.fold_in(key, bool(problem.threshold > 0))  # an episode may be solved twice
        problem = self._anchored(self._placed(problem, state, key), state, key)
        state = self._evaluated(problem, state, jax.random.fold_in(key, self.choices.checks + 3))
        begun, problem = state, self._switched(problem, state)
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
        problem = self._switched(self._anchored(self._placed(problem, after, again), after, again), after)
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
            promised=jnp.asarray(chosen.earned * self.domain.return_scale, PLAN),
            foretold=jnp.mean(found.costs, axis=0) if len(found.costs) else state.foretold,
        )
        metrics = {
            **training,
            "origin": chosen.origin,
            "predicted_return": float(found.reward),
            "multiplier": float(jnp.mean(state.multipliers)),
            "curiosity": float(state.curiosity),
            "bound": float(problem.bounds[0]),
            "radius": float(state.region.radius),
        }
        if len(found.costs):
            metrics |= {"worst_sample": float(jnp.max(found.costs)), "mean_sample": float(jnp.mean(found.costs))}
        evaluation = Evaluation(found.reward, jnp.asarray(chosen.violation), found.information)
        return Solution(self._policy(problem, state), evaluation, float(problem.threshold), metrics), state

    def _policy(self, problem: Problem, state: SolverState) -> Policy:
        """What is played: the network, or where episodes may go over to the prior policy, the network until then."""
        policy = NetworkPolicy(state.played, self.domain.units)
        if problem.switch is None:
            return policy
        return Filtered(policy, self._backup(problem, state), problem.nominal, problem.uncertainty, problem.switch)

    def _backup(self, problem: Problem, state: SolverState) -> Backup:
        scale = signal_units(problem, self.domain, weights_of(self.choices, self.domain.return_scale))
        return Backup(state.prior, state.backup.network, self.domain.units, scale, self.domain.horizon)

    def _evaluated(self, problem: Problem, state: SolverState, key: PRNGKey) -> SolverState:
        """With critics of the prior policy that know the models of this episode, where anybody asks them."""
        if problem.switch is None:
            return state
        assert self.domain.data is not None  # the method was refused otherwise
        rounds = RENEWED if state.evaluated else EVALUATED
        states = jnp.asarray(self.domain.data.states, PLAN)
        backup, discount = self._backup(problem, state), self.choices.discount
        critic = evaluate_prior(
            state.backup, backup, problem, state.network, states, discount, rounds, bool(self.choices.pieces), key
        )
        return state._replace(backup=critic, evaluated=jnp.ones((), bool))

    def _switched(self, problem: Problem, state: SolverState) -> Problem:
        """The problem in which episodes of models go over to the prior policy, where they are to."""
        return problem if problem.switch is None else switched(problem, self._backup(problem, state))

    def _anchored(self, problem: Problem, state: SolverState, key: PRNGKey) -> Problem:
        """The problem with bounds that are lower by what is really paid more than is foretold.

        In a trust region the reference tells how much more, else the last policies how many times more.
        """
        if problem.samples is None:
            return problem
        if self.choices.radius:
            foretold = self._foretold(problem, state.region.reference, key)
            return problem.bounded(problem.bounds - shortfall(state.region, foretold))
        if self.choices.corrected:
            return problem.bounded(problem.bounds / times_dearer(state.compared))
        return problem

    def _foretold(self, problem: Problem, network: Network, key: PRNGKey) -> Float[Array, " k"]:
        """What a policy costs, the mean over the samples."""
        check_key = jax.random.fold_in(key, self.choices.checks + 5)
        return jnp.mean(self._gate.checked(problem, network, check_key).costs, axis=0)

    def _placed(self, problem: Problem, state: SolverState, key: PRNGKey) -> Problem:
        """The problem with visited states to begin at, where models are followed for pieces of an episode."""
        if not self.choices.pieces:
            return problem
        assert self.domain.data is not None  # other settings were refused
        place_key = jax.random.fold_in(key, self.choices.checks + 4)
        return placed(problem, state.visited, self.domain.data.states, self.choices.recent, place_key)

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
        if cloned.violation <= 0 or self.domain.reliable:
            return cloned
        if (resting := self._resting(state)) is not None:
            return self._gate.candidate(problem, resting, RESTING, check_key)
        return min((*tried, cloned), key=lambda each: each.violation)

    def observed(self, state: SolverState, episode: Episode) -> SolverState:
        """After an episode of its policy: one that passed and cost little is one to come back to.

        One that was played before is forgotten when the mean over its episodes is no longer little. An episode that was
        cut short says nothing.
        """
        if isinstance(self.improver, Listening):
            state = state._replace(memory=self.improver.observed(state.memory, episode))
        if episode.ended not in ("horizon", "terminated", "truncated"):
            return state
        earned = float(np.sum(episode.rewards))
        costs = np.array(
            [total(episode.costs[:, i], how) for i, how in enumerate(self.domain.aggregations)], np.float32
        )
        budgets = np.array(self.domain.budgets, np.float32)
        little = budgets - np.float32(1 - self.choices.good) * np.abs(budgets)
        if self.choices.pieces and self._shows_where(state, bool(np.all(costs <= little))):
            state = state._replace(visited=added_to(state.visited, episode.states[:-1]))
        if self.choices.radius:
            state = self._settled(state, costs, bool(np.all(costs <= little)), earned)
        state = state._replace(optimism=pushed(state.optimism, float(state.promised) - earned))
        if bool(state.cleared) and int(state.origin) != RESTING:
            state = state._replace(compared=pushed(state.compared, np.stack([costs, np.asarray(state.foretold)])))
        if is_newest(state.proven, state.played):
            return state._replace(proven=played_again(state.proven, costs, earned, little))
        if not bool(state.cleared) or int(state.origin) == RESTING or np.any(costs > little):
            return state
        return state._replace(proven=added(state.proven, state.played, costs, earned))

    def _shows_where(self, state: SolverState, little: bool) -> bool:
        """Whether an episode shows where policies come to that will be played.

        One that failed and is not come back to shows where they do not: a body that fell lies there to the end.
        """
        return little or not self.choices.radius

    def _settled(self, state: SolverState, costs: Float[np.ndarray, " k"], little: bool, earned: float) -> SolverState:
        """With the trust region about the policy that was played, if it did what was foretold; else a smaller one.

        What was trained and not played is forgotten: the next policy begins where the last one proved itself.
        """
        region = state.region
        if equal(state.played, region.reference):
            return _begun_anew(state._replace(region=after_another(region, costs)))
        if not bool(state.cleared) or int(state.origin) not in (TRAINED, KEPT):
            return _begun_anew(state)
        if little and earned >= float(state.promised) - COLLAPSE * self.domain.return_scale:
            state = state._replace(region=moved(region, state.played, costs))
            return state if equal(state.network, state.played) else _begun_anew(state)
        return _begun_anew(state._replace(region=shrunk(region, self.choices.radius)))

    def _block(
        self,
        problem: Problem,
        state: SolverState,
        key: PRNGKey,
        bounds: Float[Array, " k"] | None = None,
        rate: float | None = None,
    ) -> tuple[SolverState, Forecast]:
        """The updates between two checks, within these bounds, by default those that are wanted."""
        bounds = wanted(problem, self.choices) if bounds is None else bounds
        speed = jnp.asarray(self.choices.policy_rate if rate is None else rate, PLAN)
        for i in range(self.choices.rounds):
            multipliers = jnp.broadcast_to(
                state.multipliers[None], (problem.constraint_count, len(self.domain.budgets))
            )
            before = Trained(state.network, state.moments, multipliers, state.curiosity)
            after, memory, seen = self.improver.improve(
                problem, before, state.memory, bounds, speed, jax.random.fold_in(key, i)
            )
            state = state._replace(
                network=after.network,
                moments=after.moments,
                multipliers=jnp.mean(after.multipliers, axis=0)
                if len(multipliers)
                else jnp.zeros_like(state.multipliers),
                curiosity=after.curiosity,
                memory=memory,
            )
            if self.choices.radius:
                near = within(state.network, state.region, self.domain.units, problem.starts)
                state = state._replace(network=near)
        return state, seen

    @property
    def _gate(self) -> Gate:
        chosen, domain = self.choices, self.domain
        return Gate(
            outlook_of(domain, chosen), domain.units, domain.return_scale, chosen.check_starts, chosen.safety_weight
        )


def _begun_anew(state: SolverState) -> SolverState:
    """Training goes on from the last policy that proved itself."""
    return state._replace(network=state.region.reference, moments=OPTIMISER.init(state.region.reference))
