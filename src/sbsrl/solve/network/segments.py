"""Training over short segments, for episodes too long to differentiate through: critics stand for what comes after.

Every row (a model of its own) is followed for H steps from a state that the policy itself comes to, and continues where
it stopped. What lies beyond is a critic's value V(x, m) of the row's own model m: one number for the reward, one for
each cost, one for the uncertainty. A critic is one network for all models, which it tells apart by a code: the
combination of the ensemble's members that a sample is, so that it serves samples that are drawn anew. Values are
discounted; they steer the gradient, and nothing is compared with a budget but undiscounted whole episodes
(`forecast.forecast`).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float

from ..._jax import PLAN
from ...belief.protocol import Rows
from ...networks import Network, apply, init_network
from ...optimisation import descend
from ...problem import Problem
from ...types import PRNGKey, Scalar
from .episodes import earned
from .network_policy import Units, act, standardised
from .slopes import limited

__all__ = [
    "CODE",
    "Critic",
    "Segment",
    "anew",
    "coded",
    "follow",
    "init_critic",
    "learn_values",
    "segment_returns",
    "targets",
    "values",
    "visited",
]

CODE = 16
"""Numbers that tell models apart."""
CRITIC_RATE, CRITIC_BATCH, CRITIC_UPDATES, TRACKING = 1e-3, 256, 4, 0.02
TRACE = 0.95
"""lambda of the targets: how far they look along the segment before they ask the critic."""
CRITIC = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam())


class Critic(NamedTuple):
    """A network, a slowly following copy that targets are made of, and the optimiser's state."""

    network: Network
    target: Network
    moments: Any


class Segment(NamedTuple):
    """What happened on every row."""

    states: Float[Array, "H n dx"]
    signals: Float[Array, "H n v"]
    """Reward, costs and uncertainty of every step, in units of what each is worth per step."""
    last: Float[Array, "n dx"]
    memory: Any
    """What the rows remember at the end."""


def init_critic(key: PRNGKey, size: int, signals: int, width: int) -> Critic:
    """For states of this size and so many signals."""
    network = init_network(key, (size + CODE, width, width, signals), last=0.1)
    return Critic(network, network, CRITIC.init(network))


def coded(code: Float[Array, "n c"]) -> Float[Array, "n CODE"]:
    """Codes of one size: filled up with zeros, or mixed at random where there are more numbers than that."""
    n, size = code.shape
    if size <= CODE:
        return jnp.concatenate([code, jnp.zeros((n, CODE - size), PLAN)], axis=1)
    return code @ (jax.random.normal(jax.random.key(0), (size, CODE), PLAN) / jnp.sqrt(jnp.float32(CODE)))


def values(
    network: Network, units: Units, x: Float[Array, "n dx"], code: Float[Array, "n CODE"]
) -> Float[Array, "n v"]:
    """V(x, m), in units of (1 - gamma): a mean per step, whatever the discount is."""
    return apply(network, jnp.concatenate([standardised(units, x), code], axis=1))


def follow(
    network: Network,
    units: Units,
    rows: Rows,
    x: Float[Array, "n dx"],
    memory: Any,
    problem: Problem,
    scale: Float[Array, " v"],
    steps: int,
    unsteadiness: float,
    training: bool,
    key: PRNGKey,
    steepest: float = 0.0,
) -> Segment:
    """So many steps of the policy on every row, from what it remembers on.

    Everything can be differentiated with respect to the network.

    `steepest` limits slopes (`slopes.limited`).
    """
    n, da = x.shape[0], units.low.shape[0]
    hand_key, noise_key = jax.random.split(key)
    hands = unsteadiness * jax.random.normal(hand_key, (steps, n, da), PLAN)
    noises = rows.noises(noise_key, steps, training)

    @jax.checkpoint
    def step(carry: tuple[Array, Any], now: tuple[Array, Array]) -> tuple[tuple[Array, Any], tuple[Array, Array]]:
        (x, memory), (hand, noise) = carry, now
        x = limited(x, units.std, steepest)
        a = act(network, units, x, hand)
        moved, uncertainty, memory = rows.advanced(x, a, noise, memory)
        gained = earned(problem, x, a, moved, uncertainty)
        signals = jnp.concatenate([gained[:, None], moved.costs, uncertainty[:, None]], axis=1)
        return (moved.states, memory), (x, signals / scale[None])

    (last, memory), (states, signals) = jax.lax.scan(step, (x, memory), (hands, noises))
    return Segment(states, signals, last, memory)


def targets(
    signals: Float[Array, "H n v"], after: Float[Array, "H n v"], discount: float, trace: float = TRACE
) -> Float[Array, "H n v"]:
    """TD(lambda), back from the last value: G_t = (1 - gamma) y_t + gamma ((1 - lambda) V_{t+1} + lambda G_{t+1})."""

    def back(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        signal, value = now
        total = (1 - discount) * signal + discount * ((1 - trace) * value + trace * later)
        return total, total

    _, found = jax.lax.scan(back, after[-1], (signals, after), reverse=True)
    return found


def segment_returns(
    segment: Segment, critic: Network, units: Units, code: Float[Array, "n CODE"], discount: float
) -> Float[Array, "n v"]:
    """What the critic's value of the first state would be after this segment, with gradients through all of it."""
    steps = segment.signals.shape[0]
    weights = discount ** jnp.arange(steps, dtype=PLAN)
    inside = (1 - discount) * jnp.sum(segment.signals * weights[:, None, None], axis=0)
    return inside + discount**steps * values(critic, units, segment.last, code)


def learn_values(
    critic: Critic, units: Units, segment: Segment, code: Float[Array, "n CODE"], discount: float, key: PRNGKey
) -> Critic:
    """The critic after some updates towards the targets of this segment, each for its own model."""
    steps, n, dx = segment.states.shape
    after = jnp.concatenate([segment.states[1:], segment.last[None]])
    ahead = jax.vmap(lambda x: values(critic.target, units, x, code))(after)
    wanted = targets(segment.signals, ahead, discount).reshape(steps * n, -1)
    x = segment.states.reshape(steps * n, dx)
    codes = jnp.tile(code, (steps, 1))

    def loss(network: Network, rows: Array) -> Scalar:
        error = values(network, units, x[rows], codes[rows]) - wanted[rows]
        return jnp.mean(jnp.where(jnp.abs(error) < 1, 0.5 * error**2, jnp.abs(error) - 0.5))

    def update(critic: Critic, key: PRNGKey) -> tuple[Critic, None]:
        rows = jax.random.randint(key, (CRITIC_BATCH,), 0, steps * n)
        network, moments = descend(
            CRITIC, jax.grad(loss)(critic.network, rows), critic.moments, critic.network, CRITIC_RATE
        )
        target = jax.tree.map(lambda old, new: (1 - TRACKING) * old + TRACKING * new, critic.target, network)
        return Critic(network, target, moments), None

    critic, _ = jax.lax.scan(update, critic, jax.random.split(key, CRITIC_UPDATES))
    return critic


@eqx.filter_jit
def visited(
    network: Network,
    units: Units,
    problem: Problem,
    rows: Rows,
    starts: Float[Array, "n dx"],
    horizon: int,
    steps: int,
    key: PRNGKey,
) -> tuple[Float[Array, "n dx"], Any]:
    """A state of the policy's own episode for every row, each at the beginning of another segment of it.

    With it comes what the row remembers there.
    """
    parts = max(horizon // steps, 1)
    unit = jnp.ones(2 + len(problem.aggregations), PLAN)

    def part(now: tuple[Array, Any], key: PRNGKey) -> tuple[tuple[Array, Any], tuple[Array, Any]]:
        x, memory = now
        segment = follow(network, units, rows, x, memory, problem, unit, steps, 0.0, False, key)
        return (segment.last, segment.memory), now

    n = starts.shape[0]
    _, each = jax.lax.scan(part, (starts, rows.begun(n)), jax.random.split(key, parts))
    own = lambda leaf: leaf[jnp.arange(n) % parts, jnp.arange(n)]  # noqa: E731
    chosen: tuple[Array, Any] = jax.tree.map(own, each)
    return chosen


def anew(over: Bool[Array, " n"], begun: Any, memory: Any) -> Any:
    """What rows remember: what they do at the beginning, where an episode is over."""
    return jax.tree.map(
        lambda first, now: jnp.where(over.reshape(-1, *[1] * (now.ndim - 1)), first, now), begun, memory
    )
