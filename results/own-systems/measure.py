"""Runs the examples with five seeds each, and writes what happened: `python results/own-systems/measure.py`.

Every episode on a system is counted, first ones included. Runs are kept in runs/own-systems; finished ones are not
repeated, so that an interrupted measurement goes on.
"""

import csv
import importlib
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import sbsrl
from sbsrl.record import Record
from sbsrl.report.canvas import plt, png
from sbsrl.report.charts import UNSAFE, limit, tidy
from sbsrl.workers import worker_pool

HERE = Path(__file__).parent
EXAMPLES, RUNS = HERE.parents[1] / "examples", Path("runs/own-systems")
NAMES = {
    "pendulum_speed": "Gymnasium's `Pendulum-v1`, speed at most 6 rad/s, nothing known",
    "cart_bound": "MuJoCo's `InvertedPendulum-v5`, cart within 0.3, nothing known",
    "heater_model": "heater, core at most 26 degrees, a slightly wrong model",
    "heater_csv": "heater, core at most 26 degrees, a csv of four mornings",
}
SEEDS = range(5, 10)
"""Seeds 0 to 4 were looked at while the program was written."""
KEPT = ("episode", "phase", "reward", "cost", "budget", "safe", "infeasible_plans", "steps", "seconds")


def run(example: str, seed: int) -> tuple[str, int, float]:
    """One run in its folder, unless it is there already, and how long it took."""
    sys.path.insert(0, str(EXAMPLES))
    out, started = RUNS / f"{example}-s{seed}", perf_counter()
    if not (out / "minutes.txt").exists():
        begun = (out / "config.json").exists()
        sbsrl.resume(out) if begun else importlib.import_module(example).learn(seed=seed, out=out)
        (out / "minutes.txt").write_text("nan" if begun else f"{(perf_counter() - started) / 60:.2f}")
    return example, seed, float((out / "minutes.txt").read_text())


def main() -> None:
    jobs = [(example, seed) for seed in SEEDS for example in NAMES]
    minutes: dict[tuple[str, int], float] = {}
    with worker_pool(2) as pool:
        for done in pool.map(run, *zip(*jobs, strict=True)):
            minutes[done[:2]] = done[2]
            print(*done, flush=True)
    write(minutes)


def write(minutes: dict[tuple[str, int], float]) -> None:
    """The table, every episode, and the picture."""
    rows, episodes, everything = [], [], {}
    for example, title in NAMES.items():
        runs = [sbsrl.RunFolder.open(RUNS / f"{example}-s{seed}").records() for seed in SEEDS]
        everything[example] = runs
        rows.append(row(title, runs, [minutes[example, seed] for seed in SEEDS]))
        for seed, records in zip(SEEDS, runs, strict=True):
            episodes += [[example, seed, *(getattr(record, name) for name in KEPT)] for record in records]
    with (HERE / "episodes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["example", "seed", *KEPT], *episodes])
    (HERE / "README.md").write_text(PAGE.format(rows="\n".join(rows)))
    (HERE / "figure.png").write_bytes(draw(everything))


def draw(everything: dict[str, list[list[Record]]]) -> bytes:
    """What planned episodes earned, and what share of the budget every episode cost; a line for each seed."""
    figure, panels = plt.subplots(
        2, len(everything), sharex="col", figsize=(3.2 * len(everything), 5), layout="constrained"
    )
    for (returns, costs), (example, runs) in zip(panels.T, everything.items(), strict=True):
        for seed, records in zip(SEEDS, runs, strict=True):
            colour = f"C{seed}"
            planned = [record for record in records if record.episode >= 0]
            returns.plot([r.episode for r in planned], [r.reward for r in planned], ".-", color=colour, linewidth=1)
            costs.plot(
                [r.episode for r in records], [r.cost / r.budget for r in records], ".-", color=colour, linewidth=1
            )
        if any(record.episode < 0 for records in runs for record in records):
            for axes in (returns, costs):
                axes.axvspan(-8.5, -0.5, color="#eeeeee", zorder=0)
            costs.text(-4.5, 0.05, "first episodes", ha="center", fontsize=9, color="#555555")
        limit(costs, 1.0, "budget", UNSAFE, "-")
        costs.set_ylim(0, 1.15)
        costs.set_xlabel("episode")
        returns.set_title(example.replace("_", " "), fontsize=11)
        returns.margins(y=0.1)
        tidy(returns)
        tidy(costs)
    panels[0, 0].set_ylabel("return of planned episodes")
    panels[1, 0].set_ylabel("cost as a share of the budget")
    return png(figure)


def row(title: str, runs: list[list[Record]], minutes: list[float]) -> str:
    planned = [record for records in runs for record in records if record.episode >= 0]
    first = [record for records in runs for record in records if record.episode < 0]
    shares = [max(record.cost / record.budget for record in group) for group in (first, planned) if group]
    begun, ended = ([pick(records) for records in runs] for pick in (first_planned, final))
    return (
        f"| {title} | {unsafe(first)} | {unsafe(planned)} | {max(shares):.2f} | {mean(begun)} | {mean(ended)} | "
        f"{sum(record.infeasible_plans for record in planned)} | {np.mean(minutes):.1f} |"
    )


def unsafe(records: list[Record]) -> str:
    return f"{sum(not record.safe for record in records)} of {len(records)}" if records else "none played"


def first_planned(records: list[Record]) -> float:
    return next(record.reward for record in records if record.episode == 0)


def final(records: list[Record]) -> float:
    return next(record.reward for record in records if record.phase == "final")


def mean(values: list[float]) -> str:
    return f"{np.mean(values):.0f} ({min(values):.0f} to {max(values):.0f})"


PAGE = """# Systems of your own

Made by `python results/own-systems/measure.py` from `examples/`: five seeds each, with the prior that `sbsrl` made, and
no other setting than those in the examples. Every episode is in `episodes.csv`. An episode violates if any of its steps
exceeds the budget. First episodes are those that are played where nothing is known, before anything is planned; their
number, and their length, follow from how the system behaves near the middle of its action range.
Seeds 5 to 9; seeds 0 to 4 were looked at while the program was written.

| system | first, violating | planned, violating | largest / budget | return, episode 0 | final | infeasible | min |
|---|---|---|---|---|---|---|---|
{rows}

![returns and costs of all episodes, a line for each seed](figure.png)

First and planned are episodes; infeasible are plans. Returns are means over seeds, with the least and the largest.
Minutes are of a whole run on one core, compilation included, while another run had the other core.
"""

if __name__ == "__main__":
    main()
