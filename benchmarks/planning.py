"""How fast a plan is, as ratios measured side by side in one process; writes `planning.md` and `planning.png`.

The size is that of the paper's public code: 1030 candidates x 5 iterations x 20 steps x 30 samples. The belief
holds the data of a committed run, and plans are made along one of its episodes, each with the memory of the one before.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import belief_at, episodes, paper_size, problem_of, seconds, table
from plain import PlainPosterior, evaluate, random_actions

from sbsrl.belief.choices import GPChoices
from sbsrl.learner import Experiment
from sbsrl.numerics import cos
from sbsrl.problem import Problem
from sbsrl.solve.icem import ICEM
from sbsrl.solve.receding import ReplanningSolver

HERE = Path(__file__).parent
STEPS = (5, 15, 30)
"""Where in the episode plans are timed: gaining speed, near the limit, at the top."""
PLAIN_CANDIDATES = 8


def planner_of(experiment: Experiment) -> ICEM:
    assert isinstance(experiment.solver, ReplanningSolver)
    return experiment.solver.planner


def plans(planner: ICEM, problem: Problem) -> tuple[Callable[[], Any], float]:
    """A plan at each of the steps, with the memory of the step before; and the mean share of pairs evaluated."""
    states = episodes(9)[8].states
    starts = []
    for t in STEPS:
        _, memory = planner.plan(
            problem, jnp.asarray(states[t - 1]), planner.init(problem.constraint_count), jax.random.key(t)
        )
        starts.append((jnp.asarray(states[t]), memory))

    def all_of_them() -> list[Any]:
        return [planner.plan(problem, x, m, jax.random.key(7))[0] for x, m in starts]

    shares = [float(plan.evaluated) for plan in all_of_them()]
    return all_of_them, float(np.mean(shares))


def plain_seconds(experiment: Experiment, points: int) -> float:
    """Processor seconds of a plain plan: measured for a few candidates on all particles, and scaled to 1030 x 5."""
    belief = belief_at(experiment, points, points)
    posterior, x = PlainPosterior.of(belief), jnp.asarray(episodes(1)[0].states[10])
    actions = random_actions(PLAIN_CANDIDATES, 20)
    noise = jax.random.normal(jax.random.key(0), (30, 20, 3))
    (spent,) = seconds([lambda: evaluate(experiment.task, posterior, x, actions, noise)], 3)
    return spent * 1030 * 5 / PLAIN_CANDIDATES


def against_plain(experiment: Experiment) -> list[str]:
    planner, rows = planner_of(experiment), []
    for points in (50, 200, 450):
        problem = problem_of(experiment, belief_at(experiment, points, 500))
        timed, share = plans(planner, problem)
        (ours,) = seconds([timed])
        plain = plain_seconds(experiment, points)
        ours /= len(STEPS)
        rows.append([str(points), f"{plain:.0f} s", f"{1000 * ours:.0f} ms", f"{plain / ours:.0f}", f"{share:.0%}"])
    return table(["points", "plain", "here", "ratio", "pairs evaluated"], rows)


def variants(experiment: Experiment) -> list[str]:
    """Each against the greedy plan with 450 points, in turns."""
    planner = planner_of(experiment)
    belief = belief_at(experiment, 450, 500)
    greedy, exploring = problem_of(experiment, belief), problem_of(experiment, belief, exploring=True)
    modest = exploring.demanding(jnp.asarray(20.0, jnp.float32), 20)
    hopeless = exploring.demanding(jnp.asarray(1e4, jnp.float32), 20)
    particles = problem_of(experiment, belief_at(experiment, 450, 500, GPChoices(sampler="particles")))
    truncated = problem_of(experiment, belief_at(experiment, 450, 500, GPChoices(sampler="truncated")))
    named = {
        "greedy": plans(planner, greedy),
        "exploring, 20 nats asked of 20 steps": plans(planner, modest),
        "exploring, more asked than there is": plans(planner, hopeless),
        "TS1 particles instead of functions": plans(planner, particles),
        "truncated prior samples (exact confidence sets)": plans(planner, truncated),
    }
    times = seconds([timed for timed, _ in named.values()], 2)
    rows = [
        [name, f"{spent / times[0]:.2f}", f"{1000 * spent / len(STEPS):.0f} ms", f"{share:.0%}"]
        for (name, (_, share)), spent in zip(named.items(), times, strict=True)
    ]
    return table(["plan with 450 points", "ratio to greedy", "processor time", "pairs evaluated"], rows)


def full_evaluation(experiment: Experiment) -> list[str]:
    """Lazy against all candidates on all samples, with the same functions."""
    planner, problem = planner_of(experiment), problem_of(experiment, belief_at(experiment, 450, 500))
    lazy, share = plans(planner, problem)
    full, everything = plans(replace(planner, lazy=False), problem)
    t_lazy, t_full = seconds([lazy, full], 3)
    angles = jnp.linspace(-30, 30, 1_000_000, dtype=jnp.float32)
    xla_cos, our_cos = jax.jit(jnp.cos), jax.jit(cos)
    t_xla, t_poly = seconds([lambda: xla_cos(angles), lambda: our_cos(angles)])
    rows = [
        [
            f"all candidates on all samples ({everything:.0%} of the pairs) : lazy ({share:.0%})",
            f"{t_full / t_lazy:.1f}",
        ],
        ["XLA's cosine : the polynomial", f"{t_xla / t_poly:.1f}"],
    ]
    return table(["what", "ratio"], rows)


Curve = list[tuple[int, float, float]]
"""Size, processor seconds, share of the pairs evaluated."""


def scaling(experiment: Experiment) -> tuple[list[str], dict[str, Curve]]:
    """Processor time over the number of points and of samples."""

    def curve(sizes: tuple[int, ...], plans_at: Callable[[int], tuple[Callable[[], Any], float]]) -> Curve:
        timed = [plans_at(n) for n in sizes]
        times = seconds([task for task, _ in timed], 5)
        return [(n, t / len(STEPS), share) for n, t, (_, share) in zip(sizes, times, timed, strict=True)]

    def with_points(n: int) -> tuple[Callable[[], Any], float]:
        return plans(planner_of(experiment), problem_of(experiment, belief_at(experiment, n, 500)))

    def with_samples(m: int) -> tuple[Callable[[], Any], float]:
        method = replace(experiment.settings.method, samples=m)
        sized = replace(experiment, settings=replace(experiment.settings, method=method))
        return plans(planner_of(sized), problem_of(sized, belief_at(sized, 450, 500)))

    curves = {
        "data points N (30 samples)": curve((50, 100, 200, 300, 450), with_points),
        "samples M (450 points)": curve((1, 3, 10, 30, 100), with_samples),
    }
    lines = []
    for name, points in curves.items():
        first_n, first_t, _ = points[0]
        rows = [
            [str(n), f"{t / first_t:.2f}", f"{n / first_n:.2f}", f"{1000 * t:.0f} ms", f"{share:.0%}"]
            for n, t, share in points
        ]
        lines += [*table([name, "time, ratio to the first", "linear would be", "time", "pairs evaluated"], rows), ""]
    return lines, curves


def draw(curves: dict[str, Curve]) -> None:
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, (name, curve) in zip(axes, curves.items(), strict=True):
        n, t, _ = np.array(curve).T
        axis.plot(n, 1000 * t, "o-", color="#0072B2", label="measured")
        axis.plot([0, n[-1]], [0, 1000 * t[-1]], ":", color="0.5", label="if it were proportional")
        axis.set(xlabel=name, xlim=(0, None), ylim=(0, None))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("processor time of a plan (ms)")
    axes[0].legend(frameon=False)
    figure.savefig(HERE / "planning.png", dpi=130)


def wall_clock(experiment: Experiment) -> list[str]:
    """How long one has to wait, on all the cores this process may use."""
    problem = problem_of(experiment, belief_at(experiment, 450, 500))
    timed, _ = plans(planner_of(experiment), problem)
    timed()
    waits = []
    for _ in range(10):
        start = time.perf_counter()
        jax.block_until_ready(timed())
        waits.append((time.perf_counter() - start) / len(STEPS))
    cores = len(os.sched_getaffinity(0))
    spent = f"median {1000 * np.median(waits):.0f} ms, best {1000 * min(waits):.0f} ms"
    return [f"Wall clock of a plan with 450 points, number of cores {cores}: {spent}."]


def memory() -> float:
    """GB at most, of a process that compiles, learns 450 points and plans, and does nothing else."""
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    command = [sys.executable, __file__, "one"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def one_plan() -> None:
    """What `memory` measures."""
    experiment = paper_size()
    plans(planner_of(experiment), problem_of(experiment, belief_at(experiment, 450, 500)))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def section(name: str, lines: list[str]) -> list[str]:
    """A part of the page, shown as soon as it is there."""
    text = [f"## {name}", "", *lines, ""]
    print("\n".join(text), flush=True)
    return text


def main() -> None:
    experiment = paper_size()
    page = [
        "# Planning (`make bench`)",
        "",
        "One plan: 1030 candidates x 5 iterations x 20 steps x 30 samples, pendulum, data of a committed run.",
        "Processor time of one process; ratios are measured in turns in one run. Absolute times vary with the machine.",
        "",
    ]
    proportional = [
        f"The plain plan is measured for {PLAIN_CANDIDATES} candidates and scaled to 1030 x 5, as its cost is.",
        "Like the public code it has a posterior for each output, though here all are equal: sharing one would save it",
        "up to a factor of 3.",
    ]
    page += section("Against the plain computation (`plain.py`)", [*proportional, "", *against_plain(experiment)])
    scaled, curves = scaling(experiment)
    draw(curves)
    page += section("Growth", [*scaled, "![time over points and samples](planning.png)"])
    used = f"Memory of a process that compiles and makes such plans: {memory():.2f} GB at most."
    page += section("Waiting and memory", [*wall_clock(experiment), used])
    page += section("What the ideas give", full_evaluation(experiment))
    page += section("Kinds of plans", variants(experiment))
    (HERE / "planning.md").write_text("\n".join(page))


if __name__ == "__main__":
    one_plan() if sys.argv[1:] == ["one"] else main()
