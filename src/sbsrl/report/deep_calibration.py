"""What makes a constraint on every sample safer than one on their mean: samples that cover the truth."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..runs.study import Arm
from .canvas import plt
from .charts import COLOURS, draw_bars, limit, tidy
from .deep_arms import BINDING, arm
from .deep_study import Numbers, Study, mean_known, publish, run_deep
from .expectations import Expectation, expectations_table
from .figures import Request

__all__ = ["ablation", "by_data", "draw", "files"]

MEMBERS: dict[str, Any] = {"belief.samples": "members", "kappa": 1.0, "adapted": False}
"""The paper's samples: the networks themselves."""
DATA = (10, 25, 100)
"""Episodes of offline data."""
TIGHTENINGS = (7.5,)
"""By which the budget of 15 is tightened for the mean, until it earns no more than sbsrl."""

EPISODES = 25
NUMBERS = Numbers((401, 402), 4000)


def _arm(label: str, method: str = "sbsrl", **changes: Any) -> Arm:
    return arm(label, BINDING, method, **{"episodes": EPISODES, **changes})


OURS = _arm("sbsrl")
PAPER = _arm("members, each", **MEMBERS)
MEAN = _arm("mean", "mean")
TIGHTENED = [_arm(f"mean, tightened {t:g}", "mean", tightening=t) for t in TIGHTENINGS]


def ablation() -> list[Arm]:
    """One piece changed at a time."""
    return [
        OURS,
        MEAN,
        PAPER,
        _arm("members, inflated", **{"belief.samples": "members"}),
        _arm("kappa = 1, fresh", kappa=1.0, adapted=False),
        _arm("kappa fixed", adapted=False),
        _arm("no random prior", prior_scale=0.0),
        _arm("2 networks", networks=2),
        _arm("10 networks", networks=10),
        _arm("cost known", cost="known"),
        _arm("cost known, mean", "mean", cost="known"),
        _arm("cost unknown", cost="learned"),
        _arm("cost unknown, mean", "mean", cost="learned"),
        *TIGHTENED,
    ]


def by_data() -> dict[str, list[Arm]]:
    """Calibrated and plain samples, over the episodes of offline data."""
    return {
        "fresh, calibrated": [OURS if n == 25 else _arm(f"sbsrl, {n} episodes", data=f"careless:{n}") for n in DATA],
        "members, plain": [
            PAPER if n == 25 else _arm(f"members, {n} episodes", data=f"careless:{n}", **MEMBERS) for n in DATA
        ],
    }


def by_budget() -> list[Arm]:
    """A third of the budget."""
    return [_arm("sbsrl, d = 5", budget=5.0), _arm("mean, d = 5", "mean", budget=5.0)]


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode."""
    others = [each for line in by_data().values() for each in line if each not in (OURS, PAPER)]
    sections = {
        "One piece at a time": ablation(),
        "More and fewer offline data": others,
        "A third of the budget": by_budget(),
    }
    study = run_deep(request, [*ablation(), *others, *by_budget()], NUMBERS)
    table = expectations_table(_expectations(study))
    return publish(request, study, "Samples that cover the truth", f"{EXPLAINED}\n\n{table}", sections, draw)


EXPLAINED = (
    "The race car whose obstacles only cost, so that the budget binds. Every arm differs from `sbsrl` in what its name "
    "says: samples are fresh combinations of five networks, spread kappa times as wide as these, kappa is adapted, the "
    "places of the obstacles are learned with a random prior, and the constraint is on each of ten samples. `members` "
    "are the networks themselves, as in the paper. `cost known` has nothing to learn of the cost; `cost unknown` does "
    "not even know that obstacles are places and that contacts cost the kinetic energy, and has one network input for "
    "each number of the observation. What was expected was written down before the runs; whether it was met is "
    "computed from them."
)


def _expectations(study: Study) -> Iterator[Expectation]:
    arms = {each.label: each for each in ablation()}
    for other in ("mean", "members, each", "members, inflated"):
        yield _fewer(study, OURS, arms[other])
    yield _fewer(study, arms["kappa fixed"], arms["kappa = 1, fresh"])
    yield _fewer(study, OURS, arms["no random prior"])
    yield _fewer(study, arms["cost known"], arms["cost known, mean"])
    yield _fewer(study, OURS, arms["cost unknown"])
    yield _fewer(study, arms["cost unknown"], arms["cost unknown, mean"])
    yield _fewer(study, *by_budget())
    yield _matched(study)
    covered, plain = (mean_known([run.coverage for run in study.runs[each]]) for each in (OURS, PAPER))
    yield Expectation(
        "calibrated samples cover 90 % of the executed costs, and more than the plain networks do",
        f"{100 * covered:.0f} % against {100 * plain:.0f} %",
        bool(covered >= 0.9 and covered > plain),
    )
    price = study.final(OURS).mean() - study.final(MEAN).mean()
    yield Expectation(
        "a learned cost makes calibrated pessimism cost some return",
        f"final return {study.final(OURS).mean():.2f} against {study.final(MEAN).mean():.2f} of the mean",
        bool(price < 0),
    )


def _fewer(study: Study, ours: Arm, other: Arm) -> Expectation:
    expected = f"{ours.label} executes fewer violating policies than {other.label}"
    found = f"{study.violating(ours)} against {study.violating(other)} of {study.policies(other)}"
    return Expectation(expected, found, study.violating(ours) < study.violating(other))


def _matched(study: Study) -> Expectation:
    """The tightened mean whose late return is nearest to that of sbsrl."""
    target = study.late(OURS).mean()
    nearest = min((MEAN, *TIGHTENED), key=lambda each: abs(study.late(each).mean() - target))
    expected = "sbsrl executes fewer violating policies than a mean that is tightened until it earns the same"
    found = (
        f"{nearest.label} earns {study.late(nearest).mean():.2f} against {target:.2f}: {study.violating(OURS)} against "
        f"{study.violating(nearest)} violating policies"
    )
    close = abs(study.late(nearest).mean() - target) <= CLOSE
    found += "" if close else f", which is more than {CLOSE:g} away: no comparison"
    return Expectation(expected, found, close and study.violating(OURS) < study.violating(nearest))


CLOSE = 0.05
"""Returns that differ by no more are the same."""


def draw(study: Study) -> Figure:
    """Violating policies and returns of every arm; below, coverage and violations over the offline data."""
    figure = plt.figure(figsize=(13, 9), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.25, 1))
    bars = parts[0].subplots(1, 2)
    _bars(bars[0], study, "violating policies of a run (%)")
    draw_bars(bars[1], {each.label: study.final(each) for each in ablation()})
    bars[1].set_ylabel("normalised return of the final policy")
    limit(bars[1], 1.0, "dynamics\nknown", "#555555")
    _over_data(parts[1].subplots(1, 3), study)
    return figure


def _violating(study: Study, each: Arm) -> np.ndarray:
    return np.array([100 * run.violating_policies / len(run.true_costs) for run in study.runs[each]])


def _bars(axes: Axes, study: Study, text: str) -> None:
    draw_bars(axes, {each.label: _violating(study, each) for each in ablation()})
    axes.set_ylabel(text)
    axes.set_ylim(bottom=0)


def _over_data(panels: np.ndarray, study: Study) -> None:
    measured = {
        "true J_c within those of the samples (%)": lambda each: [
            100 * run.policies_covered for run in study.runs[each]
        ],
        "violating policies of a run (%)": lambda each: _violating(study, each),
        "normalised return of the final policy": study.final,
    }
    for axes, (text, measure) in zip(panels, measured.items(), strict=True):
        for (label, line), colour in zip(by_data().items(), COLOURS, strict=False):
            values = [np.asarray(measure(each)) for each in line]
            axes.plot(range(len(DATA)), [mean_known(v) for v in values], color=colour, label=label, zorder=3)
            for place, each in enumerate(values):
                axes.scatter(np.full(len(each), place), each, s=14, color=colour, alpha=0.7, zorder=3)
        axes.set_xticks(range(len(DATA)), [str(n) for n in DATA])
        axes.set_xlabel("episodes of offline data")
        axes.set_ylabel(text)
        tidy(axes)
    panels[0].legend(frameon=False, fontsize=8)
