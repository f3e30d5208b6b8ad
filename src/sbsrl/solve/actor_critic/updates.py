"""Updates of a soft actor-critic under the constraints of Problem (1).

Between two updates of the policy all models are followed for some steps, each on its own trajectory; the critics learn
from these; then the policy, at states of these trajectories:

    minimise  E[(1 - gamma) alpha log pi(a | x) - q_r(x, a, m) + sum_m p_m q_c(x, a, m) - p_sigma q_sigma(x, a, mu)],

where p_m and p_sigma are what the constraints press (`pressures`): slopes of the penalties of

    J_c(pi, f^m) = E_{x ~ rho_0}[Q_c(x, pi(x), m)]   and   J_s(pi, mu) = E_{x ~ rho_0}[Q_sigma(x, pi(x), mu)]

in units of episodes, as the paper estimates them. Slopes at initial states alone would change what a policy does there
and nowhere else; by the policy gradient theorem J_c changes with what is done wherever the policy comes.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from ..._jax import PLAN
from ...belief.protocol import Rows
from ...networks import Network, apply, apply_members, of_last_inputs
from ...optimisation import descend, usable
from ...problem import Problem
from ...types import PRNGKey, Scalar
from ..network.episodes import code_of, rows_of
from ..network.forecast import Forecast
from ..network.improver import OPTIMISER, Trained, Weights
from ..network.network_policy import Units, standardised
from ..network.pressures import Pressures, followed, pressures
from ..network.segments import anew, coded
from .critics import Critics, Judged, inputs, learn, q_values, targets
from .rollouts import Rollout, roll, stochastic

__all__ = ["Course", "Learned", "Round", "Sizes", "Soft", "Sources", "fit_critics", "init_soft", "train"]

SOFT = optax.scale_by_adam()
SOFT_RATE, FIRST_TEMPERATURE = 1e-3, 0.01
STDS, TEMPERATURES = (-3.0, 0.0), (-12.0, 2.0)
"""Between which the logarithms of standard deviations and temperature stay."""
RAMP = 0.25
"""Share of the trust region beyond it at which it presses in full."""


class Soft(NamedTuple):
    """What makes the policy stochastic while it learns: one standard deviation per action, and the temperature."""

    log_std: Float[Array, " da"]
    log_temperature: Scalar
    moments: Any


def init_soft(actions: int, std: float) -> Soft:
    """With this standard deviation."""
    begun = (jnp.full(actions, np.log(std), PLAN), jnp.asarray(np.log(FIRST_TEMPERATURE), PLAN))
    return Soft(*begun, SOFT.init(begun))


class Sizes(NamedTuple):
    """What is compiled into the programs."""

    horizon: int
    each: int
    """Rollouts on every model."""
    steps: int
    parts: int
    fresh: float
    updates: int
    critic_updates: int
    critic_batch: int
    critic_rate: float
    actor_batch: int
    starts: int
    discount: float
    trace: float
    entropy: float
    """That the policy is to have, of all actions together."""
    anchor: float
    averaging: float
    robust: bool
    """Whether the return is the mean over all models; else it is that of the nominal one."""
    steered: int = 0
    """How many inputs of the policy its training is about; 0: all."""


class Sources(NamedTuple):
    """Where rollouts begin and constraints are evaluated."""

    recorded: Float[Array, "N dx"]
    initial: Float[Array, "R dx"]
    constrained: Float[Array, "C dx"]
    """Draws from rho_0, as the paper writes, or recorded states."""


class Learned(NamedTuple):
    """What changes with every update."""

    trained: Trained
    critics: Critics
    soft: Soft


class Course(NamedTuple):
    """Where the rollouts are."""

    states: Float[Array, "n dx"]
    memory: Any
    age: Int[Array, " K"]
    """Parts since each rollout of a model began; all models begin together."""


class Round(NamedTuple):
    """What stays the same during a round of updates."""

    units: Units
    problem: Problem
    sources: Sources
    bounds: Float[Array, " k"]
    """That costs are held to."""
    scale: Float[Array, " v"]
    """The unit of each signal per step."""
    sizes: Sizes
    weights: Weights
    unit: float
    """Of J_s."""

    @property
    def rows(self) -> Rows:
        """So many rows of every sample and of the nominal model, side by side."""
        return rows_of(self.problem, self.sizes.each, self.sizes.each)

    @property
    def models(self) -> int:
        """The samples and the nominal model."""
        return 1 + (0 if self.problem.samples is None else len(self.problem.samples))

    @property
    def code(self) -> Float[Array, "n CODE"]:
        return coded(code_of(self.rows, self.models * self.sizes.each))


def _begun(setting: Round, dx: int) -> Course:
    """Rollouts that are over, so that all begin anew; their first lengths differ, so that not all end together."""
    n = setting.models * setting.sizes.each
    return Course(jnp.zeros((n, dx), PLAN), setting.rows.begun(n), jnp.full(setting.sizes.each, -1, jnp.int32))


def _lengths(sizes: Sizes) -> Int[np.ndarray, " K"]:
    """Parts that each rollout of a model has: a whole episode from an initial state, a few from a recorded one."""
    whole = -(-sizes.horizon // sizes.steps)
    return np.where(_fresh(sizes), whole, sizes.parts).astype(np.int32)


def _fresh(sizes: Sizes) -> np.ndarray:
    return np.arange(sizes.each) < round(sizes.fresh * sizes.each)


def _placed(setting: Round, course: Course, key: PRNGKey) -> Course:
    """Rollouts that are over begin anew, at the same states on every model."""
    sizes, sources = setting.sizes, setting.sources
    old_key, new_key = jax.random.split(key)
    lengths = jnp.asarray(_lengths(sizes))
    over = (course.age < 0) | (course.age >= lengths)
    recorded, initial = (
        each[jax.random.randint(k, (sizes.each,), 0, each.shape[0])]
        for each, k in ((sources.recorded, old_key), (sources.initial, new_key))
    )
    first = jnp.where(jnp.asarray(_fresh(sizes))[:, None], initial, recorded)
    everywhere = jnp.tile(over, setting.models)
    states = jnp.where(everywhere[:, None], jnp.tile(first, (setting.models, 1)), course.states)
    memory = anew(everywhere, setting.rows.begun(states.shape[0]), course.memory)
    staggered = jnp.arange(sizes.each, dtype=jnp.int32) % lengths
    age = jnp.where(course.age < 0, staggered, jnp.where(over, 0, course.age)) + 1
    return Course(states, memory, age)


def _advanced(setting: Round, learned: Learned, course: Course, key: PRNGKey) -> tuple[Course, Judged]:
    """All rollouts after some steps more, and what critics are to say of these steps."""
    place_key, roll_key = jax.random.split(key)
    course = _placed(setting, course, place_key)
    rolled = roll(
        learned.trained.network,
        learned.soft.log_std,
        setting.units,
        setting.rows,
        setting.problem,
        course.states,
        course.memory,
        setting.scale,
        setting.sizes.steps,
        roll_key,
    )
    return Course(rolled.states[-1], rolled.memory, course.age), _judged(setting, learned, rolled)


def _judged(setting: Round, learned: Learned, rolled: Rollout) -> Judged:
    """Every step with its target."""
    sizes, (steps, n, signals) = setting.sizes, rolled.signals.shape
    code = jnp.tile(setting.code, (steps, 1))

    def flat(part: Array) -> Array:
        return part.reshape(steps * n, -1)

    ahead = inputs(setting.units, flat(rolled.states[1:]), flat(rolled.shares[1:]), code)
    after = jnp.mean(q_values(learned.critics.followers, ahead), axis=0).reshape(steps, n, signals)
    temperature = jnp.exp(learned.soft.log_temperature)
    wanted = targets(rolled.signals, after, rolled.log_density[1:], temperature, sizes.discount, sizes.trace)
    return Judged(flat(rolled.states[:-1]), flat(rolled.shares[:-1]), code, flat(wanted))


def _batch(judged: Judged, count: int, key: PRNGKey) -> Judged:
    rows = jax.random.randint(key, (count,), 0, judged.states.shape[0])
    return Judged(*(part[rows] for part in judged))


def _critics(setting: Round, critics: Critics, judged: Judged, key: PRNGKey) -> Critics:
    """After some updates with steps of these rollouts."""

    def update(critics: Critics, key: PRNGKey) -> tuple[Critics, None]:
        batch = _batch(judged, setting.sizes.critic_batch, key)
        critics, _ = learn(critics, setting.units, batch, setting.sizes.critic_rate)
        return critics, None

    critics, _ = jax.lax.scan(update, critics, jax.random.split(key, setting.sizes.critic_updates))
    return critics


def foreseen(setting: Round, learned: Learned, key: PRNGKey) -> Forecast:
    """What the critics say of whole episodes of the policy: J of every model, from states of `constrained`."""
    pick_key, noise_key = jax.random.split(key)
    states, count, models = setting.sources.constrained, setting.sizes.starts, setting.models
    x = states[jax.random.randint(pick_key, (count,), 0, states.shape[0])]
    noise = jax.random.normal(noise_key, (count, setting.units.low.shape[0]), PLAN)
    drawn = stochastic(learned.trained.network, learned.soft.log_std, setting.units, x, noise)
    codes = jnp.repeat(setting.code[:: setting.sizes.each], count, axis=0)
    states, shares = jnp.tile(x, (models, 1)), jnp.tile(drawn.shares, (models, 1))
    q = jnp.mean(q_values(learned.critics.networks, inputs(setting.units, states, shares, codes)), axis=0)
    found = jnp.mean(q.reshape(models, count, -1), axis=1) * setting.scale[None] * setting.sizes.horizon
    return Forecast(found[-1, 0], found[-1, -1], found[:-1, 1:-1], found[:-1, 0])


def _counts(setting: Round) -> tuple[int, int]:
    """States of every sample, and of the nominal model, at which the policy is updated.

    Where only the nominal model earns, half of them are its own; else all models have as many.
    """
    batch, samples = setting.sizes.actor_batch, setting.models - 1
    parts = setting.models if setting.sizes.robust or not samples else 2 * samples
    each = max(batch // parts, 1)
    return each, each if setting.sizes.robust else each * max(samples, 1)


def spread(setting: Round, judged: Judged, key: PRNGKey) -> Judged:
    """So many of them, drawn from rollouts: one sample after the other, then the nominal model."""
    each, nominal = _counts(setting)
    width, models = setting.sizes.each, setting.models
    model = np.repeat(np.arange(models), [each] * (models - 1) + [nominal])
    places = jax.random.randint(key, model.shape, 0, judged.states.shape[0] // models)
    rows = (places // width) * (models * width) + model * width + places % width
    return Judged(*(part[rows] for part in judged))


def _objective(
    parameters: tuple[Network, Array],
    setting: Round,
    learned: Learned,
    anchor: Network,
    pushed: Pressures,
    chosen: Judged,
    key: PRNGKey,
) -> tuple[Scalar, Scalar]:
    """What the policy minimises, and the mean of log pi.

    Critics are asked where they count: of costs on the samples, of uncertainty on the nominal model, of the reward on
    all models or on the nominal one.
    """
    (network, log_std), sizes, samples = parameters, setting.sizes, setting.models - 1
    noise = jax.random.normal(key, chosen.shares.shape, PLAN)
    drawn = stochastic(network, log_std, setting.units, chosen.states, noise)
    seen = inputs(setting.units, chosen.states, drawn.shares, chosen.code)
    critics, each = learned.critics.networks, _counts(setting)[0]
    split = samples * each
    rewards = jnp.mean(apply_members(critics.reward, seen if sizes.robust else seen[split:])[..., 0], axis=0)
    others = jnp.mean(apply_members(critics.others, seen), axis=0)
    costs = others[:split, :-1].reshape(samples, each, others.shape[1] - 1)
    charged, taught = jnp.sum(pushed.costs * jnp.mean(costs, axis=1)), jnp.mean(others[split:, -1])
    value = charged - jnp.mean(rewards) - pushed.information * taught
    entropy = (1 - sizes.discount) * jnp.exp(learned.soft.log_temperature) * jnp.mean(drawn.log_density)
    x = standardised(setting.units, chosen.states)
    moved = jnp.tanh(apply(network, x)) - jnp.tanh(apply(anchor, x))
    return value + entropy + sizes.anchor * jnp.mean(moved**2), jnp.mean(drawn.log_density)


def _actor(
    setting: Round, learned: Learned, anchor: Network, judged: Judged, rate: Scalar, key: PRNGKey
) -> tuple[Learned, Forecast]:
    """After one update of the policy, its multipliers and its temperature."""
    see_key, pick_key, draw_key = jax.random.split(key, 3)
    seen, weights = foreseen(setting, learned, see_key), setting.weights
    pushed = pressures(setting.problem, seen, learned.trained, weights, setting.bounds, setting.unit, RAMP)
    trained, soft, chosen = learned.trained, learned.soft, spread(setting, judged, pick_key)
    slopes, log_density = jax.grad(_objective, has_aux=True)(
        (trained.network, soft.log_std), setting, learned, anchor, pushed, chosen, draw_key
    )
    slopes, steered = usable(slopes), setting.sizes.steered
    trained_slopes = of_last_inputs(slopes[0], steered) if steered else slopes[0]
    network, moments = descend(OPTIMISER, trained_slopes, trained.moments, trained.network, rate)
    surplus = -log_density - setting.sizes.entropy  # of the entropy: where it is too large, the temperature falls
    before = (soft.log_std, soft.log_temperature)
    (log_std, log_temperature), soft_moments = descend(SOFT, (slopes[1], surplus), soft.moments, before, SOFT_RATE)
    log_std, log_temperature = jnp.clip(log_std, *STDS), jnp.clip(log_temperature, *TEMPERATURES)
    soft = Soft(log_std, log_temperature, soft_moments)
    trained = followed(setting.problem, trained, seen, weights, setting.bounds)
    return Learned(trained._replace(network=network, moments=moments), learned.critics, soft), seen


@eqx.filter_jit
def fit_critics(learned: Learned, setting: Round, updates: int, key: PRNGKey) -> Critics:
    """Critics that know the policy as it is."""

    def update(carry: tuple[Critics, Course], key: PRNGKey) -> tuple[tuple[Critics, Course], None]:
        critics, course = carry
        roll_key, learn_key = jax.random.split(key)
        course, judged = _advanced(setting, learned._replace(critics=critics), course, roll_key)
        return (_critics(setting, critics, judged, learn_key), course), None

    begun = (learned.critics, _begun(setting, setting.sources.recorded.shape[1]))
    (critics, _), _ = jax.lax.scan(update, begun, jax.random.split(key, updates))
    return critics


@eqx.filter_jit
def train(learned: Learned, setting: Round, rate: Scalar, key: PRNGKey) -> tuple[Learned, Forecast]:
    """So many updates of the policy, and the mean of what was foreseen meanwhile.

    The policy that is kept is a running mean over the updates. Its gradient is computed when it is updated, and not for
    every update of the critics.
    """
    sizes = setting.sizes
    anchor = learned.trained.network

    def update(carry: tuple[Learned, Course, Network], key: PRNGKey) -> tuple[Any, Forecast]:
        learned, course, kept = carry
        roll_key, learn_key, act_key = jax.random.split(key, 3)
        course, judged = _advanced(setting, learned, course, roll_key)
        learned = learned._replace(critics=_critics(setting, learned.critics, judged, learn_key))
        learned, seen = _actor(setting, learned, anchor, judged, rate, act_key)
        w = sizes.averaging
        kept = jax.tree.map(lambda old, new: (1 - w) * old + w * new, kept, learned.trained.network)
        return (learned, course, kept), seen

    begun = (learned, _begun(setting, setting.sources.recorded.shape[1]), anchor)
    (learned, _, kept), seen = jax.lax.scan(update, begun, jax.random.split(key, sizes.updates))
    trained = learned.trained._replace(network=kept)
    return learned._replace(trained=trained), jax.tree.map(lambda each: jnp.mean(each, axis=0), seen)
