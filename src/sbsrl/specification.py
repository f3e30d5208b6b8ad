"""From names and changes to an experiment that can run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from .errors import UserError
from .learner import Experiment, Learner
from .methods import DEFAULT, check_prior_policy, make_method
from .parts import Deciding
from .risk import check_risk
from .settings import PRESETS, Settings, make_settings
from .solve.protocol import Preparing, Retreating, Solver
from .starts import draw_starts
from .systems.faults import describe
from .task import Task
from .tasks import find_task, make_task
from .validation import Whole, Word

__all__ = ["Specification", "make_experiment", "plain_name", "resolve"]

SEEDS = Whole(0, 2**32 - 1)


@dataclass(frozen=True)
class Specification:
    """All that determines a run."""

    task: str
    method: str
    seed: int
    preset: str
    settings: Settings

    def __post_init__(self) -> None:
        for name in ("task", "method"):
            Word(empty=False).read(name, getattr(self, name))
        Word(tuple(PRESETS)).read("preset", self.preset)
        object.__setattr__(self, "seed", SEEDS.read("seed", self.seed))

    @classmethod
    def make(cls, task: str, method: str, seed: int, preset: str, changes: Mapping[str, Any]) -> "Specification":
        """The settings of the task, those of the preset, then these changes; the later ones win."""
        return cls(task, method, seed, preset, _settings(task, method, preset, changes))

    def make_task(self) -> Task:
        run = self.settings.run
        return make_task(self.task, run.prior, run.budget, run.data, self.settings.task)

    def experiment(self) -> Experiment:
        return make_experiment(self.make_task(), self.method, self.settings)

    def start(self) -> tuple[Experiment, Learner]:
        """The experiment and its learner before the first episode."""
        experiment = self.experiment()
        return experiment, Learner.create(experiment, self.seed)


def plain_name(task: str) -> str:
    """A task's name as one of a file."""
    return re.sub(r"[^\w.-]+", "-", task).strip("-.")


def _settings(task: str, method: str, preset: str, changes: Mapping[str, Any]) -> Settings:
    Word(empty=False).read("task", task)
    Word(tuple(PRESETS)).read("preset", preset)
    own = find_task(task).presets(changes)
    layers = (own["cpu"], PRESETS[preset], own.get(preset, {}) if preset != "cpu" else {})
    return make_settings(make_method(str(method)).settings, layers, changes, find_task(task).settings)


def resolve(
    task: str, method: str = DEFAULT.name, preset: str = "cpu", changes: Mapping[str, Any] | None = None
) -> tuple[Task, Settings]:
    """The task and the settings of a run, without running it."""
    spec = Specification.make(task, method, 0, preset, changes or {})
    return spec.make_task(), spec.settings


def make_experiment(task: Task, method: str, settings: Settings) -> Experiment:
    """Puts the parts together; refuses what cannot work before anything is played."""
    chosen = make_method(method)
    _check_budgets(task, settings)
    _check_start(task)
    if settings.run.inconsistent == "prior" and task.prior.policy is None:
        raise UserError(
            f"inconsistent=prior needs a prior policy to fall back to, and prior '{task.prior.name}' of {task.name} "
            "has none; use inconsistent=stop."
        )
    solver = _make_solver(task, settings)
    if settings.run.offline and not isinstance(solver, Preparing):
        raise UserError(
            f"offline={settings.run.offline} is an offline phase to begin with, and solver={settings.solver.name} has "
            "none; leave it out."
        )
    if settings.method.monitor:
        check_prior_policy(task, settings, f"monitor={settings.method.monitor}")
        if not isinstance(solver, Retreating):
            raise UserError(
                f"monitor={settings.method.monitor} hands over to another policy, and solver={settings.solver.name} "
                "does not say to which (ways_out); leave the monitor out."
            )
    check_risk(task, settings, chosen.cautious, solver)
    chosen.check(task, settings)
    return Experiment(task, chosen, solver, settings)


def _make_solver(task: Task, settings: Settings) -> Solver:
    """With a risk, one that decides on a policy before the episode, if there is a choice."""
    if settings.method.risk and isinstance(settings.solver, Deciding):
        return settings.solver.deciding(task)
    return settings.solver.create(task)


def _check_start(task: Task) -> None:
    """Refuses a task that does not draw initial states of its size, or others than it says."""
    try:
        starts = np.asarray(draw_starts(task.start, 1, jax.random.key(0)))
    except Exception as error:
        raise UserError(
            f"the start of {task.name} must be a function of a key that JAX can trace: {describe(error)}."
        ) from error
    if starts.shape[1:] != (task.state_size,) or not np.all(np.isfinite(starts)):
        raise UserError(
            f"the start of {task.name} draws {starts[0].tolist()}; it must draw {task.state_size} finite numbers."
        )
    if task.fixed_start is not None and not np.allclose(starts[0], task.fixed_start, rtol=1e-6, atol=1e-9):
        raise UserError(
            f"episodes of {task.name} are said to begin at {list(task.fixed_start)}, and start draws "
            f"{starts[0].tolist()}; leave fixed_start out where episodes begin at different states."
        )


def _check_budgets(task: Task, settings: Settings) -> None:
    tightening = settings.method.tightening
    if len(tightening) not in {1, len(task.costs)}:
        raise UserError(
            f"tightening has {len(tightening)} numbers for {len(task.costs)} costs; give one for all, or one per cost."
        )
    for i, cost in enumerate(task.costs):
        margin, least = tightening[i % len(tightening)], cost.least(task.horizon)
        if cost.budget - margin < least:
            raise UserError(
                f"no policy can meet the tightened budget {cost.budget:g} - {margin:g}: the cost of {task.name} is "
                f"never below {least:g}; raise budget or lower tightening."
            )
