"""Worlds whose truth is a draw from the prior, and runs in them: whether a risk that is promised is kept.

f = mu + scale g with g from GP(0, k), as a sum over thousands of random Fourier features in double precision, and the
process noise that the prior says. What a belief says of such a world is right, so that its promises can be counted.

The first policy of a run is chosen knowing the prior only. So it is also tried, not learned from, in a thousand worlds
more, whose functions are drawn exactly, one question at a time (`belief/sequential.py`).
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax import EXACT, PLAN
from ..belief.sequential import SequentialSample
from ..choice import Refused
from ..costs import charged, nothing_charged
from ..kernels import FeatureMap
from ..learner import Learner, Turn
from ..loop import algorithm_1
from ..methods import DEFAULT
from ..policy import Policy
from ..specification import Specification, make_experiment
from ..systems.episode import Guard, Played, run_episode
from ..systems.equations import EquationsEnv
from ..task import Equations, Task
from ..types import Action, Dynamics, Flag, Index, PRNGKey, State

__all__ = ["FURTHER", "DrawnDynamics", "Line", "drawn_task", "run_in_drawn_world", "violating_elsewhere"]

FEATURES = 4096
"""Of a truth: eight times as many as functions have on which policies are tried."""

WORLD, ELSEWHERE = 2**31 - 5, 2**31 - 6
"""Folded into a seed they give the keys of its world and of further ones, which no run uses."""

FURTHER = 1000
TOGETHER = 100
"""Further worlds, and how many of them at once."""


class DrawnDynamics(eqx.Module):
    """f(x, a) = mu(x, a) + scale phi(x, a) . w."""

    mean: Dynamics = eqx.field(static=True)
    scale: Float[Array, " dx"]
    features: tuple[FeatureMap, ...]
    weights: tuple[Float[Array, "k D"], ...]

    @classmethod
    def draw(cls, task: Task, key: PRNGKey) -> "DrawnDynamics":
        """From the Gaussian process that the task's prior says."""
        prior = task.prior.gp
        assert prior is not None
        maps, weights = [], []
        outputs = len(prior.scale) // len(prior.kernels)
        for i, kernel in enumerate(prior.kernels):
            feature_key, weight_key = jax.random.split(jax.random.fold_in(key, i))
            phi = kernel.features(feature_key, FEATURES, "paired")
            size = jax.eval_shape(phi, jnp.zeros(task.input_size, EXACT)).shape[0]
            maps.append(phi)
            weights.append(jax.random.normal(weight_key, (outputs, size), EXACT))
        return cls(prior.mean, jnp.asarray(prior.scale, EXACT), tuple(maps), tuple(weights))

    def __call__(self, x: State, a: Action) -> State:
        z = jnp.concatenate([x, a]).astype(EXACT)
        drawn = jnp.concatenate([w @ phi(z) for phi, w in zip(self.features, self.weights, strict=True)])
        return self.mean(x, a) + self.scale * drawn


class NoisyStep(eqx.Module):
    """A step of it, with process noise."""

    dynamics: DrawnDynamics
    noise: Float[Array, " dx"]

    def __call__(self, x: State, a: Action, key: PRNGKey) -> State:
        return self.dynamics(x, a) + self.noise * jax.random.normal(key, x.shape, EXACT)


def drawn_task(task: Task, seed: int) -> Task:
    """The task on a system that is drawn from its prior."""
    prior, given = task.prior.gp, task.equations
    assert prior is not None
    assert given is not None
    noise = jnp.broadcast_to(jnp.asarray(prior.noise, EXACT), (task.state_size,)) * jnp.asarray(prior.scale, EXACT)
    dynamics = DrawnDynamics.draw(task, jax.random.fold_in(jax.random.key(seed), WORLD))
    deviation = tuple(float(each) for each in noise)
    equations = Equations(given.start, NoisyStep(dynamics, noise), dynamics, given.signals, deviation)
    opened = partial(EquationsEnv, equations, task.action_low, task.action_high, task.horizon)
    return replace(task, equations=equations, open=opened)


@eqx.filter_jit
def violating_elsewhere(task: Task, policy: Policy, key: PRNGKey) -> Index:
    """In how many of the further worlds an episode of the policy violates."""
    prior, given = task.prior.gp, task.equations
    assert prior is not None
    assert given is not None
    scale = jnp.asarray(prior.scale, EXACT)
    noise = jnp.broadcast_to(jnp.asarray(prior.noise, EXACT), scale.shape) * scale
    budgets, how = jnp.asarray([cost.budget for cost in task.costs], PLAN), [cost.aggregation for cost in task.costs]
    outputs = task.state_size // len(prior.kernels)

    def world(key: PRNGKey) -> Flag:
        start_key, *keys = jax.random.split(key, 1 + len(prior.kernels))
        drawn = tuple(
            SequentialSample.from_prior(kernel, outputs, task.horizon, task.input_size, each)
            for kernel, each in zip(prior.kernels, keys, strict=True)
        )

        def step(now: tuple[Any, ...], key: PRNGKey) -> tuple[tuple[Any, ...], None]:
            x, memory, functions, costs = now
            a, memory, _ = policy.act(x, memory, key)
            a = a.astype(EXACT)
            asked = [each.ask(jnp.concatenate([x, a])) for each in functions]
            mismatch = scale * jnp.concatenate([value for value, _ in asked])
            y = prior.mean(x, a) + mismatch + noise * jax.random.normal(key, x.shape, EXACT)
            paid = charged(costs, given.signals.costs(x, a, y).astype(PLAN)[None], how)
            return (y, memory, tuple(after for _, after in asked), paid), None

        begun = (given.start(start_key).astype(EXACT), policy.init(), drawn, nothing_charged(1, how))
        (_, _, _, costs), _ = jax.lax.scan(step, begun, jax.random.split(start_key, task.horizon))
        return ~jnp.all(costs[0] <= budgets)

    return jnp.sum(jax.lax.map(world, jax.random.split(key, FURTHER), batch_size=TOGETHER), dtype=jnp.int32)


class Line(NamedTuple):
    """An episode in a drawn world, or a refusal to play one."""

    risk: float
    """That was promised; 0 is nothing."""
    seed: int
    episode: int
    phase: str
    reward: float
    cost: float
    safe: bool
    seconds: float
    metrics: dict[str, float]


def run_in_drawn_world(task: str, seed: int, changes: dict[str, Any]) -> Iterator[Line]:
    """Algorithm 1 in the world of this seed, with the same seed; what is refused ends it, and is safe."""
    spec = Specification.make(task, DEFAULT.name, seed, "cpu", changes)
    known = _known(spec)
    experiment = make_experiment(drawn_task(known, seed), spec.method, spec.settings)
    risk, learner = spec.settings.method.risk, Learner.create(experiment, seed)
    env, guard = experiment.task.connect(), Guard.of(experiment.task, 0.0)

    def play(policy: Policy, turn: Turn) -> Played:
        return run_episode(env, policy, turn.seed, turn.key, experiment.task.horizon, guard=guard)

    try:
        for outcome in algorithm_1(experiment, learner, play):
            r, metrics = outcome.record, dict(outcome.record.metrics)
            if risk and r.episode == 0:
                key = jax.random.fold_in(jax.random.key(seed), ELSEWHERE)
                metrics["elsewhere"] = int(violating_elsewhere(known, outcome.policy, key))
            yield Line(risk, seed, r.episode, r.phase, r.reward, r.cost, r.safe, r.seconds, metrics)
            learner = outcome.learner
    except Refused:
        yield Line(risk, seed, int(learner.episode), "refused", 0.0, 0.0, True, 0.0, {})


_TASKS: dict[Any, Task] = {}


def _known(spec: Specification) -> Task:
    """The task without its world, made once: its functions are then the same in all worlds, and compiled once."""
    run = spec.settings.run
    return _TASKS.setdefault((spec.task, run.prior, run.budget), spec.make_task())
