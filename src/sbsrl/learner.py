"""An experiment, and what it learns: all that changes from episode to episode, and the randomness of each."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, UInt32

from .belief.protocol import Belief, Calibrated, Prepared
from .methods import Context, Method
from .settings import Settings
from .solve.protocol import Preparing, Solver
from .starts import draw_starts
from .task import Task
from .types import Flag, Index, PRNGKey

__all__ = [
    "OFFLINE",
    "STARTS",
    "Experiment",
    "Keys",
    "Learner",
    "Turn",
    "calibration_warning",
    "changed",
    "context_of",
    "keys_of",
    "offline_key",
    "sample_key",
    "turn_of",
]


@dataclass(frozen=True, eq=False)
class Experiment:
    """What does not change during a run."""

    task: Task
    method: Method
    solver: Solver
    settings: Settings

    @property
    def explores(self) -> bool:
        """Whether information is demanded at first."""
        return self.method.demands_information(self.settings)


class Learner(eqx.Module):
    """What does change: all state between two episodes, enough to go on exactly from here."""

    belief: Belief
    solver: Any
    """What the solver remembers."""
    key: PRNGKey
    episode: Index
    """n: episodes done."""
    exploring: Flag
    """Whether the exploration constraint of Problem (1) could be met so far."""
    contradicted: Flag
    """Whether the confidence sets so far have no common point: then the belief's own assumptions are wrong."""
    finished: Flag
    """Whether the final policy was run."""
    prepared: Flag
    """Whether the offline phase is over, for those who have one."""

    @classmethod
    def create(cls, experiment: Experiment, seed: int) -> "Learner":
        """The learner before anything was learned."""
        settings, first = experiment.settings, offline_key(experiment.settings, jax.random.key(seed))
        belief = settings.belief.create(experiment.task, settings.run.episodes, jax.random.fold_in(first, BELIEF))
        return cls(
            belief=belief,
            solver=experiment.solver.init(jax.random.fold_in(first, SOLVER)),
            key=jax.random.key(seed),
            episode=jnp.zeros((), jnp.int32),
            exploring=jnp.asarray(experiment.explores),
            contradicted=jnp.asarray(calibration_warning(belief) is not None),
            finished=jnp.zeros((), bool),
            prepared=jnp.asarray(not (isinstance(belief, Prepared) or isinstance(experiment.solver, Preparing))),
        )


def offline_key(settings: Settings, key: PRNGKey) -> PRNGKey:
    """The randomness of what is learned before the first episode."""
    seed = settings.run.offline_seed
    return key if seed < 0 else jax.random.key(seed)


def calibration_warning(belief: Belief) -> str | None:
    """That the confidence sets so far have no common point; None where they have, or where there are none."""
    return belief.calibration_warning() if isinstance(belief, Calibrated) else None


def changed(learner: Learner, **fields: object) -> Learner:
    """The learner with these fields replaced."""
    names = list(fields)
    values = [jnp.asarray(value) if isinstance(value, bool) else value for value in fields.values()]
    return eqx.tree_at(lambda tree: [getattr(tree, name) for name in names], learner, values)


class Turn(NamedTuple):
    """Which episode is to be played. Its randomness depends on the run's seed and its number only."""

    episode: int
    seed: int
    """Of the true system's reset."""
    key: PRNGKey
    """Of the policy."""


# Folded into the seed these give keys of their own: no episode has these numbers.
SAMPLES, SOLVER, BELIEF, OFFLINE = 2**31 - 1, 2**31 - 2, 2**31 - 3, 2**31 - 4


@jax.jit
def sample_key(key: PRNGKey) -> PRNGKey:
    """The key of a run's samples, the same in all its episodes."""
    return jax.random.fold_in(key, SAMPLES)


class Keys(NamedTuple):
    """All randomness of one episode."""

    reset: UInt32[Array, ""]
    """A number for the true system's reset."""
    solve: PRNGKey
    rollout: PRNGKey
    update: PRNGKey
    starts: PRNGKey
    noise: PRNGKey
    test: PRNGKey
    fresh: PRNGKey


def keys_of(learner: Learner) -> Keys:
    """It depends on the run's seed and the episode's number only, hence not on how the run was resumed."""
    return _split(learner.key, learner.episode)


@jax.jit
def _split(key: PRNGKey, episode: Index) -> Keys:
    reset, solve, rollout = jax.random.split(jax.random.fold_in(key, episode), 3)
    update, starts, noise, test, fresh = (jax.random.fold_in(reset, i) for i in (1, 2, 3, 4, 5))
    return Keys(jax.random.bits(reset, dtype=jnp.uint32), solve, rollout, update, starts, noise, test, fresh)


def turn_of(learner: Learner) -> Turn:
    """The episode that comes next."""
    keys = keys_of(learner)
    return Turn(int(learner.episode), int(keys.reset) >> 1, keys.rollout)  # some systems take 31 bits only


STARTS = 8
"""Initial states that a problem has."""


def context_of(experiment: Experiment, learner: Learner, final: bool = False) -> Context:
    """What the method may use at this episode."""
    keys = keys_of(learner)
    return Context(
        task=experiment.task,
        belief=learner.belief,
        settings=experiment.settings,
        episode=int(learner.episode),
        exploring=bool(learner.exploring) and not final,
        final=final,
        key=sample_key(learner.key),
        noise=keys.noise,
        starts=draw_starts(experiment.task.start, STARTS, keys.starts),
    )
