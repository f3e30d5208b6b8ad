"""What makes a plan fast, as ratios: each pair is timed in turns in one process, so that noise hits both alike.

Writes the table to `planning.md` beside this file.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbsrl.loop import Experiment, Learner
from sbsrl.methods import Context
from sbsrl.numerics import cos
from sbsrl.problem import Problem
from sbsrl.runs import Specification
from sbsrl.solve import ICEM, ReplanningSolver
from sbsrl.task import Transitions

ROUNDS = 7


def swings(experiment: Experiment, count: int) -> Transitions:
    """Transitions of the true pendulum under slowly varying random torques."""
    task, rng = experiment.task, np.random.default_rng(0)
    step = jax.jit(task.dynamics)
    rows = []
    for i in range(count):
        if i % task.horizon == 0:
            x, a = task.reset(jax.random.key(0)), 0.0
        a = float(np.clip(0.8 * a + 0.6 * rng.normal(), -1, 1))
        y = step(x, jnp.array([a]))
        rows.append((np.asarray(x), np.array([a]), np.asarray(y)))
        x = y
    return Transitions(*(np.stack(part) for part in zip(*rows, strict=True)))


def seconds(*tasks: Callable[[], Any]) -> list[float]:
    """Median processor seconds of each, run in turns."""
    for task in tasks:
        jax.block_until_ready(task())
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(ROUNDS):
        for task, spent in zip(tasks, times, strict=True):
            start = time.process_time()
            jax.block_until_ready(task())
            spent.append(time.process_time() - start)
    return [statistics.median(spent) for spent in times]


def problem_at(experiment: Experiment, learner: Learner, points: int, exploring: bool) -> Problem:
    belief = learner.belief.update(swings(experiment, points))
    context = Context(experiment.task, belief, experiment.settings, 1, exploring, False, jax.random.key(1))
    return experiment.method.problem(context)


def main() -> None:
    experiment, learner = Specification.make("pendulum", "sbsrl", 0, "cpu", {}).start()
    x, key = experiment.task.reset(jax.random.key(0)), jax.random.key(2)

    def plan(planner: ICEM, problem: Problem) -> Callable[[], Any]:
        _, memory = planner.plan(problem, x, planner.forget(), key)
        return lambda: planner.plan(problem, x, memory, key)

    assert isinstance(experiment.solver, ReplanningSolver)
    lazy = experiment.solver.planner
    full = replace(lazy, chunk=lazy.candidates + lazy.kept_elites)  # one chunk: every candidate on every sample
    few, many = (problem_at(experiment, learner, n, exploring=False) for n in (50, 450))
    exploring = problem_at(experiment, learner, 450, exploring=True)
    t_full, t_lazy = seconds(plan(full, many), plan(lazy, many))
    t_few, t_many, t_exploring = seconds(plan(lazy, few), plan(lazy, many), plan(lazy, exploring))
    angles = jnp.linspace(-30, 30, 1_000_000, dtype=jnp.float32)
    xla_cos, our_cos = jax.jit(jnp.cos), jax.jit(cos)
    t_xla, t_poly = seconds(lambda: xla_cos(angles), lambda: our_cos(angles))
    rows = [
        ("all candidates on all samples : lazy evaluation", t_full / t_lazy),
        ("a plan at 450 data points : at 50", t_many / t_few),
        ("a plan that explores : a greedy one, 450 points", t_exploring / t_many),
        ("XLA's cosine : the polynomial", t_xla / t_poly),
    ]
    lines = ["# Planning, ratios of processor time (`make bench`)", "", "| what | ratio |", "|---|---|"]
    lines += [f"| {name} | {ratio:.2f} |" for name, ratio in rows]
    lines += ["", f"For orientation only: a greedy plan at 450 points took {1000 * t_many:.0f} ms of processor time."]
    text = "\n".join(lines) + "\n"
    (Path(__file__).parent / "planning.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
