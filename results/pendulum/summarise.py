"""Sums up the committed runs beside this file as a Markdown page; `run.sh` writes it to README.md."""

from pathlib import Path

import numpy as np

from sbsrl import RunFolder
from sbsrl.loop import Experiment, Record
from sbsrl.report.reference import Reference, reference_returns
from sbsrl.report.statistics import summarise
from sbsrl.runs import Specification
from sbsrl.settings import Settings
from sbsrl.task import Task

HERE = Path(__file__).parent
SEEDS = range(5)
ORACLE_RUNS = 10


def experiment() -> Experiment:
    """What these runs were, with the oracle in the place of the learner."""
    config = RunFolder.open(HERE / "s0").config
    spec = Specification("pendulum", "oracle", 0, config["preset"], Settings(**config["settings"]))
    return spec.start()[0]


def table(runs: list[list[Record]], scale: Reference) -> list[str]:
    """A row a seed, a column an episode; then the mean and its interval."""
    episodes = [f"{r.episode}{' final' if r.phase == 'final' else ''}" for r in runs[0]]
    returns = [[scale.normalised(r.reward) for r in run] for run in runs]
    columns = [list(column) for column in zip(*returns, strict=True)]
    rows = [["seed", *episodes], ["---"] * (len(episodes) + 1)]
    for seed, run, values in zip(SEEDS, runs, returns, strict=True):
        rows.append([str(seed), *(f"{v:.3f} ({r.cost:.2f})" for v, r in zip(values, run, strict=True))])
    rows.append(["mean", *(f"{np.mean(column):.3f}" for column in columns)])
    found = [summarise(column) for column in columns]
    rows.append(["95 % bootstrap", *(f"{s.mean_low:.3f} to {s.mean_high:.3f}" for s in found)])
    return ["| " + " | ".join(cells) + " |" for cells in rows]


def facts(runs: list[list[Record]], scale: Reference, task: Task) -> list[str]:
    records = [r for run in runs for r in run]
    best = [max(scale.normalised(r.reward) for r in run[:7]) for run in runs]
    at_six = [scale.normalised(run[6].reward) for run in runs]
    seconds = [sum(r.seconds for r in run) for run in runs]
    return [
        f"- episodes on the true system: {len(records)}; violating: {sum(not r.safe for r in records)}",
        f"- plans: {task.horizon * len(records)}; infeasible on a sample: {sum(r.infeasible_plans for r in records)}",
        f"- largest cost: {max(r.cost for r in records):.4f} of {task.budget:g}",
        "- best return up to episode 6, by seed: " + ", ".join(f"{b:.3f}" for b in best),
        "- return in episode 6, by seed: " + ", ".join(f"{b:.3f}" for b in at_six),
        f"- pairs of candidate and sample that had to be evaluated: {np.mean([r.evaluated for r in records]):.0%}",
        f"- seconds a run, one core each: {min(seconds):.0f} to {max(seconds):.0f}",
    ]


def main() -> None:
    oracle = experiment()
    scale = reference_returns(oracle, ORACLE_RUNS)
    runs = [RunFolder.open(HERE / f"s{seed}").records() for seed in SEEDS]
    lines = [
        "# Pendulum, five seeds, default settings",
        "",
        "Made by `make evidence`, that is `sbsrl train pendulum --seed k` for k = 0..4, one core each.",
        "",
        f"Normalised return: 0 = hanging still ({scale.idle:.2f}), 1 = the same planner on the true dynamics "
        f"({scale.oracle:.2f}, mean of {ORACLE_RUNS} runs). In brackets the cost: {oracle.task.cost_name}, budget "
        f"{oracle.task.budget:g}.",
        "",
        *table(runs, scale),
        "",
        *facts(runs, scale, oracle.task),
    ]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
