"""The actor-critic as a way to improve a network."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._jax import PLAN
from ...problem import Problem
from ...starts import draw_starts
from ...transitions import Episode
from ...types import Flag, PRNGKey, Scalar
from ..network.domain import Domain
from ..network.forecast import Forecast
from ..network.improver import Trained, information_unit, signal_units, weights_of
from .choices import ActorCriticChoices
from .critics import Critics, init_critics
from .updates import Learned, Round, Sizes, Soft, Sources, fit_critics, init_soft, train

__all__ = ["ActorCritic", "Memory"]

VISITED = 10_000
"""States of episodes that are remembered."""
INITIAL = 256
"""Initial states that a round draws."""


class Memory(NamedTuple):
    """What it remembers."""

    critics: Critics
    soft: Soft
    fitted: Flag
    """Whether the critics have learned anything."""
    visited: Float[Array, "V dx"]
    """States of the last episodes, in a ring."""
    total: Int[Array, ""]
    """How many were ever put into it."""


@dataclass(frozen=True, eq=False)
class ActorCritic:
    """The improver of the paper: critics of every sample, an actor on all of them."""

    domain: Domain
    choices: ActorCriticChoices

    def init(self, key: PRNGKey) -> Memory:
        dx, da = len(self.domain.units.mean), len(self.domain.units.low)
        return Memory(
            critics=init_critics(key, dx, da, 2 + len(self.domain.budgets), self.choices.critic_width),
            soft=init_soft(da, self.choices.std),
            fitted=jnp.zeros((), bool),
            visited=jnp.zeros((VISITED, dx), PLAN),
            total=jnp.zeros((), jnp.int32),
        )

    def improve(
        self, problem: Problem, trained: Trained, memory: Memory, bounds: Float[Array, " k"], rate: Scalar, key: PRNGKey
    ) -> tuple[Trained, Memory, Forecast]:
        source_key, fit_key, train_key = jax.random.split(key, 3)
        weights = weights_of(self.choices, self.domain.return_scale)
        learned = Learned(trained, memory.critics, memory.soft)
        scale, unit = signal_units(problem, self.domain, weights), information_unit(problem, weights)
        sources = self._sources(memory, source_key)
        setting = Round(self.domain.units, problem, sources, bounds, scale, self._sizes, weights, unit)
        if not memory.fitted and self.choices.first_fit:
            learned = learned._replace(critics=fit_critics(learned, setting, self.choices.first_fit, fit_key))
        learned, seen = train(learned, setting, rate, train_key)
        after = memory._replace(critics=learned.critics, soft=learned.soft, fitted=jnp.ones((), bool))
        return learned.trained, after, seen

    def observed(self, memory: Memory, episode: Episode) -> Memory:
        """With the states of an episode in the place of the oldest."""
        states, ring, count = np.asarray(episode.states[:-1], np.float32), np.array(memory.visited), int(memory.total)
        places = (count + np.arange(len(states))) % VISITED
        ring[places] = states
        return memory._replace(visited=jnp.asarray(ring), total=jnp.asarray(np.int32(count + len(states))))

    def _sources(self, memory: Memory, key: PRNGKey) -> Sources:
        """Recorded states are those of the data, and as many draws of those of the episodes."""
        start_key, draw_key = jax.random.split(key)
        initial = draw_starts(self.domain.start, INITIAL, start_key).astype(PLAN)
        data = None if self.domain.data is None else np.asarray(self.domain.data.states, np.float32)
        count = min(int(memory.total), VISITED)
        if data is None and not count:
            return Sources(initial, initial, initial)
        old = np.asarray(memory.visited)[:count] if data is None else data
        size = VISITED if data is None else len(data)
        drawn = np.asarray(jax.random.uniform(draw_key, (2, size), PLAN))
        new = (
            np.asarray(memory.visited)[(drawn[0] * count).astype(int)]
            if count
            else old[(drawn[0] * len(old)).astype(int)]
        )
        recorded = jnp.asarray(np.concatenate([old[(drawn[1] * len(old)).astype(int)], new]), PLAN)
        return Sources(recorded, initial, recorded if self.choices.replayed else initial)

    @property
    def _sizes(self) -> Sizes:
        chosen = self.choices
        return Sizes(
            horizon=self.domain.horizon,
            each=chosen.rollouts,
            steps=chosen.rollout_steps,
            parts=chosen.rollout_parts,
            fresh=chosen.fresh,
            updates=chosen.updates,
            critic_updates=chosen.critic_updates,
            critic_batch=chosen.critic_batch,
            critic_rate=chosen.critic_rate,
            actor_batch=chosen.actor_batch,
            starts=chosen.constraint_starts,
            discount=chosen.discount,
            trace=chosen.trace,
            entropy=chosen.entropy * len(self.domain.units.low),
            anchor=chosen.anchor,
            averaging=chosen.averaging,
            robust=chosen.robust,
            steered=chosen.steered,
        )
