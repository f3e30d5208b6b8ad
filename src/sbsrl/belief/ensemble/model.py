"""Models made of an ensemble: the mean of its members, and combinations of them as samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._jax import PLAN
from ...model import KnownSignals
from ...structure import CostStructure, Structure
from ...types import Action, Index, PRNGKey, Scalar, State
from ..protocol import Forgetful, Steps
from .nets import INPUT_LIMIT, Nets, Outputs, Range, Scales, cost_of, log_variance, nominal_outputs

__all__ = ["NOISY", "Combination", "Combinations", "Disagreement", "Ensemble", "Samples", "combine"]


NOISY = ("always", "training", "never")
"""Always; or only for the training of policies, which become robust by it; or never."""


class Ensemble(eqx.Module):
    """All that predictions need."""

    nets: Nets
    scales: Scales
    range: Range
    caps: Float[Array, " k"]
    """The largest cost of a step that is believed possible, of each cost; of the data where more is known."""
    structure: Structure = eqx.field(static=True)
    cost_structure: CostStructure | None = eqx.field(static=True)
    known: KnownSignals = eqx.field(static=True)
    noisy: str = eqx.field(static=True)
    """When next states are drawn with the variance that the members predict."""
    state_share: float = eqx.field(static=True, default=1.0)
    """How far samples of the dynamics and the reward are spread, compared with those of the cost."""

    def part(self, x: Float[Array, "*n dx"]) -> Float[Array, "*n p"]:
        """The numbers of states whose change is predicted."""
        return x[..., np.array(self.structure.part)]

    def outputs(self, x: Float[Array, "*M n dx"], a: Float[Array, "*M n da"]) -> Outputs:
        """What every member says of these states and actions."""
        scaled = jnp.clip(_standard(x, self.scales.input_mean, self.scales.input_std), -INPUT_LIMIT, INPUT_LIMIT)
        actions = _standard(a, self.scales.action_mean, self.scales.action_std)
        inputs = jnp.concatenate([scaled, actions], axis=-1)
        said = self.nets(inputs, *self._deciding(x, a, inputs, scaled))
        return Outputs(said.change, said.reward, cost_of(said.logits, self.most(x)), said.spread)

    def _deciding(
        self, x: Float[Array, "*M n dx"], a: Float[Array, "*M n da"], inputs: Array, scaled: Array
    ) -> tuple[Float[Array, "*M n q"], Float[Array, "*M n r"]]:
        """What the networks of the costs see, and what their random prior does."""
        known = self.cost_structure
        if known is None:
            return inputs, self.part(scaled)
        if known.features is None:
            chosen = inputs[..., np.array(known.inputs)]
            return chosen, chosen
        seen = jnp.clip(known.deciding(x, a), -INPUT_LIMIT, INPUT_LIMIT)
        return seen, seen

    def most(self, x: Float[Array, "*M n dx"]) -> Float[Array, "*M n k"]:
        """What a step from each of these states can cost at most."""
        if self.cost_structure is None or self.cost_structure.most is None:
            return jnp.broadcast_to(self.caps, (*x.shape[:-1], len(self.caps)))
        return jnp.vectorize(self.cost_structure.most, signature="(d)->(k)")(x)

    def decode(self, x: Float[Array, "n dx"], a: Float[Array, "n da"], said: Outputs, noise: Array | None) -> Steps:
        """What the outputs mean, kept within what the data support; `noise` is standard normal, or None."""
        change = said.change
        if noise is not None:
            change = change + jnp.exp(0.5 * log_variance(said.spread)) * noise
        moved = self.part(x) + _original(change, self.scales.change_mean, self.scales.change_std)
        limits = (jnp.broadcast_to(each, moved.shape) for each in (self.range.low, self.range.high))
        y = jax.vmap(self.structure.complete)(x, a, jnp.clip(moved, *limits))
        return Steps(y, self._rewards(x, a, y, said), self._costs(x, a, y, said))

    def _rewards(self, x: Array, a: Array, y: Array, said: Outputs) -> Float[Array, " n"]:
        if self.known.reward is not None:
            return jax.vmap(self.known.reward)(x, a, y)
        learned = said.reward * self.scales.reward_std + self.scales.reward_mean
        return jnp.clip(learned, self.range.reward_low, self.range.reward_high)

    def _costs(self, x: Array, a: Array, y: Array, said: Outputs) -> Float[Array, "n k"]:
        if self.known.costs is not None:
            return jax.vmap(self.known.costs)(x, a, y)
        return jnp.clip(said.costs, 0, self.most(x))

    def disagreement(self, said: Outputs) -> Float[Array, " n"]:
        """s_n: the standard deviation over the members of the change, in units of the data, the mean over the part."""
        variance = jnp.var(said.change, axis=0)
        return jnp.mean(jnp.sqrt(variance + 1e-8), axis=-1)  # the root's slope at 0 is no number


def _standard(x: Array, mean: Array, std: Array) -> Array:
    return (x - jnp.broadcast_to(mean, x.shape)) / jnp.broadcast_to(std, x.shape)


def _original(x: Array, mean: Array, std: Array) -> Array:
    return x * jnp.broadcast_to(std, x.shape) + jnp.broadcast_to(mean, x.shape)


def combine(said: Outputs, weights: Float[Array, "n M"], state_share: float = 1.0) -> Outputs:
    """mu + sum_m w_m (f_m - mu) at every row, with a combination of its own for each.

    Of changes of the state and of rewards the sum is multiplied by `state_share`.
    """
    mu = nominal_outputs(said)

    def at(each: Array, mean: Array, weights: Array) -> Array:
        rows = "nm,mn->n" if each.ndim == 2 else "nm,mno->no"
        return mean + jnp.einsum(rows, weights, each - mean[None])

    near = weights * np.float32(state_share)
    return Outputs(
        at(said.change, mu.change, near),
        at(said.reward, mu.reward, near),
        at(said.costs, mu.costs, weights),
        mu.spread,
    )


class Combinations(Forgetful, eqx.Module):
    """Models side by side: row i follows mu + sum_m w_im (f_m - mu), which is mu itself where all w_im are 0."""

    ensemble: Ensemble
    weights: Float[Array, "n M"]

    @property
    def code(self) -> Float[Array, "n M"]:
        """What tells the models of the rows apart."""
        return self.weights

    def noises(self, key: PRNGKey, steps: int, training: bool) -> Float[Array, "T n p"]:
        """Standard normal numbers; none where the models are functions; zeros for what is not drawn in forecasts."""
        noisy = self.ensemble.noisy
        shape = steps, self.weights.shape[0], 0 if noisy == "never" else len(self.ensemble.structure.part)
        if noisy == "training" and not training:
            return jnp.zeros(shape, PLAN)
        return jax.random.normal(key, shape, PLAN)

    def steps(
        self, x: Float[Array, "n dx"], a: Float[Array, "n da"], noise: Float[Array, "n p"]
    ) -> tuple[Steps, Float[Array, " n"]]:
        """A step of every row, and s_n there. All members are evaluated at every row."""
        said = self.ensemble.outputs(x, a)
        drawn = None if self.ensemble.noisy == "never" else noise
        sampled = combine(said, self.weights, self.ensemble.state_share)
        return self.ensemble.decode(x, a, sampled, drawn), self.ensemble.disagreement(said)


class Combination(eqx.Module):
    """One of them as a model."""

    ensemble: Ensemble
    weights: Float[Array, " M"]

    @property
    def stochastic(self) -> bool:
        return self.ensemble.noisy == "always"

    def __call__(self, x: State, a: Action) -> State:
        return self._step(x, a).states[0]

    def draw(self, x: State, a: Action, key: PRNGKey) -> State:
        if not self.stochastic:
            return self(x, a)
        return self._step(x, a, jax.random.normal(key, (1, len(self.ensemble.structure.part)), PLAN)).states[0]

    def reward(self, x: State, a: Action, y: State) -> Scalar:
        return self._step(x, a).rewards[0]

    def costs(self, x: State, a: Action, y: State) -> Float[Array, " k"]:
        return self._step(x, a).costs[0]

    def beside(self, each: int, nominal: int) -> "Combinations":
        """So many rows of it, however they are called."""
        return Combinations(self.ensemble, jnp.tile(self.weights[None], (each + nominal, 1)))

    def _step(self, x: State, a: Action, noise: Array | None = None) -> Steps:
        rows = x.astype(PLAN)[None], a.astype(PLAN)[None]
        said = combine(self.ensemble.outputs(*rows), self.weights[None], self.ensemble.state_share)
        return self.ensemble.decode(*rows, said, noise)


class Disagreement(eqx.Module):
    """s_n as a function of (x, a)."""

    ensemble: Ensemble

    def __call__(self, x: State, a: Action) -> Scalar:
        return self.many(x[:, None], a[:, None])[0]

    def many(self, x: Float[Array, "dx C"], a: Float[Array, "da C"]) -> Float[Array, " C"]:
        """The same at C inputs, as columns."""
        return self.ensemble.disagreement(self.ensemble.outputs(x.T.astype(PLAN), a.T.astype(PLAN)))


class Samples(eqx.Module):
    """f^s = mu + kappa / sqrt(M - 1) sum_m xi_m^s (f_m - mu) with xi^s ~ N(0, I); or the members themselves.

    The first are functions whose covariance is kappa^2 times that of the members. There may be any number of them, and
    they can be drawn anew, so that a policy cannot fit them.
    """

    ensemble: Ensemble
    weights: Float[Array, "S M"]
    kappa: Float[Array, ""]
    members: bool = eqx.field(static=True)
    """Whether these are the members, spread by kappa about their mean."""

    @classmethod
    def draw(cls, ensemble: Ensemble, count: int, kappa: Float[Array, ""], members: bool, key: PRNGKey) -> "Samples":
        """So many samples. Of members there are as many as networks."""
        M = ensemble.nets.count
        if members:
            return cls(ensemble, kappa * jnp.eye(M, dtype=PLAN), kappa, True)
        xi = jax.random.normal(key, (count, M), PLAN)
        return cls(ensemble, kappa / np.float32(np.sqrt(max(M - 1, 1))) * xi, kappa, False)

    def __len__(self) -> int:
        return int(self.weights.shape[0])

    def member(self, m: Index) -> Combination:
        return Combination(self.ensemble, self.weights[m])

    def renewed(self, key: PRNGKey) -> "Samples":
        """As many new ones; the members stay what they are."""
        return Samples.draw(self.ensemble, len(self), self.kappa, self.members, key)

    def beside(self, each: int, nominal: int) -> Combinations:
        """So many rows of every sample, one sample after the other, then so many of the nominal model."""
        own = jnp.repeat(self.weights, each, axis=0)
        return Combinations(self.ensemble, jnp.concatenate([own, jnp.zeros((nominal, own.shape[1]), PLAN)]))
