"""A risk that is promised, and how often it happens: runs in worlds whose truth is a draw from the prior."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..atomic import disk, write_atomically
from ..laboratory.drawn_worlds import FURTHER, Line, run_in_drawn_world
from ..runs.study import Arm, code_digest
from ..theory.binomial import upper_bound
from ..workers import worker_pool
from .canvas import plt, png
from .charts import COLOURS, tidy
from .expectations import Expectation, expectations_table
from .figures import Request
from .statistics import summarise

__all__ = ["Study", "arms", "draw", "files", "interval"]

TASK = "pendulum"
RISKS = (0.2, 0.05, 0.01)
NOTHING = 0.0
"""No promise: the planner that replans at every step, with its 30 samples and its tightening."""
EPISODES = 1
"""Before the final policy: it is played knowing the prior only, and after it most is known."""
WORLDS = {"smoke": 2}
MOST_WORLDS = 200
FEWER = 10
"""Without a promise there are so many times fewer worlds: replanning takes longer, and safety is not the question."""
HOME = Path("runs") / "risk"


def arms() -> list[Arm]:
    """The promises, and none."""
    promised = [Arm(f"risk {risk:g}", TASK, "sbsrl", (("risk", risk), ("episodes", EPISODES))) for risk in RISKS]
    return [*promised, Arm("no promise", TASK, "sbsrl", (("episodes", EPISODES),))]


class Study(NamedTuple):
    """All episodes by what was promised, and by world."""

    worlds: Mapping[float, Mapping[int, Sequence[Line]]]

    @property
    def arms(self) -> list[float]:
        """What was promised; `NOTHING` only where there were enough worlds."""
        return [risk for risk in (*RISKS, NOTHING) if self.worlds[risk]]

    def lines(self, risk: float, episode: int | None = None) -> list[Line]:
        """All that were played, or those of one number; the final policy is the one after the last."""
        every = [line for lines in self.worlds[risk].values() for line in lines if line.phase != "refused"]
        return every if episode is None else [line for line in every if line.episode == episode]

    def refused(self, risk: float) -> int:
        return sum(line.phase == "refused" for lines in self.worlds[risk].values() for line in lines)

    def violating(self, risk: float, episode: int | None = None) -> tuple[int, int]:
        """How many violate, and of how many."""
        lines = self.lines(risk, episode)
        return sum(not line.safe for line in lines), len(lines)

    def returns(self, risk: float, episode: int) -> list[float]:
        return [line.reward for line in self.lines(risk, episode)]

    def elsewhere(self, risk: float) -> list[float]:
        """The share of further worlds in which each first policy violates: its true risk, nearly."""
        return [line.metrics["elsewhere"] / FURTHER for line in self.lines(risk, 0)]

    def seconds(self, risk: float) -> float:
        """The median: the first world of a process waits for its programs."""
        return float(np.median([line.seconds for line in self.lines(risk)]))

    def bounds(self, risk: float, episode: int) -> list[float]:
        """What fresh draws showed of each policy that was played."""
        return [line.metrics["risk/bound"] for line in self.lines(risk, episode)]


def interval(violations: int, count: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval; nothing is known of what was never tried."""
    if not count:
        return 0.0, 1.0
    return 1 - upper_bound(count - violations, count, 0.025), upper_bound(violations, count, 0.025)


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    study = _run(request)
    return {
        "README.md": _page(request, study).encode(),
        "episodes.csv": _csv(study),
        f"{request.figure}.png": png(draw(study)),
    }


def _run(request: Request) -> Study:
    """Runs what is missing; a world that was done is not run again with the same code."""
    count = request.seeds or WORLDS.get(request.preset, MOST_WORLDS)
    seeds = range(request.seed, request.seed + count)
    jobs = [(arm, seed) for seed in seeds for arm in arms() if _asked(arm, seed)]
    jobs.sort(key=lambda job: _risk(job[0]) == NOTHING)
    home = HOME / _digest()
    with disk(home):
        home.mkdir(parents=True, exist_ok=True)
    missing = [job for job in jobs if not _place(home, *job).exists()]
    request.say(f"{len(jobs)} runs, of which {len(missing)} are missing, kept in {home}: the same command goes on")
    done = len(jobs) - len(missing)
    with worker_pool(request.workers) as pool:
        for finished in as_completed([pool.submit(_finish, home, *job) for job in missing]):
            finished.result()
            done += 1
            request.progress(done / len(jobs))
    found: dict[float, dict[int, Sequence[Line]]] = {_risk(arm): {} for arm in arms()}
    for arm, seed in jobs:
        found[_risk(arm)][seed] = [Line(*row) for row in json.loads(_place(home, arm, seed).read_text())]
    return Study(found)


def _asked(arm: Arm, seed: int) -> bool:
    return _risk(arm) != NOTHING or seed % FEWER == FEWER - 1


def _risk(arm: Arm) -> float:
    return float(dict(arm.changes).get("risk", NOTHING))


@cache
def _digest() -> str:
    """Of the code that runs and worlds depend on, and of what is asked."""
    world = Path(__file__).parent.parent / "laboratory" / "drawn_worlds.py"
    asked = json.dumps([arm.changes for arm in arms()])
    parts = (code_digest(TASK, "gp", "icem"), world.read_text(), asked)
    return sha256("\n".join(parts).encode()).hexdigest()[:10]


def _place(home: Path, arm: Arm, seed: int) -> Path:
    return home / f"risk-{_risk(arm):g}-s{seed}.json"


def _finish(home: Path, arm: Arm, seed: int) -> None:
    lines = list(run_in_drawn_world(arm.task, seed, dict(arm.changes)))
    write_atomically(_place(home, arm, seed), json.dumps(lines).encode())


def _expectations(study: Study) -> Iterator[Expectation]:
    """Written down before any of it was run, after one run each on the pendulum as it is."""
    for risk in RISKS:
        k, n = study.violating(risk, 0)
        low, high = interval(k, n)
        said = f"{k} of {n} ({k / max(n, 1):.3f}; 95 % interval {low:.3f} to {high:.3f})"
        yield Expectation(f"risk {risk:g}: no more than {risk:g} of the first episodes violate", said, k / n <= risk)
        shares = study.elsewhere(risk)
        broken = sum(share > risk for share in shares)
        said = f"{max(shares):.3f} at most, {np.mean(shares):.4f} on average; {broken} of {n} above {risk:g}"
        expected = f"risk {risk:g}: every first policy violates in no more than {risk:g} of {FURTHER} further worlds"
        yield Expectation(expected, said, broken == 0)
    for risk in RISKS:
        k, n = study.violating(risk)
        yield Expectation(
            f"risk {risk:g}: no more than {risk:g} of all episodes violate", f"{k} of {n} ({k / n:.4f})", k / n <= risk
        )
        refused = study.refused(risk)
        yield Expectation(f"risk {risk:g}: no episode is refused", f"{refused} refused", refused == 0)
    first = {risk: float(np.mean(study.returns(risk, 0))) for risk in RISKS}
    yield Expectation(
        "the first episode earns less, the less is risked",
        ", ".join(f"{risk:g}: {first[risk]:.1f}" for risk in RISKS),
        first[0.2] > first[0.05] > first[0.01],
    )
    last = {risk: float(np.mean(study.returns(risk, EPISODES))) for risk in study.arms}
    yield Expectation(
        "by the final policy risk 0.01 has cost a tenth of what risk 0.2 earns, or less",
        f"0.2: {last[0.2]:.1f}, 0.01: {last[0.01]:.1f}",
        last[0.01] >= 1.1 * last[0.2],  # returns are negative
    )
    if NOTHING not in study.arms:
        return
    yield Expectation(
        "one plan with feedback is not behind replanning: the final policies of risk 0.05 earn nine tenths or more",
        f"0.05: {last[0.05]:.1f}, without a promise: {last[NOTHING]:.1f}",
        last[0.05] >= last[NOTHING] / 0.9,
    )
    times = {risk: study.seconds(risk) for risk in study.arms}
    yield Expectation(
        "an episode with risk 0.01 takes no longer than one of the planner that replans",
        f"{times[0.01]:.1f} s and {times[NOTHING]:.1f} s",
        times[0.01] <= times[NOTHING],
    )


def _page(request: Request, study: Study) -> str:
    worlds = len(study.worlds[RISKS[0]])
    return "\n".join(
        [
            "# A promised risk, and how often it happens",
            "",
            f"![{request.figure}]({request.figure}.png)",
            "",
            f"Made by `{request.command}`. {worlds} pendulums, each with a mismatch of its own that is drawn from the "
            "prior 'simulator' and with the process noise that it assumes; in each of them a run with every risk "
            f"(confidence 0.95), of {EPISODES} episode and the final policy. In every {FEWER}th world there is also a "
            "run without a promise, which replans at every step. Every first policy, chosen knowing the prior only, is "
            f"also tried in {FURTHER} further worlds, drawn exactly: *elsewhere* is the share in which it violates. "
            "*Promised* is the risk per episode; *shown* the mean "
            "of what fresh draws of the belief bounded it by, for the policies that were played. Every episode is in "
            "`episodes.csv`.",
            "",
            expectations_table(_expectations(study)),
            "",
            f"| {' | '.join(COLUMNS)} |",
            "|" + " --- |" * len(COLUMNS),
            *_rows(study),
            "",
        ]
    )


COLUMNS = (
    "promised",
    "episode",
    "violating",
    "95 % interval",
    "shown",
    "elsewhere",
    "attempts",
    "return",
    "median seconds",
)


def _rows(study: Study) -> Iterator[str]:
    for risk in study.arms:
        for episode in range(EPISODES + 1):
            lines = study.lines(risk, episode)
            if not lines:
                continue
            k, n = study.violating(risk, episode)
            low, high = interval(k, n)
            shown, attempts, elsewhere = "-", "-", "-"
            if risk and not episode:
                elsewhere = f"{np.mean(study.elsewhere(risk)):.4f}"
            if risk:
                shown = f"{np.mean(study.bounds(risk, episode)):.4f}"
                attempts = f"{np.mean([line.metrics['risk/attempts'] for line in lines]):.2f}"
            name = "final" if episode == EPISODES else str(episode)
            cells = (
                f"{risk:g}" if risk else "nothing",
                name,
                f"{k} of {n}",
                f"{low:.3f} to {high:.3f}",
                shown,
                elsewhere,
                attempts,
                _mean(study.returns(risk, episode)),
                f"{np.median([line.seconds for line in lines]):.1f}",
            )
            yield f"| {' | '.join(cells)} |"


def _mean(values: Sequence[float]) -> str:
    found = summarise(values)
    return f"{found.mean:.1f} ({found.mean_low:.1f} to {found.mean_high:.1f})"


def _csv(study: Study) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    said = [f"risk/{name}" for name in ("bound", "violations", "draws", "attempts", "tightening")] + ["elsewhere"]
    writer.writerow([*Line._fields[:-1], *said])
    for risk in study.arms:
        for lines in study.worlds[risk].values():
            for line in lines:
                writer.writerow([*line[:-1], *(line.metrics.get(name, "") for name in said)])
    return text.getvalue().encode()


def draw(study: Study) -> Figure:
    """What was promised, what fresh draws showed and what happened; and the price."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    _draw_risks(left, study)
    for i, risk in enumerate(study.arms):
        found = [summarise(study.returns(risk, n)) for n in range(EPISODES + 1) if study.lines(risk, n)]
        middle = np.array([each.mean for each in found])
        spread = np.abs(np.array([(each.mean_low, each.mean_high) for each in found]).T - middle)
        label = f"risk {risk:g}" if risk else "no promise, replanned"
        right.errorbar(np.arange(len(found)) + 0.06 * i, middle, spread, color=COLOURS[i], capsize=3, label=label)
    right.set_xticks(range(EPISODES + 1), [*map(str, range(EPISODES)), "final"])
    right.set_xlabel("episode")
    right.set_ylabel("return")
    right.legend(frameon=False, fontsize=8)
    tidy(left, right)
    return figure


def _draw_risks(axes: Axes, study: Study) -> None:
    """Of the first episode, which is the most dangerous one."""
    for i, risk in enumerate(RISKS):
        k, n = study.violating(risk, 0)
        low, high = interval(k, n)
        axes.errorbar([i], [k / n], [[k / n - low], [high - k / n]], fmt="o", color=COLOURS[0], capsize=4)
        axes.hlines(risk, i - 0.3, i + 0.3, color=COLOURS[6], linestyle="--")
        axes.scatter(np.full(n, i - 0.12), study.elsewhere(risk), s=9, alpha=0.6, color=COLOURS[2])
        axes.scatter([i + 0.12], [np.mean(study.bounds(risk, 0))], marker="_", s=120, color=COLOURS[1])
    axes.errorbar([], [], [], fmt="o", color=COLOURS[0], label="violating first episodes, 95 % interval")
    axes.plot([], [], color=COLOURS[6], linestyle="--", label="promised")
    axes.scatter([], [], s=9, color=COLOURS[2], label=f"first policies in {FURTHER} further worlds")
    axes.scatter([], [], marker="_", s=120, color=COLOURS[1], label="bound that draws showed (mean)")
    axes.set_xticks(range(len(RISKS)), [f"risk {risk:g}" for risk in RISKS])
    axes.set_ylabel("probability")
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set_ylim(0, 1)
    axes.legend(frameon=False, fontsize=8, loc="upper right")  # above all that is small
