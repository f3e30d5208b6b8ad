"""From what is known of a user's system to a task.

Where a Gaussian process has to learn the reward or a cost, these are part of the state: (observation, signals of the
step that led there). The dynamics then predicts them with the observation; nothing depends on those of the last step.
"""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jax import EXACT
from ..errors import UserError
from ..model import KnownSignals, Signals
from ..prior import GPPrior, Prior
from ..task import Task
from ..transitions import Transitions, begin_episodes
from ..types import Action, Dynamics, PRNGKey, Scalar, State
from .description import Description
from .distillation import ask, distil
from .fallback import Fallback
from .knowledge import Knowledge
from .signals import Sources, function
from .system import OwnSystem
from .tracing import traceable

__all__ = ["SignalEnv", "make_own_task", "mean_of", "points_of", "traced_signals"]

POINTS = 24
"""Transitions at which a copied function is compared with the original."""
ASKED = 3000
"""Answers of a simulator that it is distilled from."""

Traced = Callable[..., jax.Array]


def points_of(
    starts: Any, low: Sequence[float], high: Sequence[float], data: Transitions | None
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Some (x, a, y) at which functions can be tried: recorded ones, or initial states with random actions."""
    rng = np.random.default_rng(0)
    if data is not None and len(data.actions):
        rows = rng.permutation(len(data.actions))[:POINTS]
        return [(data.states[i], data.actions[i], data.next_states[i]) for i in rows]
    first = np.array(starts, float)
    picked = first[rng.integers(len(first), size=POINTS)]
    moved = picked + 0.1 * rng.normal(size=picked.shape) * (1 + np.abs(picked))
    return [(x, rng.uniform(low, high), y) for x, y in zip(picked, moved, strict=True)]


def traced_signals(system: OwnSystem, points: Sequence[Sequence[np.ndarray]]) -> tuple[Traced | None, ...]:
    """Reward and costs that are functions which JAX can trace; None for those that must be learned."""
    return tuple(
        None if each is None else _scalar(traceable(each, points)) for each in Sources.of(system.settings).functions()
    )


def _scalar(traced: Traced | None) -> Traced | None:
    """A function that returns an array of one number returns the number."""
    return None if traced is None else lambda x, a, y: traced(x, a, y).reshape(()).astype(x.dtype)


def mean_of(
    system: OwnSystem,
    knowledge_mean: str,
    starts: np.ndarray,
    points: Sequence[Sequence[np.ndarray]],
    shape: Description,
) -> tuple[Dynamics, str]:
    """The prior mean of the observation, and what was done about it, in words."""
    if knowledge_mean == "stay":
        return _stay, "without a simulator, the observation is expected to stay as it is"
    if not system.settings.simulator:
        raise UserError("the prior's mean is 'simulator', and no simulator was given; give it, or set mean = \"stay\".")
    simulator = function(system.settings.simulator, "simulator")
    ask(simulator, starts, shape.action_low, shape.action_high, 1, 1)  # refuses one that does not answer
    traced = traceable(simulator, [point[:2] for point in points])
    if traced is not None:
        return lambda x, a: traced(x, a).reshape(x.shape).astype(x.dtype), "the simulator is used as it is"
    low, high = shape.action_low, shape.action_high
    answers = ask(simulator, starts, low, high, shape.horizon, ASKED)
    distilled, errors = distil(answers)
    moves = (answers.next_states - answers.states).std(axis=0) + 1e-12
    worst = float(np.max(errors / moves))
    return distilled, (
        f"the simulator cannot be traced, so {len(answers.actions)} of its steps were asked for and fitted; on others "
        f"the fit is wrong by {100 * worst:.2g} % of a step"
    )


def _stay(x: State, a: Action) -> State:
    return x


class SignalEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The system, with the signals that are to be learned after its observation."""

    def __init__(self, env: gymnasium.Env[Any, Any], reward: bool, costs: Sequence[int]) -> None:
        super().__init__(env)
        self._reward, self._costs = reward, list(costs)

    def reset(self, **options: Any) -> Any:
        outcome: Any = self.env.reset(**options)
        if not isinstance(outcome, tuple) or len(outcome) != 2:
            return outcome
        nothing = np.zeros(int(self._reward) + len(self._costs))
        return np.concatenate([outcome[0], nothing]), outcome[1]

    def step(self, action: Any) -> Any:
        outcome: Any = self.env.step(action)
        if not isinstance(outcome, tuple) or len(outcome) != 5:
            return outcome
        y, reward, terminated, truncated, info = outcome
        earned = [float(reward)] if self._reward else []
        return np.concatenate([y, earned, info["cost"][self._costs]]), reward, terminated, truncated, info


def _connector(system: OwnSystem, learned: tuple[int, ...]) -> Callable[..., gymnasium.Env[Any, Any]]:
    """What opens the system, with the signals that are learned: 0 is the reward, i the cost i - 1."""

    def connect(render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        env = system.open(render_mode=render_mode)
        return SignalEnv(env, 0 in learned, [i - 1 for i in learned if i > 0]) if learned else env

    return connect


def make_own_task(
    system: OwnSystem, knowledge: Knowledge, budgets: tuple[float, ...], data: Transitions | None
) -> Task:
    """The task. The system is not opened."""
    shape, settings = knowledge.shape, system.settings
    _check(system, knowledge)
    points = points_of(knowledge.starts, shape.action_low, shape.action_high, data)
    known = _agreed(system, knowledge, traced_signals(system, points))
    joined = knowledge.belief == "gp"
    learned = tuple(i for i, each in enumerate(known) if each is None) if joined else ()
    names = ("reward", *(name for name, _ in settings.costs))
    states = (*shape.state_names, *(f"{names[i]} of the step" for i in learned))
    fallback = None
    if settings.fallback:
        control = function(settings.fallback, "fallback")
        fallback = Fallback(control, shape.action_low, shape.action_high, shape.state_size)
    return Task(
        name=system.spec,
        state_names=states,
        action_low=shape.action_low,
        action_high=shape.action_high,
        horizon=shape.horizon,
        costs=settings.priced(budgets),
        start=_starts(knowledge, len(learned)),
        open=_connector(system, learned),
        prior=Prior(
            name=knowledge.source[:60] or "made",
            informative=True,
            gp=_gp(system, knowledge, len(learned), points) if joined else None,
            data=None if data is None else _extended(data, learned),
            policy=fallback,
        ),
        signals=_signals(known, learned, shape.state_size) if joined else None,
        known=KnownSignals() if joined else _known(known),
        safe_action=settings.safe_action or None,
        unobserved=len(learned),
        region=_region(settings.region(shape.state_size), len(learned)),
    )


def _check(system: OwnSystem, knowledge: Knowledge) -> None:
    costs = system.settings.costs
    if len(knowledge.costs) != len(costs):
        raise UserError(
            f"the prior is for {len(knowledge.costs)} costs, and there are {len(costs)}; make it again with "
            "'sbsrl prior'."
        )
    if knowledge.system != system.spec:
        raise UserError(f"the prior is of {knowledge.system}, and the system is {system.spec}; make one for it.")


def _agreed(system: OwnSystem, knowledge: Knowledge, found: tuple[Traced | None, ...]) -> tuple[Traced | None, ...]:
    """The known signals as the prior has them; refuses one that it calls known and that cannot be used."""
    names, agreed = ("reward", *(f"cost '{name}'" for name, _ in system.settings.costs)), []
    for name, how, each in zip(names, (knowledge.reward, *knowledge.costs), found, strict=True):
        if how == "known" and each is None:
            raise UserError(
                f"the prior calls the {name} known, and no function that could be traced was given; give it, or make "
                "the prior again."
            )
        agreed.append(each if how == "known" else None)
    return tuple(agreed)


def _starts(knowledge: Knowledge, signals: int) -> Callable[[PRNGKey], State]:
    first = np.array(knowledge.starts, float)
    table = np.concatenate([first, np.zeros((len(first), signals))], axis=1)

    def start(key: PRNGKey) -> State:
        return jnp.asarray(table, EXACT)[jax.random.randint(key, (), 0, len(table))]

    return start


def _gp(system: OwnSystem, knowledge: Knowledge, signals: int, points: Sequence[Sequence[np.ndarray]]) -> GPPrior:
    assert knowledge.gp is not None
    numbers, shape = knowledge.gp, knowledge.shape
    inner, _ = mean_of(system, numbers.mean, np.array(knowledge.starts), points, shape)
    kernels = numbers.kernels(shape.state_size, signals)
    dx = shape.state_size

    def mean(x: State, a: Action) -> State:
        return (
            jnp.concatenate([inner(x[:dx], a), jnp.asarray(numbers.signal_means, x.dtype)]) if signals else inner(x, a)
        )

    return GPPrior(
        mean=mean,
        scale=numbers.scale,
        kernel=kernels if len(kernels) > 1 else kernels[0],
        noise=numbers.noise if len(numbers.noise) > 1 else numbers.noise[0],
        bound=None,
        bound_source="not known: kernel and noise were fitted to data",
    )


def _signals(known: tuple[Traced | None, ...], learned: tuple[int, ...], dx: int) -> Signals:
    """Reward and costs of a state with the learned ones after the observation."""
    place = {signal: dx + k for k, signal in enumerate(learned)}

    def value(i: int, x: State, a: Action, y: State) -> Scalar:
        each = known[i]
        return y[place[i]] if each is None else each(x[:dx], a, y[:dx])

    def reward(x: State, a: Action, y: State) -> Scalar:
        return value(0, x, a, y)

    def costs(x: State, a: Action, y: State) -> Float[Array, " k"]:
        return jnp.stack([value(i, x, a, y) for i in range(1, len(known))])

    return Signals(reward, costs)


def _known(known: tuple[Traced | None, ...]) -> KnownSignals:
    """For networks: what is known; costs only if all of them are."""
    reward, *costs = known
    every = [each for each in costs if each is not None]
    if len(every) < len(costs):
        return KnownSignals(reward)
    return KnownSignals(reward, lambda x, a, y: jnp.stack([each(x, a, y) for each in every]))


def _extended(data: Transitions, learned: tuple[int, ...]) -> Transitions:
    """The data with the learned signals as part of the state."""
    if not learned:
        return data
    every = np.concatenate([data.rewards[:, None], data.costs], axis=1)[:, list(learned)]
    before = np.where(begin_episodes(data)[:, None], 0.0, np.roll(every, 1, axis=0))
    return data._replace(
        states=np.concatenate([data.states, before], axis=1),
        next_states=np.concatenate([data.next_states, every], axis=1),
    )


def _region(observed: tuple[tuple[float, float], ...] | None, signals: int) -> tuple[tuple[float, float], ...] | None:
    """The same for a state with learned signals after the observation, which are not limited."""
    return None if observed is None else (*observed, *(((-np.inf, np.inf),) * signals))
