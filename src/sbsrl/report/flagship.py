"""What the method is, in one picture: a policy on every sample and in truth, in the first episode and after the last.

After figure 1 of the paper, of one run of the race car whose obstacles only cost.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from ..belief.protocol import SideBySide
from ..learner import Experiment, Learner, context_of
from ..loop import algorithm_1, prepared
from ..policy import Policy
from ..record import Record
from ..runs import resume
from ..runs.folder import RunFolder
from ..runs.shared_phase import SharedPhase
from ..runs.study import STUDIES, Arm, folder_of, run_study, shared_phase
from ..starts import draw_starts
from ..types import PRNGKey
from ..versions import versions_now
from .deep_arms import BINDING, arm, with_prior
from .drives import believed_charge, drive_samples, drive_truth
from .figures import Request
from .scene import CHARGED, DRAWN, Moment, draw, film, places

__all__ = ["Known", "at_first", "compared", "files", "in_the_end", "make_moment"]

PRIOR, FIRST_SEED = 31, 31
"""The number of the offline data and phase, and of the run."""
STARTS, FEW = 64, 2
"""Initial states over which costs are averaged: as many as policies are judged by, since a few cost much and most
nothing; and to see that it works."""


def compared(preset: str) -> Arm:
    """The run that is shown."""
    return with_prior(arm("sbsrl", BINDING), PRIOR, preset)


def files(request: Request) -> dict[str, bytes]:
    """The picture, the film, a page with the numbers, and every episode."""
    shown, seed = compared(request.preset), FIRST_SEED + request.seed
    request.say(f"one run, kept in {STUDIES}: if interrupted, the same command goes on")
    (records,) = run_study([shown], [seed], request.preset, STUDIES, 1, request.progress)[shown]
    folder = RunFolder.open(folder_of(shown, seed, request.preset, STUDIES))
    request.say("its first and its last policy, on every sample and in truth")
    last = in_the_end(folder)
    first = at_first(last.experiment, seed, folder, shared_phase(shown.specification(seed, request.preset), STUDIES))
    start_key, key = jax.random.split(jax.random.key(request.seed))
    starts = draw_starts(first.experiment.task.start, FEW if request.preset == "smoke" else STARTS, start_key)
    named = {"first episode": first, f"after {len(records) - 1} episodes": last}
    moments = [make_moment(title, known, np.asarray(starts), key) for title, known in named.items()]
    budget = records[0].budget
    return {
        "README.md": _page(request, moments, records).encode(),
        "episodes.csv": _csv(moments).encode(),
        f"{request.figure}.png": draw(moments, budget),
        f"{request.figure}.gif": film(moments, budget),
    }


class Known(NamedTuple):
    """Where a run stood at one time: what was believed, and the policy that was chosen for it."""

    experiment: Experiment
    policy: Policy
    samples: SideBySide
    """f_n^1 .. f_n^M of the problem that the policy solves."""


def in_the_end(folder: RunFolder) -> Known:
    """The policy that a finished run returns."""
    result = resume(folder.path)
    return Known(result.experiment, result.policy.policy, _samples(result.experiment, result.learner, final=True))


def at_first(experiment: Experiment, seed: int, folder: RunFolder, shared: SharedPhase | None) -> Known:
    """The policy of the first episode. It is found again, from what was learned offline and the recorded episode."""
    fresh = Learner.create(experiment, seed)
    kept = shared and shared.load(fresh)
    learner, _ = kept or prepared(experiment, fresh)
    outcome = next(algorithm_1(experiment, learner, lambda policy, turn: folder.trajectory(0)))
    return Known(experiment, outcome.policy, _samples(experiment, learner))


def _samples(experiment: Experiment, learner: Learner, final: bool = False) -> SideBySide:
    samples = context_of(experiment, learner, final).draw_samples()
    assert isinstance(samples, SideBySide)  # those of networks are
    return samples


def make_moment(title: str, known: Known, starts: Float[np.ndarray, "k dx"], key: PRNGKey) -> Moment:
    """Drives the policy on every sample and in truth, and asks the samples where they expect costs.

    The key is of what samples and policies draw.
    """
    task, grid = known.experiment.task, places()
    assert task.equations is not None
    return Moment(
        title,
        told=drive_samples(known.samples, known.policy, starts, task.horizon, key),
        true=drive_truth(task.equations, known.policy, starts, task.horizon, key),
        charge=believed_charge(known.samples, grid.reshape(-1, 2)).reshape(-1, *grid.shape[:2]),
    )


def _csv(moments: Sequence[Moment]) -> str:
    """One line for every episode."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["moment", "model", "start", "cost", "return"])
    for moment in moments:
        for drives, names in ((moment.told, _names(moment)), (moment.true, ["truth"])):
            for name, costs, returns in zip(names, drives.totals, drives.returns, strict=True):
                for start, (cost, earned) in enumerate(zip(costs, returns, strict=True)):
                    writer.writerow([moment.title, name, start, f"{cost:.6g}", f"{earned:.6g}"])
    return text.getvalue()


def _names(moment: Moment) -> list[str]:
    return [f"sample {i + 1}" for i in range(len(moment.told.costs))]


def _page(request: Request, moments: Sequence[Moment], records: Sequence[Record]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in versions_now().items())
    return f"""# What samples believe, and what is true

![a policy on every sample and in truth: the first episode, and after the last]({request.figure}.gif)

Made by `{request.command}` with {versions}. As a still picture: [{request.figure}.png]({request.figure}.png). Every
episode is a line of `episodes.csv`.

{_explained(request, moments)}

{_outcome(moments, records)}

{_table(moments)}
"""


def _explained(request: Request, moments: Sequence[Moment]) -> str:
    samples, starts = moments[0].told.totals.shape
    return (
        f"One run of the race car whose obstacles only cost (prior {PRIOR}, seed {FIRST_SEED + request.seed}): its "
        f"first policy and the one that it returns. Each is driven on the {samples} samples of its problem (blue; the "
        f"one with the largest mean cost red) and on the true equations (black), from the same {starts} initial "
        f"states. Trajectories from {min(DRAWN, starts)} of them are drawn; strong lines and cars begin at the one of "
        "these from which the dearest sample of the first episode costs most. Amber is the tightened obstacle: where "
        f"at least one sample charges {100 * CHARGED:.0f} % or more of the kinetic energy. The true obstacles are the "
        "tyres. Where nothing was recorded samples may expect costs that there are not, as to the right of the tyres."
    )


def _outcome(moments: Sequence[Moment], records: Sequence[Record]) -> str:
    """What the numbers say, computed from them."""
    budget, true = records[0].budget, np.array([record.metrics["true_cost"] for record in records])
    first, last = (int(np.sum(moment.told.totals.mean(axis=1) > budget)) for moment in moments)
    checked = " and ".join(f"{record.metrics['worst_sample']:.1f}" for record in (records[0], records[-1]))
    return (
        f"The budget of {budget:g} J bounds the mean cost over initial states. Of the {len(moments[0].told.costs)} "
        f"samples that are drawn {first} expect more of the first policy, {last} of the last one. A policy is not "
        "admitted by these samples, but by others that are drawn afresh and asked from a few initial states: the "
        f"dearest of those cost {checked} J. Of the {len(records)} policies that the run played, "
        f"{np.sum(true > budget)} have a true mean cost above the budget (largest {true.max():.1f} J). One run is an "
        "illustration; methods are compared on the page of [deep-mean](../deep-mean/README.md)."
    )


def _table(moments: Sequence[Moment]) -> str:
    """Mean costs and returns over the initial states, of every sample and in truth."""
    head = ["", *(f"{moment.title}: {what}" for moment in moments for what in ("cost (J)", "return"))]
    rows = [head, ["---"] * len(head), *_rows(moments)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _rows(moments: Sequence[Moment]) -> Iterator[list[str]]:
    for i, name in enumerate(_names(moments[0])):
        row = [name]
        for moment in moments:
            cost = f"{moment.told.totals[i].mean():.2f}"
            row += [f"**{cost}**" if i == moment.told.dearest else cost, f"{moment.told.returns[i].mean():.0f}"]
        yield row
    truth = [(f"{moment.true.totals.mean():.2f}", f"{moment.true.returns.mean():.0f}") for moment in moments]
    yield ["truth", *(value for pair in truth for value in pair)]
