"""The prior policy as a way out (SOOPER): what it would earn and cost from any state, and when to go over to it.

Critics of the prior policy say what a step gives on average from a state on (`segments.values`), with pessimistic
costs: c + lambda s_n. What it would cost in the T - t steps that are left is T - t times that. An episode that has
cost C_t goes over to the prior policy before an action a at x if for one of the costs, y being the next state,

    C_t + c(x, a) + lambda s_n(x, a) + (T - t - 1) v_c(y) >= d.

If plans know of this, it is for good, on the true system as on the models. A policy is then trained on episodes that
end there: from then on every step gives what the prior policy gives on average, so that an episode is worth what it
had earned and the backup's value. It is checked on episodes in which the prior policy really goes on. If plans do not
know of it, the true system is asked anew at every step.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..._jax import PLAN
from ...belief.protocol import Rows, SideBySide, Steps, Uncertainty
from ...model import Model
from ...monitor import INTERVENED
from ...networks import Network
from ...policy import Metrics
from ...problem import Problem, SwitchRule
from ...types import Action, Index, PRNGKey, Scalar, State
from .episodes import rows_of
from .network_policy import NetworkPolicy, Units, act
from .segments import CODE, Critic, follow, learn_values, values, visited

__all__ = [
    "EVALUATED",
    "RENEWED",
    "Backup",
    "EndingRows",
    "Filtered",
    "Pessimistic",
    "PlayedRows",
    "Switched",
    "evaluate_prior",
    "goes_over",
    "switched",
]

EVALUATED, RENEWED = 200, 50
"""Segments from which critics of the prior policy learn at first, and before every later episode."""
ROWS, STEPS = 64, 25
"""Of such a segment."""


class Backup(eqx.Module):
    """The prior policy, and what its critic says of it."""

    prior: Network
    critic: Network
    units: Units
    scale: Float[Array, " v"]
    """The unit per step of reward, costs and uncertainty."""
    horizon: int = eqx.field(static=True)

    def rates(self, x: Float[Array, "n dx"]) -> Float[Array, "n v"]:
        """Reward, costs and uncertainty that the prior policy has per step from these states on; costs are no gain."""
        code = jnp.zeros((x.shape[0], CODE), PLAN)
        found = values(self.critic, self.units, x.astype(PLAN), code) * self.scale[None]
        return jnp.concatenate([found[:, :1], jnp.maximum(found[:, 1:], 0)], axis=1)


def goes_over(
    rule: SwitchRule, charged: Float[Array, "n k"], costs: Float[Array, "n k"], rest: Float[Array, "n k"]
) -> Bool[Array, " n"]:
    """Whether what was charged, the pessimistic costs of a step and the rest after it reach a budget."""
    return jnp.any(charged + costs + rest >= rule.budgets[None], axis=1)


class Pessimistic(eqx.Module):
    """Rows whose costs, and if wanted rewards, are higher where they are uncertain."""

    rows: Rows
    pessimism: Float[Array, " k"]
    optimism: Scalar | float

    @property
    def code(self) -> Float[Array, "n c"]:
        """What tells the models of the rows apart."""
        return self.rows.code  # type: ignore[attr-defined]

    def noises(self, key: PRNGKey, steps: int, training: bool) -> Float[Array, "T n z"]:
        return self.rows.noises(key, steps, training)

    def begun(self, n: int) -> Any:
        return self.rows.begun(n)

    def advanced(
        self, x: Float[Array, "n dx"], a: Float[Array, "n da"], noise: Float[Array, "n z"], memory: Any
    ) -> tuple[Steps, Float[Array, " n"], Any]:
        moved, uncertainty, memory = self.rows.advanced(x, a, noise, memory)
        costs = moved.costs + self.pessimism[None] * uncertainty[:, None]
        return Steps(moved.states, moved.rewards + self.optimism * uncertainty, costs), uncertainty, memory


class Progress(NamedTuple):
    """What rows remember of their episodes."""

    charged: Float[Array, "n k"]
    t: Int[Array, " n"]
    over: Bool[Array, " n"]
    """Whether the prior policy acts from here on."""
    inner: Any


class _Switching(eqx.Module):
    """Rows that go over to the prior policy for good."""

    rows: Pessimistic
    rule: SwitchRule
    backup: Backup

    def noises(self, key: PRNGKey, steps: int, training: bool) -> Float[Array, "T n z"]:
        return self.rows.noises(key, steps, training)

    def begun(self, n: int) -> Progress:
        nothing = jnp.zeros((n, len(self.rule.budgets)), PLAN)
        return Progress(nothing, jnp.zeros(n, jnp.int32), jnp.zeros(n, bool), self.rows.begun(n))

    def over(self, moved: Steps, memory: Progress) -> Bool[Array, " n"]:
        """Whether the prior policy acts in place of the action that led here, or has acted before."""
        left = (self.backup.horizon - 1 - memory.t).astype(PLAN)
        rest = left[:, None] * self.backup.rates(moved.states)[:, 1:-1]
        return memory.over | goes_over(self.rule, memory.charged, moved.costs, rest)


class EndingRows(_Switching):
    """For plans: what comes after the switch is what the prior policy gives on average from there."""

    def advanced(
        self, x: Float[Array, "n dx"], a: Float[Array, "n da"], noise: Float[Array, "n z"], memory: Progress
    ) -> tuple[Steps, Float[Array, " n"], Progress]:
        moved, uncertainty, inner = self.rows.advanced(x, a, noise, memory.inner)
        over, rates = self.over(moved, memory), self.backup.rates(x)
        y = jnp.where(over[:, None], x, moved.states)
        rewards = jnp.where(over, rates[:, 0], moved.rewards)
        costs = jnp.where(over[:, None], rates[:, 1:-1], moved.costs)
        after = Progress(memory.charged + costs, memory.t + 1, over, inner)
        return Steps(y, rewards, costs), jnp.where(over, 0.0, uncertainty).astype(PLAN), after


class PlayedRows(_Switching):
    """For forecasts: after the switch the prior policy acts."""

    def advanced(
        self, x: Float[Array, "n dx"], a: Float[Array, "n da"], noise: Float[Array, "n z"], memory: Progress
    ) -> tuple[Steps, Float[Array, " n"], Progress]:
        own = self.rows.advanced(x, a, noise, memory.inner)
        over = self.over(own[0], memory)
        instead = self.rows.advanced(x, act(self.backup.prior, self.backup.units, x), noise, memory.inner)
        moved, uncertainty, inner = jax.tree.map(
            lambda mine, theirs: jnp.where(over.reshape(-1, *[1] * (mine.ndim - 1)), theirs, mine), own, instead
        )
        return moved, uncertainty, Progress(memory.charged + moved.costs, memory.t + 1, over, inner)


class Switched(eqx.Module):
    """Samples whose costs are pessimistic, and whose episodes go over to the prior policy if plans know of that."""

    samples: SideBySide
    rule: SwitchRule
    backup: Backup

    def __len__(self) -> int:
        return len(self.samples)

    def member(self, m: Index) -> Model:
        return self.samples.member(m)

    def beside(self, each: int, nominal: int) -> Rows:
        """Rows to plan with."""
        rows = Pessimistic(self.samples.beside(each, nominal), self.rule.pessimism, self.rule.optimism)
        return EndingRows(rows, self.rule, self.backup) if self.rule.planned else rows

    def beside_played(self, each: int, nominal: int) -> Rows:
        """Rows to judge by: uncertainty earns nothing, and the prior policy acts where it would."""
        rows = Pessimistic(self.samples.beside(each, nominal), self.rule.pessimism, 0.0)
        return PlayedRows(rows, self.rule, self.backup) if self.rule.planned else rows


def switched(problem: Problem, backup: Backup) -> Problem:
    """The same problem on such samples."""
    assert problem.switch is not None
    assert isinstance(problem.samples, SideBySide)
    return eqx.tree_at(lambda tree: tree.samples, problem, Switched(problem.samples, problem.switch, backup))


@eqx.filter_jit
def evaluate_prior(
    critic: Critic,
    backup: Backup,
    problem: Problem,
    network: Network,
    states: Float[Array, "N dx"],
    discount: float,
    rounds: int,
    pieces: bool,
    key: PRNGKey,
) -> Critic:
    """The critic after so many segments of the prior policy, half from states of the data and half from others.

    Those are states that the policy `network` comes to on the models; or, where these are followed for `pieces` only,
    the problem's own, to which the true system came.
    """
    assert problem.switch is not None
    rows = Pessimistic(rows_of(problem, 0, ROWS), problem.switch.pessimism, 0.0)
    visit_key, key = jax.random.split(key)
    starts = problem.starts[jnp.arange(ROWS) % len(problem.starts)].astype(PLAN)
    found = problem.starts.astype(PLAN)
    if not pieces:
        found, _ = visited(network, backup.units, problem, rows, starts, backup.horizon, STEPS, visit_key)
    own = jnp.arange(ROWS) % 2 == 0

    def learn(critic: Critic, key: PRNGKey) -> tuple[Critic, None]:
        pick_key, own_key, follow_key, learn_key = jax.random.split(key, 4)
        recorded = states[jax.random.randint(pick_key, (ROWS,), 0, states.shape[0])]
        x = jnp.where(own[:, None], found[jax.random.randint(own_key, (ROWS,), 0, len(found))], recorded)
        segment = follow(
            backup.prior, backup.units, rows, x, rows.begun(ROWS), problem, backup.scale, STEPS, 0.0, False, follow_key
        )
        code = jnp.zeros((ROWS, CODE), PLAN)
        return learn_values(critic, backup.units, segment, code, discount, learn_key), None

    critic, _ = jax.lax.scan(learn, critic, jax.random.split(key, rounds))
    return critic


class Spent(NamedTuple):
    """What a filter remembers of an episode."""

    charged: Float[Array, " k"]
    t: Int[Array, ""]
    over: Bool[Array, ""]


class Filtered(eqx.Module):
    """A policy; in its place the prior policy wherever what an episode has cost and would cost reaches a budget."""

    policy: NetworkPolicy
    backup: Backup
    model: Model
    uncertainty: Uncertainty
    rule: SwitchRule

    def init(self) -> Spent:
        return Spent(jnp.zeros(len(self.rule.budgets), PLAN), jnp.zeros((), jnp.int32), jnp.zeros((), bool))

    def act(self, x: State, state: Spent, key: PRNGKey) -> tuple[Action, Spent, Metrics]:
        action, after = _filtered(self, x, state)
        return action, after, {INTERVENED: after.over}

    def observe(self, state: Spent, reward: Any, costs: Any) -> Spent:
        """Charges what the step really cost."""
        return state._replace(charged=_charged(state.charged, jnp.asarray(costs)))


@jax.jit
def _charged(before: Float[Array, " k"], costs: Float[Array, " k"]) -> Float[Array, " k"]:
    return before + costs.astype(PLAN)


@eqx.filter_jit
def _filtered(chosen: Filtered, x: State, state: Spent) -> tuple[Action, Spent]:
    x, rule, backup = x.astype(PLAN), chosen.rule, chosen.backup
    a = act(chosen.policy.network, chosen.policy.units, x[None])[0]
    y = chosen.model(x, a)
    costs = chosen.model.costs(x, a, y) + rule.pessimism * chosen.uncertainty(x, a)
    rest = (backup.horizon - 1 - state.t).astype(PLAN) * backup.rates(y[None])[:, 1:-1]
    over = goes_over(rule, state.charged[None], costs[None], rest)[0] | (state.over & rule.planned)
    prior = act(backup.prior, backup.units, x[None])[0]
    return jnp.where(over, prior, a), Spent(state.charged, state.t + 1, over)
