"""Trajectories that follow another member at every step (TS1): the models of MBPO."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...types import Action, Index, PRNGKey, Scalar, State
from ..protocol import Forgetful, Steps
from .model import Combination, Ensemble, combine

__all__ = ["Switching", "SwitchingModel", "SwitchingRows"]


class SwitchingRows(Forgetful, eqx.Module):
    """Rows of which each draws a member anew at every step. No member is wider or narrower than it was trained."""

    ensemble: Ensemble
    count: int = eqx.field(static=True)

    @property
    def code(self) -> Float[Array, "n M"]:
        """All rows follow one law, the mean of the members in expectation."""
        return jnp.zeros((self.count, self.ensemble.nets.count), PLAN)

    def noises(self, key: PRNGKey, steps: int, training: bool) -> Float[Array, "T n z"]:
        """What the members' noise needs, and in the last column a number in [0, 1) that chooses the member."""
        noise_key, member_key = jax.random.split(key)
        plain = Combination(self.ensemble, jnp.zeros(self.ensemble.nets.count, PLAN)).beside(self.count, 0)
        chosen = jax.random.uniform(member_key, (steps, self.count, 1), PLAN)
        return jnp.concatenate([plain.noises(noise_key, steps, training), chosen], axis=-1)

    def steps(
        self, x: Float[Array, "n dx"], a: Float[Array, "n da"], noise: Float[Array, "n z"]
    ) -> tuple[Steps, Float[Array, " n"]]:
        said, M = self.ensemble.outputs(x, a), self.ensemble.nets.count
        member = jnp.floor(noise[:, -1] * M).astype(jnp.int32)
        drawn = None if self.ensemble.noisy == "never" else noise[:, :-1]
        followed = combine(said, jax.nn.one_hot(member, M, dtype=PLAN))
        return self.ensemble.decode(x, a, followed, drawn), self.ensemble.disagreement(said)


class SwitchingModel(eqx.Module):
    """One such trajectory as a model: it draws the member with the next state. Reward and costs are the mean's."""

    ensemble: Ensemble

    @property
    def stochastic(self) -> bool:
        return True

    @property
    def _mean(self) -> Combination:
        return Combination(self.ensemble, jnp.zeros(self.ensemble.nets.count, PLAN))

    def __call__(self, x: State, a: Action) -> State:
        return self._mean(x, a)

    def draw(self, x: State, a: Action, key: PRNGKey) -> State:
        rows = self.beside(1, 0)
        moved, _ = rows.steps(x.astype(PLAN)[None], a.astype(PLAN)[None], rows.noises(key, 1, False)[0])
        return moved.states[0]

    def reward(self, x: State, a: Action, y: State) -> Scalar:
        return self._mean.reward(x, a, y)

    def costs(self, x: State, a: Action, y: State) -> Float[Array, " k"]:
        return self._mean.costs(x, a, y)

    def beside(self, each: int, nominal: int) -> SwitchingRows:
        """So many rows of it, however they are called."""
        return SwitchingRows(self.ensemble, each + nominal)


class Switching(eqx.Module):
    """So many of them as samples: they differ by what they draw only, which is new whenever they are asked."""

    ensemble: Ensemble
    count: int = eqx.field(static=True)

    def __len__(self) -> int:
        return self.count

    def member(self, m: Index) -> SwitchingModel:
        return SwitchingModel(self.ensemble)

    def beside(self, each: int, nominal: int) -> SwitchingRows:
        """So many rows of every one, then so many of the nominal model, which is another."""
        return SwitchingRows(self.ensemble, each * self.count + nominal)
