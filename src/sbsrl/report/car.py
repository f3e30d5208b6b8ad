"""The figure hardware_experiment of the paper: a race car that begins with 25,000 transitions of a slow driver."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from ..runs.study import Arm
from .canvas import plt
from .charts import draw_curves, limit
from .deep_arms import WORLDS, arm
from .deep_study import Numbers, Study, publish, run_deep
from .expectations import Expectation, expectations_table
from .figures import Request

__all__ = ["arms", "draw", "files"]

WORLD = WORLDS["race car, obstacles slow it"]
NUMBERS = Numbers((501, 502, 503), 5000)


def arms() -> list[Arm]:
    """One hundred episodes of 250 steps to begin with."""
    return [arm("sbsrl", WORLD, data="careless:100", episodes=75)]


def files(request: Request) -> dict[str, bytes]:
    """The picture, a page with the numbers, and every episode: three priors, one run from each."""
    asked = request if request.seeds else request._replace(seeds=1)
    study = run_deep(asked, arms(), NUMBERS)
    text = f"{EXPLAINED}\n\n{expectations_table(_expectations(study))}"
    return publish(request, study, "The race car", text, {WORLD.name: arms()}, draw)


EXPLAINED = (
    "The paper's car learns on a track; this one is simulated (docs/deep.md says how), at the paper's rate, with its "
    "window, budget and numbers of transitions and episodes."
)


def _expectations(study: Study) -> Iterator[Expectation]:
    (ours,) = arms()
    final = study.final(ours)
    yield Expectation("the final policy earns 0.9 or more", f"at least {final.min():.2f}", bool(final.min() >= 0.9))
    found = f"{study.violating(ours)} of {study.policies(ours)}, largest {study.costs(ours).max():.1f}"
    yield Expectation("no executed policy has a true mean cost above 15", found, study.violating(ours) == 0)
    episodes = sum(run.violating_episodes for run in study.runs[ours])
    yield Expectation("no episode costs more than 15", f"{episodes} of {study.policies(ours)}", episodes == 0)


def draw(study: Study) -> Figure:
    """Returns of the executed episodes, and their costs."""
    (ours,) = arms()
    figure, (returns, costs) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    runs = study.runs[ours]
    draw_curves(returns, {ours.label: study.curves(ours)})
    limit(returns, 1.0, "dynamics\nknown", "#555555")
    returns.set_ylabel("normalised true return")
    draw_curves(costs, {"true mean": study.costs(ours)})
    for run in runs:
        costs.scatter(range(len(run.records)), [r.cost for r in run.records], s=7, color="black", alpha=0.5, zorder=4)
    limit(costs, runs[0].budget, f"budget\n{runs[0].budget:g}")
    costs.set_ylabel("cost: true mean, and each episode (dots)")
    return figure
