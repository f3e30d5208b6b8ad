"""The laboratory's report: theorem by theorem what was promised, what was measured, and whether it held."""

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..laboratory.coverage import Coverage, coverage_table
from ..laboratory.expansion import Expansion, expansion
from ..laboratory.theorems import WorldReport, claims, run_world
from ..laboratory.world import World
from ..tasks.ledge import Sled
from ..workers import worker_pool
from .canvas import plt, png
from .figures import Request

__all__ = ["SIZES", "Size", "draw_expansion", "files"]


class Size(NamedTuple):
    """How much is measured."""

    worlds: tuple[World, ...]
    runs: int
    """Of Algorithm 1, in each world."""
    sets: int
    """Of M samples, in each world."""
    coverage: int
    """Runs for each line of the coverage table."""
    growth: World = World("slope")
    """Where the safe set is watched while it grows."""


WORLDS = (World("slope"), World("waves"), World("motor"), World("motor", bound=2.0, budget=2.0, epsilon=1.0))
"""In the last one, where less is known, policies of Pi_xi^{*,c} are not known to be safe at first."""

SIZES = {
    "cpu": Size(WORLDS, 80, 2000, 400),
    "paper": Size(WORLDS, 400, 10_000, 400),
    "smoke": Size(WORLDS[2:3], 3, 200, 40, WORLDS[2]),
}


def files(request: Request, size: Size | None = None) -> dict[str, bytes]:
    """Runs everything and returns the report, its figure and the raw numbers."""
    size = size or SIZES[request.preset]
    seeds = range(request.seed * 10_000, request.seed * 10_000 + (request.seeds or size.runs))
    with worker_pool(request.workers) as pool:
        reports: list[WorldReport] = []
        done = _counter(request, len(size.worlds) * len(seeds))
        for world in size.worlds:
            request.say(f"{_name(world)}: {len(seeds)} runs of Algorithm 1")
            reports.append(run_world(world, seeds, size.sets, pool, done))
            _tell(request, reports[-1])
        request.say("growth of the safe set")
        expansions = pool.map(_grow, [size.growth] * len(TRUTHS), TRUTHS.values(), [seeds[0]] * len(TRUTHS))
        grown = dict(zip(TRUTHS, expansions, strict=True))
    request.say("coverage of the confidence sets, linear and squared exponential")
    coverage = coverage_table(size.coverage, request.seed)
    for line in coverage:
        if line.convention == "corrected" or line.noise < 1:
            request.say(f"  {_coverage_words(line)}")
    return {
        "README.md": _readme(request, size, reports, coverage, grown).encode(),
        "theorems.json": _json(reports, coverage).encode(),
        "runs.csv": _csv(asdict(outcome) for report in reports for outcome in report.outcomes).encode(),
        "safe_set_expansion.png": draw_expansion(grown),
    }


TRUTHS = {"a push that is weaker than expected": -1.0, "a push that is stronger than expected": 1.0}
"""The two extreme truths of the figure: w* = (0, -+B), unlike those of the runs, which are drawn."""


def _counter(request: Request, runs: int) -> Callable[[], None]:
    """Tells the share of runs that are done; what follows them takes about a tenth as long."""
    count = itertools.count(1)
    return lambda: request.progress(0.9 * next(count) / runs)


def _grow(world: World, push: float, seed: int) -> Expansion:
    weights = np.zeros(world.kernel.rank or 0)
    weights[-1] = push * world.bound
    return expansion(world, Sled(world.kernel, jnp.asarray(weights)), seed)


def _name(world: World) -> str:
    return f"{world.ground}, B = {world.bound:g}"


def _tell(request: Request, report: WorldReport) -> None:
    for claim in claims(report):
        request.say(f"  {claim.verdict:10}  {claim.theorem}: {claim.promised}. Measured: {claim.measured}.")
    request.say(f"  {'control':10}  trusting the mean dynamics violates in {report.control}.")


def _coverage_words(line: Coverage) -> str:
    verdict = "covers" if line.covered.interval()[1] >= 1 - line.delta else "too narrow"
    return (
        f"{verdict:10}  {line.kernel}, sigma_w = {line.noise:g}, B = {line.bound:g}, {line.convention} width "
        f"{line.width:.2f}: {line.covered}"
    )


def _json(reports: Sequence[WorldReport], coverage: Sequence[Coverage]) -> str:
    content = {
        "worlds": [
            {
                "constants": report.constants(),
                "claims": [asdict(claim) | {"verdict": claim.verdict} for claim in claims(report)],
                "closeness": {name: value._asdict() for name, value in report.closeness._asdict().items()},
                "control_violates": report.control._asdict(),
            }
            for report in reports
        ],
        "coverage": [line._asdict() | {"covered": line.covered._asdict()} for line in coverage],
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _csv(rows: Iterable[dict[str, Any]]) -> str:
    table = list(rows)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, table[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return buffer.getvalue()


def draw_expansion(grown: dict[str, Expansion]) -> bytes:
    """The sets of the paper's figure safe_set_expansion, as they really grew, one panel a truth."""
    figure, panels = plt.subplots(1, len(grown), figsize=(5.4 * len(grown), 5.4), sharey=True, layout="constrained")
    for axes, (title, sets) in zip(np.atleast_1d(panels), grown.items(), strict=True):
        _draw_sets(figure, axes, sets)
        axes.set_title(title, fontsize=11)
        axes.set_xlabel("push")
    np.atleast_1d(panels)[0].set_ylabel("spring")
    figure.suptitle("Policies a = tanh(push + spring x) that are known to be safe", fontsize=12)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return png(figure)


TRUE, REACHED = "black", "#C8102E"


def _draw_sets(figure: Figure, axes: Axes, sets: Expansion) -> None:
    since = np.full(sets.costs.shape, np.nan)
    for i in reversed(range(len(sets.safe))):
        since[sets.safe[i]] = i
    stages = len(sets.episodes)
    shades = plt.get_cmap("viridis_r", stages)
    mesh = axes.pcolormesh(sets.push, sets.spring, since.T, cmap=shades, vmin=-0.5, vmax=stages - 0.5, alpha=0.75)
    if sets.truly_safe.all():
        axes.text(0.97, 0.97, "all of these policies\nare truly safe", transform=axes.transAxes, ha="right", va="top")
    else:
        axes.contour(sets.push, sets.spring, sets.costs.T, [sets.budget], colors=TRUE, linewidths=2)
    level = sets.budget - sets.margin
    reached = np.where(sets.reachable | (sets.costs > level), sets.costs, level + 1)
    axes.contour(sets.push, sets.spring, reached.T, [level], colors=REACHED, linestyles="--", linewidths=2)
    axes.plot(*np.array(sets.played).T, "o", color="white", markeredgecolor="black", markersize=5, clip_on=False)
    axes.plot(*sets.final, "*", color="white", markeredgecolor="black", markersize=16, clip_on=False)
    bar = figure.colorbar(mesh, ax=axes, ticks=range(stages), location="top", shrink=0.9, aspect=40)
    bar.ax.set_xticklabels(map(str, sets.episodes), fontsize=8)
    bar.set_label("safe on all samples after so many episodes", fontsize=9)


def _legend() -> list[Artist]:
    mark: dict[str, Any] = {"color": "none", "markerfacecolor": "white", "markeredgecolor": "black"}
    return [
        Line2D([], [], color=TRUE, linewidth=2, label="boundary of the truly safe policies"),
        Line2D([], [], color=REACHED, linestyle="--", linewidth=2, label="those reachable with margin \u03be"),
        Line2D([], [], marker="o", label="policies that were played", **mark),
        Line2D([], [], marker="*", markersize=13, label="policy returned in the end", **mark),
        Patch(facecolor="white", edgecolor="black", label="not known to be safe"),
    ]


def _readme(
    request: Request,
    size: Size,
    reports: Sequence[WorldReport],
    coverage: Sequence[Coverage],
    grown: dict[str, Expansion],
) -> str:
    worlds = "\n".join(_world_section(report) for report in reports)
    table = "\n".join(
        f"| {c.kernel} | {c.noise:g} | {c.bound:g} | {c.convention} | {c.width:.2f} | {c.covered.rate:.3f} |"
        f" {c.covered} |"
        for c in coverage
    )
    everything = [outcome for report in reports for outcome in report.outcomes]
    violated = sum(outcome.violating_episodes > 0 for outcome in everything)
    growth = "\n".join(_growth(title, sets) for title, sets in grown.items())
    return f"""# The theorems, put to the test

Made by `{request.command}`. Every run is a line of `runs.csv`; all constants and counts are in `theorems.json`.

A sled is pushed towards a ledge (`src/sbsrl/tasks/ledge.py`). What is not known of its dynamics is a function of norm
exactly B in the RKHS of a kernel of finite rank, in a random direction. M, Delta_zeta, beta_n and d_sigma^n are those
of the theory. J_c and J_r are computed by quadrature: "violated" means J_c(pi_n, f*) > d, not bad luck in an episode.
In all, {violated} of {len(everything)} runs of Algorithm 1 played a policy that violates.

A frequency *holds* if its 95 % interval (Clopper and Pearson) lies within the promise, is *consistent* with it if the
interval reaches into it, and *FAILS* otherwise. The control is the same algorithm with the constraint on the mean
dynamics alone: it shows that these worlds are dangerous. *Before any episode* are the numbers that the theorem bounds
in the end: where they are within the promise already, the promise is kept, but little had to be learned for it.
Policies are connected (Pi_xi^{{*,c}}) through neighbours on their lattice, in place of a continuous path.

{worlds}
## Coverage of the confidence sets

10 episodes of 10 points, delta = 0.1, gamma = greedy / (1 - 1/e); a run is covered if f* is within all sets.

| kernel | sigma_w | B | convention | beta | covered | 95 % interval |
|---|---|---|---|---|---|---|
{table}

## Growth of the safe set

![safe set over episodes](safe_set_expansion.png)

Two runs ({_name(size.growth)}) with extreme truths, on a lattice of {next(iter(grown.values())).costs.size} policies:

{growth}
"""


def _growth(title: str, sets: Expansion) -> str:
    counts = ", ".join(f"{mask.sum()} (n = {n})" for n, mask in zip(sets.episodes, sets.safe, strict=True))
    missed = int((sets.reachable & ~sets.safe[-1]).sum())
    return (
        f"- {title}: known to be safe {counts}; truly safe {sets.truly_safe.sum()}; reachable with the margin xi "
        f"{sets.reachable.sum()}, of which {missed} are missed in the end."
    )


def _world_section(report: WorldReport) -> str:
    c, outcomes = report.constants(), report.outcomes
    rows = "\n".join(f"| {x.theorem} | {x.promised} | {x.measured} | {x.verdict} |" for x in claims(report))
    mean = {name: np.mean([getattr(o, name) for o in outcomes]) for name in ("safe_at_first", "safe_in_the_end")}
    return f"""## {_name(report.world)}: {len(outcomes)} runs

B = {c["bound"]:g}, delta = {c["delta"]:g}, zeta = {c["zeta"]:g}, d = {c["budget"]:g}, epsilon = {c["epsilon"]:g}; hence
M = {c["M"]}, Delta_zeta = {c["Delta_zeta"]:.3f} (tightening {c["tightening"]:.4f}, which covers the quadrature, too),
xi = {c["xi"]:.3f}, n_bar = {c["n_bar"]:.3g}. Assumption 3 holds with Delta up to {c["Delta"]:.3f}.
Of {c["policies"]} policies, on average {mean["safe_at_first"]:.1f} are known to be safe
at first, {mean["safe_in_the_end"]:.1f} in the end, and {np.mean([o.truly_safe for o in outcomes]):.1f} are.

| theorem | promised | measured | verdict |
|---|---|---|---|
{rows}
| control: trusting the mean dynamics | nothing | violates in {report.control} | |

- n* was between {min(o.episodes for o in outcomes)} and {max(o.episodes for o in outcomes)}.
- The largest J_c of a policy that was played is {max(o.largest_cost for o in outcomes):.3f} of {c["budget"]:g}.
- The best truly safe policy earns at most {max(o.regret for o in outcomes):.3f} more than the one returned.
"""
