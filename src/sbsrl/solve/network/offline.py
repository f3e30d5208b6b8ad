"""The offline phase: a clone of the behaviour is improved for as long as fresh samples agree that it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...problem import Problem
from ...types import PRNGKey
from .choices import NetworkChoices
from .forecast import Forecast, cost_units
from .gate import CLONED, TRAINED, Candidate, Gate, collapsed
from .state import SolverState

__all__ = ["Block", "Improved", "OfflinePhase", "wanted"]

PATIENT = 3
"""Offline blocks without improvement, after which a policy that has collapsed goes back to the best."""
FREE = 1e6
"""How far away a bound is that does not count yet, in units of the bound."""


Block = Callable[[Problem, SolverState, PRNGKey, Float[Array, " k"], float], tuple[SolverState, Forecast]]
"""The updates between two checks, within these bounds and at this learning rate."""


class Improved(NamedTuple):
    """What came of it."""

    state: SolverState
    """With the best policy."""
    blocks: int
    """After how many blocks it was found."""
    first: Candidate
    """The clone."""
    top: Candidate
    """The best."""


@dataclass(frozen=True, eq=False)
class OfflinePhase:
    """Blocks of training, each followed by a check with fresh samples."""

    choices: NetworkChoices
    gate: Gate
    block: Block

    def improved(self, problem: Problem, state: SolverState, key: PRNGKey) -> Improved:
        """The best state by the word of fresh samples: one that passes before one that does not, then by its score.

        It ends after so many blocks, or after too many without improvement.
        """
        improved, blocks, since = state, 0, 0
        first = now = top = before = self.gate.candidate(problem, state.network, CLONED, jax.random.fold_in(key, 0))
        for i in range(1, self.choices.offline_blocks + 1):
            block_key, check_key = jax.random.split(jax.random.fold_in(key, i))
            before = now if i - 1 == self.choices.free_blocks else before
            bounds = self._annealed(problem, before.found, i)
            asked = now.problem if self.choices.refuted else problem
            state, _ = self.block(asked, state, block_key, bounds, self._rate(i))
            now = self.gate.candidate(problem, state.network, TRAINED, check_key)
            better = (now.violation <= 0, now.score) > (top.violation <= 0, top.score)
            since = 0 if better else since + 1
            if better:
                improved, top, blocks = state, now, i
            if since >= self.choices.offline_patience:
                break
            if since and since % PATIENT == 0 and collapsed(now, top) and i > self._annealed_after:
                state = improved._replace(multipliers=state.multipliers, memory=state.memory)
        return Improved(improved, blocks, first, top)

    def _annealed(self, problem: Problem, before: Forecast, block: int) -> Float[Array, " k"]:
        """The bounds of a block: at first none, then what the policy cost on the worst sample when they began to count,
        then their own."""
        since, aim = block - self.choices.free_blocks, wanted(problem, self.choices)
        if since <= 0:
            return problem.bounds + FREE * cost_units(problem)
        left = max(0.0, 1 - since / self.choices.annealing) ** 1.5 if self.choices.annealing else 0.0
        if not left or not len(before.costs):
            return aim
        return aim + left * jnp.maximum(jnp.max(before.costs, axis=0) - aim, 0)

    @property
    def _annealed_after(self) -> int:
        """The block from which on the bounds are their own."""
        return self.choices.free_blocks + self.choices.annealing

    def _rate(self, block: int) -> float:
        """It falls from `offline_rate` to `policy_rate`, by the same factor in every block."""
        first, last = self.choices.offline_rate or self.choices.policy_rate, self.choices.policy_rate
        return first * (last / first) ** (block / self.choices.offline_blocks) if first else 0.0


def wanted(problem: Problem, choices: NetworkChoices) -> Float[Array, " k"]:
    """What training aims at: a little less than the gate demands, since it sees other samples."""
    return problem.bounds - choices.margin * jnp.abs(problem.bounds)
