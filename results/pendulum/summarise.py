"""Sums up the committed runs beside this file as a Markdown page; `run.sh` writes it to README.md."""

from pathlib import Path

import numpy as np

from sbsrl import RunFolder
from sbsrl.loop import Record
from sbsrl.report.reference import Reference, reference_returns
from sbsrl.runs import Specification
from sbsrl.settings import Settings

HERE = Path(__file__).parent
SEEDS = range(5)
ORACLE_RUNS = 10


def reference() -> Reference:
    """The scale for these runs: the same planner settings, on the true dynamics."""
    config = RunFolder.open(HERE / "s0").config
    spec = Specification("pendulum", "oracle", 0, config["preset"], Settings(**config["settings"]))
    return reference_returns(spec.start()[0], ORACLE_RUNS)


def bootstrap(values: list[float]) -> tuple[float, float]:
    """95 % percentile interval of the mean over seeds."""
    rng = np.random.default_rng(0)
    means = np.mean(rng.choice(values, (10_000, len(values))), axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    scale = reference()
    runs: list[list[Record]] = [RunFolder.open(HERE / f"s{seed}").records() for seed in SEEDS]
    episodes = [f"{r.episode}{' final' if r.phase == 'final' else ''}" for r in runs[0]]
    everything = [r for run in runs for r in run]
    print("# Pendulum, five seeds, default settings\n")
    print("Made by `make evidence`, that is `sbsrl train pendulum --seed k` for k = 0..4, one core each.\n")
    print(
        f"Normalised return: 0 = hanging still ({scale.idle:.2f}), 1 = the same planner on the true dynamics "
        f"({scale.oracle:.2f}, mean of {ORACLE_RUNS} runs). In brackets the fastest turn in rad/s; the budget is 6.\n"
    )
    print(row(["seed", *episodes]))
    print(row(["---"] * (len(episodes) + 1)))
    for seed, run in zip(SEEDS, runs, strict=True):
        print(row([str(seed), *(f"{scale.normalised(r.reward):.3f} ({r.cost:.2f})" for r in run)]))
    columns = list(zip(*([scale.normalised(r.reward) for r in run] for run in runs), strict=True))
    print(row(["mean", *(f"{np.mean(c):.3f}" for c in columns)]))
    print(row(["95 % bootstrap", *("{:.3f} to {:.3f}".format(*bootstrap(list(c))) for c in columns)]))
    best = [max(scale.normalised(r.reward) for r in run[:7]) for run in runs]
    at_six = [scale.normalised(run[6].reward) for run in runs]
    print(f"\n- episodes on the true system: {len(everything)}; violating: {sum(not r.safe for r in everything)}")
    print(f"- plans: {50 * len(everything)}; infeasible on some sample: {sum(r.infeasible_plans for r in everything)}")
    print(f"- largest cost: {max(r.cost for r in everything):.4f} of 6")
    print("- best return up to episode 6, by seed: " + ", ".join(f"{b:.3f}" for b in best))
    print("- return in episode 6, by seed: " + ", ".join(f"{b:.3f}" for b in at_six))
    seconds = [sum(r.seconds for r in run) for run in runs]
    print(f"- seconds a run, one core of two: {min(seconds):.0f} to {max(seconds):.0f}")


if __name__ == "__main__":
    main()
