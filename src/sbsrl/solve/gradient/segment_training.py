"""Updates over segments: whole episodes say how much each constraint presses, gradients go through segments."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..._jax import PLAN
from ...belief.protocol import Rows
from ...networks import Network
from ...optimisation import descend
from ...problem import Problem
from ...types import PRNGKey, Scalar
from ..network.domain import Domain
from ..network.episodes import code_of, rows_of
from ..network.forecast import Forecast, forecast, spread_starts
from ..network.improver import OPTIMISER, Trained, information_unit, signal_units, weights_of
from ..network.network_policy import Units
from ..network.outlook import Outlook, outlook_of
from ..network.pressures import Pressures, followed, pressures
from ..network.segments import Critic, Segment, anew, coded, follow, init_critic, learn_values, segment_returns, visited
from .choices import GradientChoices
from .whole import Sizes, sizes_of

__all__ = ["Cuts", "Round", "Segments", "recalled_rows", "recalled_starts", "train_segments"]


class Cuts(NamedTuple):
    """How episodes are cut into segments; compiled into the programs."""

    steps: int
    """Of a segment."""
    recalled: float
    """Share of the segments that begin where the data have been, not where the policy goes."""
    discount: float
    """Of the critics."""


class Round(NamedTuple):
    """What stays the same during a round of updates."""

    units: Units
    problem: Problem
    starts: Float[Array, "U K dx"]
    """Where rows begin anew in each update: initial states, or for rows that are recalled states of the data."""
    pushed: Pressures
    scale: Float[Array, " v"]
    """The unit of each signal per step."""
    sizes: Sizes
    cuts: Cuts


@dataclass(frozen=True, eq=False)
class Segments:
    """The improver for episodes too long to differentiate through."""

    domain: Domain
    choices: GradientChoices

    def init(self, key: PRNGKey) -> Critic:
        return init_critic(key, len(self.domain.units.mean), 2 + len(self.domain.budgets), self.choices.critic_width)

    def improve(
        self, problem: Problem, trained: Trained, memory: Critic, bounds: Float[Array, " k"], rate: Scalar, key: PRNGKey
    ) -> tuple[Trained, Critic, Forecast]:
        start_key, train_key = jax.random.split(key)
        seen_key, visit_key, train_key, recall_key = jax.random.split(train_key, 4)
        sizes, cuts, units = self._sizes, self._cuts, self.domain.units
        weights = weights_of(self.choices, self.domain.return_scale)
        starts = self._starts(problem, start_key)
        seen = forecast(trained.network, units, problem, starts[0], sizes.horizon, sizes.nominal, seen_key)
        seen = seen.times(self.outlook.times)
        trained = followed(problem, trained, seen, weights, bounds)
        pushed = pressures(problem, seen, trained, weights, bounds, information_unit(problem, weights))
        rows = rows_of(problem, sizes.each, sizes.nominal)
        starts = self._recalled(starts, recall_key)
        first = self._first(trained.network, problem, rows, starts[0], visit_key)
        scale = signal_units(problem, self.domain, weights)
        setting = Round(units, problem, starts, pushed, scale, sizes, cuts)
        network, moments, critic = train_segments(trained, memory, setting, first, rate, train_key)
        return trained._replace(network=network, moments=moments), critic, seen

    @property
    def outlook(self) -> Outlook:
        return outlook_of(self.domain, self.choices)

    def _starts(self, problem: Problem, key: PRNGKey) -> Float[Array, "U K dx"]:
        """Where the rows of every update begin."""
        sizes = self._sizes
        starts = self.outlook.starts(problem, sizes.updates * (sizes.each + sizes.nominal), key)
        return starts.reshape(sizes.updates, -1, starts.shape[-1])

    def _first(
        self, network: Network, problem: Problem, rows: Rows, starts: Float[Array, "K dx"], key: PRNGKey
    ) -> tuple[Float[Array, "n dx"], Any]:
        """Where the first segments begin: states of whole episodes of the policy; or those that were visited."""
        sizes, count = self._sizes, 0 if problem.samples is None else len(problem.samples)
        begun = spread_starts(starts, count, sizes.each, sizes.nominal)
        if self.outlook.pieces:
            return begun, rows.begun(len(begun))
        return visited(network, self.domain.units, problem, rows, begun, sizes.horizon, self._cuts.steps, key)

    @property
    def _sizes(self) -> Sizes:
        return sizes_of(self.choices, self.outlook.steps)

    @property
    def _cuts(self) -> Cuts:
        chosen = self.choices
        recalled = 0.0 if self.domain.data is None or self.outlook.pieces else chosen.recalled
        return Cuts(chosen.segment, recalled, chosen.discount)

    def _recalled(self, starts: Float[Array, "U K dx"], key: PRNGKey) -> Float[Array, "U K dx"]:
        """The starts of segments: some of them are states of the data, which the policy need not find by itself."""
        if self.domain.data is None or not self._cuts.recalled:
            return starts
        numbers = jax.random.randint(key, starts.shape[:2], 0, len(self.domain.data.states))
        states = jnp.asarray(self.domain.data.states, PLAN)[numbers]
        return jnp.where(jnp.asarray(recalled_starts(self._sizes, self._cuts))[None, :, None], states, starts)


RECALLED = 2
"""Segments from a state of the data until another one is taken."""


def recalled_starts(sizes: Sizes, cuts: Cuts) -> Bool[np.ndarray, " K"]:
    """Which of the starts of an update are states of the data: the first of those on every sample, and on mu."""
    each, nominal = np.arange(sizes.each), np.arange(sizes.nominal)
    return np.concatenate([each < round(cuts.recalled * sizes.each), nominal < round(cuts.recalled * sizes.nominal)])


def recalled_rows(sizes: Sizes, cuts: Cuts, samples: int) -> Bool[np.ndarray, " n"]:
    """The same, of all rows."""
    chosen = recalled_starts(sizes, cuts)
    return np.concatenate([np.tile(chosen[: sizes.each], samples), chosen[sizes.each :]])


@eqx.filter_jit
def train_segments(
    trained: Trained,
    critic: Critic,
    setting: Round,
    first: tuple[Float[Array, "n dx"], Any],
    rate: Scalar,
    key: PRNGKey,
) -> tuple[Network, Any, Critic]:
    """So many updates of policy and critic over segments that follow one another, from these states and memories on.

    A row whose episode is over begins anew; one that is recalled is followed for RECALLED segments.
    """
    units, problem, starts, pushed, scale, sizes, cuts = setting
    rows = rows_of(problem, sizes.each, sizes.nominal)
    count = 0 if problem.samples is None else len(problem.samples)
    n = count * sizes.each + sizes.nominal
    code = coded(code_of(rows, n))
    parts = max(sizes.horizon // cuts.steps, 1)

    def loss(network: Network, target: Network, x: Array, memory: Any, key: PRNGKey) -> tuple[Scalar, Segment]:
        segment = follow(
            network, units, rows, x, memory, problem, scale, cuts.steps, sizes.unsteadiness, True, key, sizes.steepest
        )
        ahead = segment_returns(segment, target, units, code, cuts.discount)
        mine = ahead[n - sizes.nominal :]
        value = -jnp.mean((ahead if sizes.robust else mine)[:, 0]) - pushed.information * jnp.mean(mine[:, -1])
        if count:
            costs = ahead[: n - sizes.nominal, 1:-1].reshape(count, sizes.each, -1)
            value = value + jnp.sum(pushed.costs * jnp.mean(costs, axis=1))
        return value, segment

    def update(carry: Any, now: tuple[Array, PRNGKey]) -> tuple[Any, None]:
        network, moments, critic, x, memory, part = carry
        starts, key = now
        loss_key, critic_key = jax.random.split(key)
        over = part >= last
        x = jnp.where(over[:, None], spread_starts(starts, count, sizes.each, sizes.nominal), x)
        memory = anew(over, rows.begun(n), memory)
        slopes, segment = jax.grad(loss, has_aux=True)(network, critic.target, x, memory, loss_key)
        network, moments = descend(OPTIMISER, sizes.trained(slopes), moments, network, rate)
        segment = jax.lax.stop_gradient(segment)
        critic = learn_values(critic, units, segment, code, cuts.discount, critic_key)
        return (network, moments, critic, segment.last, segment.memory, jnp.where(over, 0, part) + 1), None

    begun = jnp.arange(n) % parts
    last = jnp.where(recalled_rows(sizes, cuts, count), min(RECALLED, parts), parts)
    carry = (trained.network, trained.moments, critic, *first, begun)
    (network, moments, critic, *_), _ = jax.lax.scan(update, carry, (starts, jax.random.split(key, sizes.updates)))
    return network, moments, critic
