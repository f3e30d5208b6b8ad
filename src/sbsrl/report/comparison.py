"""A comparison of arms over seeds: runs them, puts returns on one scale, and writes down every episode."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..methods import REFERENCE
from ..record import Record
from ..runs.study import STUDIES, Arm, Runs, run_study
from ..runs.view import Reference
from ..versions import versions_now
from ..workers import worker_pool
from .canvas import png
from .charts import draw_bars
from .figures import Request
from .reference import reference_returns
from .statistics import summarise

__all__ = ["Comparison", "Sections", "compare", "draw_outcomes", "markdown_table", "page", "publish", "training"]

SEEDS = {"smoke": 1}
"""Runs of an arm, where it is not five."""
ORACLE_RUNS = 10
ENOUGH = 0.9
"""The normalised return whose first episode tells how fast a method learns."""


Sections = Mapping[str, Sequence[Arm]]
"""Arms under a heading each; those of a section have one task."""


COLUMNS_OF_EPISODES = (*(name for name in Record._fields if name != "metrics"), "infeasible_plans", "worst_plan")


class Comparison(NamedTuple):
    """All episodes of all arms, and for each task the two ends of the scale of returns."""

    runs: Runs
    references: Mapping[str, Reference]
    seeds: Sequence[int]

    def returns(self, arm: Arm) -> Float[np.ndarray, "seeds episodes"]:
        """The normalised return of every training episode."""
        scale = self.references[arm.task].normalised
        return np.array([[scale(r.reward) for r in training(run)] for run in self.runs[arm]])

    def costs(self, arm: Arm) -> Float[np.ndarray, "seeds episodes"]:
        return np.array([[r.cost for r in training(run)] for run in self.runs[arm]])

    def cumulative(self, arm: Arm) -> Float[np.ndarray, " seeds"]:
        """The normalised cumulative return: the mean over all training episodes."""
        return self.returns(arm).mean(axis=1)

    def final(self, arm: Arm) -> Float[np.ndarray, " seeds"]:
        """The normalised return of the policy that is returned in the end."""
        return np.array([self.references[arm.task].normalised(run[-1].reward) for run in self.runs[arm]])

    def worst(self, arm: Arm) -> Float[np.ndarray, " seeds"]:
        """The largest violation of any episode, the last one included."""
        return np.array([max(r.violation for r in run) for run in self.runs[arm]])

    def learned(self, arm: Arm) -> list[int | None]:
        """For each seed the first training episode with nine tenths of the oracle's return."""
        enough = self.returns(arm) >= ENOUGH
        return [int(np.argmax(row)) if row.any() else None for row in enough]

    def settled(self, arm: Arm) -> list[int | None]:
        """For each seed the first training episode from which on all have nine tenths of the oracle's return."""
        enough = self.returns(arm) >= ENOUGH
        return [len(row) - int(np.argmin([*row[::-1], False])) if row[-1] else None for row in enough]

    def episodes_until(self, arm: Arm, first: Sequence[int | None]) -> Float[np.ndarray, " seeds"]:
        """The same as a number of episodes; who did not get there counts as one more than there were."""
        total = self.returns(arm).shape[1]
        return np.array([total + 1 if each is None else each + 1 for each in first], float)

    def infeasible(self, arm: Arm) -> Float[np.ndarray, " seeds"]:
        """How many of all plans of a run were not safe on all samples, in percent."""
        return np.array(
            [100 * sum(r.infeasible_plans for r in run) / sum(r.steps for r in run) for run in self.runs[arm]]
        )

    def records(self, arm: Arm) -> list[Record]:
        return [r for run in self.runs[arm] for r in run]

    def csv(self) -> bytes:
        """One line per episode."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["label", "task", "method", "changes", "seed", "normalised", *COLUMNS_OF_EPISODES])
        for arm, seeds in self.runs.items():
            changes = " ".join(f"{name}={value}" for name, value in arm.changes)
            for seed, run in zip(self.seeds, seeds, strict=True):
                for r in run:
                    normalised = self.references[arm.task].normalised(r.reward)
                    values = [getattr(r, name) for name in COLUMNS_OF_EPISODES]
                    writer.writerow([arm.label, arm.task, arm.method, changes, seed, f"{normalised:.5f}", *values])
        return text.getvalue().encode()


def training(run: Sequence[Record]) -> Sequence[Record]:
    """All but the episode of the final policy."""
    return [r for r in run if r.phase != "final"]


def compare(request: Request, sections: Sections) -> Comparison:
    """Runs what is missing of every arm with every seed, and the oracle of every task."""
    arms = list(dict.fromkeys(arm for each in sections.values() for arm in each))
    seeds = range(request.seed, request.seed + (request.seeds or SEEDS.get(request.preset, 5)))
    request.say(f"{len(arms)} arms x {len(seeds)} seeds, kept in {STUDIES}: if interrupted, the same command goes on")
    runs = run_study(arms, seeds, request.preset, STUDIES, request.workers, request.progress)
    request.say("the oracle of each task")
    tasks = list(dict.fromkeys(arm.task for arm in arms))
    with worker_pool(min(request.workers, len(tasks))) as pool:
        found = pool.map(_reference, tasks, [request.preset] * len(tasks))
        return Comparison(runs, dict(zip(tasks, found, strict=True)), seeds)


def _reference(task: str, preset: str) -> Reference:
    reference = reference_returns(Arm("", task, REFERENCE.name).specification(0, preset).experiment(), ORACLE_RUNS)
    assert reference is not None  # figures are made of tasks with equations
    return reference


def draw_outcomes(returns: Axes, violations: Axes, comparison: Comparison, arms: Sequence[Arm]) -> None:
    """The two bar charts of the paper: what a run earned, and by how much it was unsafe at worst."""
    draw_bars(returns, {arm.label: comparison.cumulative(arm) for arm in arms})
    returns.set_ylabel(f"{arms[0].task}\nnormalised cumulative return")
    draw_bars(violations, {arm.label: comparison.worst(arm) for arm in arms})
    violations.set_ylabel("largest violation of a run")
    violations.set_ylim(bottom=0, top=max(0.1, violations.get_ylim()[1]))  # none at all is not to look like much


COLUMNS = (
    "",
    "cumulative return",
    "final return",
    f"first episode ≥ {ENOUGH:g}, by seed",
    f"≥ {ENOUGH:g} from that episode on",
    "violating episodes",
    "largest violation",
    "infeasible plans",
    "seconds per run",
)


def markdown_table(comparison: Comparison, arms: Iterable[Arm]) -> str:
    """One line per arm: mean ± deviation over seeds, in brackets the 95 % bootstrap interval of the mean."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(_row(comparison, arm) for arm in arms)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _row(comparison: Comparison, arm: Arm) -> tuple[str, ...]:
    records = comparison.records(arm)
    seconds = [sum(r.seconds for r in run) for run in comparison.runs[arm]]
    cumulative, final = (summarise(list(part)) for part in (comparison.cumulative(arm), comparison.final(arm)))
    return (
        arm.label,
        str(cumulative),
        str(final),
        _numbers(comparison.learned(arm)),
        _numbers(comparison.settled(arm)),
        f"{sum(not r.safe for r in records)} of {len(records)}",
        f"{comparison.worst(arm).max():.3f}",
        str(sum(r.infeasible_plans for r in records)),
        f"{min(seconds):.0f} to {max(seconds):.0f}",
    )


def _numbers(episodes: Iterable[int | None]) -> str:
    return ", ".join("-" if n is None else str(n) for n in episodes)


def publish(
    request: Request,
    sections: Sections,
    title: str,
    explain: Callable[[Comparison], str],
    draw: Callable[[Comparison, Sections], Figure],
) -> dict[str, bytes]:
    """Runs what is compared and returns all that a figure leaves: a page with numbers, every episode, the picture."""
    comparison = compare(request, sections)
    return {
        "README.md": page(request, comparison, sections, title, explain(comparison)),
        "episodes.csv": comparison.csv(),
        f"{request.figure}.png": png(draw(comparison, sections)),
    }


def page(request: Request, comparison: Comparison, sections: Sections, title: str, text: str) -> bytes:
    """A README: what was done, the picture, a table for each section."""
    picture = f"![{title}]({request.figure}.png)"
    lines = [f"# {title}", "", picture, "", f"Made by `{request.command}` with {_versions()}. {text}", ""]
    seeds = len(next(iter(comparison.runs.values())))
    for name, arms in sections.items():
        scale = comparison.references[arms[0].task]
        lines += [
            f"## {name}, {seeds} seeds",
            "",
            f"Returns: 0 is doing nothing ({scale.idle:.1f}), 1 is the same planner that knows the true dynamics, "
            f"under the same constraint ({scale.oracle:.1f}, mean of {ORACLE_RUNS} runs). Mean ± standard deviation "
            "over seeds, in brackets the 95 % bootstrap interval of the mean. Every episode is in `episodes.csv`.",
            "",
            markdown_table(comparison, arms),
            "",
        ]
    return "\n".join(lines).encode()


def _versions() -> str:
    return ", ".join(f"{name} {version}" for name, version in versions_now().items())
