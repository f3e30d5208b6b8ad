"""What the benchmarks share: a real run's data, the problem of an episode, and timing in turns."""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sbsrl.belief.choices import GPChoices
from sbsrl.belief.gp import GPBelief
from sbsrl.learner import STARTS, Experiment
from sbsrl.methods import Context
from sbsrl.problem import Problem
from sbsrl.specification import Specification
from sbsrl.starts import draw_starts
from sbsrl.transitions import Episode, Transitions

RUN = Path(__file__).parent / "pendulum"
EPISODE = 50


def paper_size() -> Experiment:
    """The planner of the paper's public code: 1000 + 30 candidates, 5 iterations, no decay, 20 steps, 30 samples."""
    size = {"candidates": 1000, "elites": 100, "iterations": 5, "decay": 1.0, "momentum": 0.2}
    return Specification.make("pendulum", "sbsrl", 0, "cpu", size).start()[0]


def episodes(count: int) -> list[Transitions]:
    """The first episodes of a committed run of the pendulum, which has 11."""
    files = sorted(RUN.glob("*.npz"))
    found = []
    for i in range(count):
        data = np.load(files[i])
        episode = Episode(data["states"], data["actions"], data["rewards"], data["costs"][:, None])
        found.append(episode.transitions)
    return found


def belief_at(experiment: Experiment, points: int, room: int, choices: GPChoices | None = None) -> GPBelief:
    """What is believed after so many points of the run."""
    task = experiment.task
    assert task.prior.gp is not None
    belief = GPBelief.create(
        task.prior.gp, 4, room, room // EPISODE + 1, choices or GPChoices(), signals=task.signals, chunk=task.horizon
    )
    for data in episodes(points // EPISODE):
        belief = belief.update(data, jax.random.key(0))
    return belief


def problem_of(experiment: Experiment, belief: GPBelief, exploring: bool = False) -> Problem:
    key, starts = jax.random.key(1), draw_starts(experiment.task.start, STARTS, jax.random.key(2))
    context = Context(experiment.task, belief, experiment.settings, 9, exploring, False, key, key, starts)
    return experiment.method.problem(context)


def seconds(tasks: Sequence[Callable[[], Any]], rounds: int = 7) -> list[float]:
    """Median processor seconds of each, run in turns, so that noise hits all alike."""
    for task in tasks:
        jax.block_until_ready(task())
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(rounds):
        for task, spent in zip(tasks, times, strict=True):
            start = time.process_time()
            jax.block_until_ready(task())
            spent.append(time.process_time() - start)
    return [statistics.median(spent) for spent in times]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
