"""Runs with networks: several priors, several runs from each, and what every executed policy really costs."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ..record import Record
from ..runs.folder import RunFolder
from ..runs.study import STUDIES, Arm, folder_of, run_study
from ..transitions import split_episodes
from ..versions import versions_now
from .canvas import png
from .deep_arms import oracle_of, with_prior, world_of
from .figures import Request
from .statistics import summarise

__all__ = ["UNSEEN", "Numbers", "Run", "Study", "deep_table", "mean_known", "publish", "run_deep"]

SEEDS = 2
"""Runs from each prior."""


class Numbers(NamedTuple):
    """Of the offline data and phases, and of the first run from each; none of them was used to choose settings."""

    priors: tuple[int, ...]
    first_seed: int

    def chosen(self, count: int | None) -> tuple[int, ...]:
        """So many consecutive priors from the first on; all of these if nobody says how many."""
        return self.priors if count is None else tuple(range(self.priors[0], self.priors[0] + count))


UNSEEN = Numbers((501, 502), 5000)
LATE = 10
"""Episodes at the end over which a run's return is averaged."""
ACTIVE = 1e-3
"""A multiplier above this presses."""
TOLERATED = 0.1
"""Of the budget: a cost that is larger by less is as foretold."""
OWN = (0.0, 3.0, 5.0)
"""Origins of policies that are not fallen back to: trained, as before training, in the end the best that was tried."""


class Run(NamedTuple):
    """One run from one prior."""

    prior: int
    seed: int
    records: Sequence[Record]
    offline: Mapping[str, float]
    """What the offline phase reported."""
    recorded: Sequence[float] = ()
    """What the episodes of the offline data earned, where returns are compared with that."""

    @property
    def seconds(self) -> float:
        """Of the offline phase and of all episodes; judging is left out."""
        return self.offline.get("seconds", 0.0) + sum(r.seconds for r in self.records)

    @property
    def behaviour(self) -> float:
        """What an episode of the offline data earns on average."""
        return float(np.mean(self.recorded))

    @property
    def budget(self) -> float:
        return self.records[0].budget

    def metric(self, name: str) -> Float[np.ndarray, " episodes"]:
        """Of every episode that has it, that of the final policy included."""
        return np.array([r.metrics[name] for r in self.records if name in r.metrics])

    @property
    def true_costs(self) -> Float[np.ndarray, " episodes"]:
        """J_c(pi_n, f*) of every executed policy."""
        return self.metric("true_cost")

    @property
    def true_returns(self) -> Float[np.ndarray, " episodes"]:
        return self.metric("true_return")

    @property
    def violating_policies(self) -> int:
        return int(np.sum(self.true_costs > self.budget))

    @property
    def violating_episodes(self) -> int:
        return sum(not r.safe for r in self.records)

    @property
    def active(self) -> float:
        """The share of the episodes before which a safety constraint pressed on the policy."""
        return float(np.mean(self.metric("multiplier") > ACTIVE))

    @property
    def fallbacks(self) -> int:
        """Episodes in which neither the trained policy nor the one before training was played."""
        return int(np.sum(~np.isin(self.metric("origin"), OWN)))

    @property
    def coverage(self) -> float:
        """The share of the episodes that cost no more than the dearest sample foretold, within the tolerance.

        Of those that really cost something, or were said to: others are no test.
        """
        tests = self.metric("covered")
        return float(np.mean(tests)) if len(tests) else np.nan

    @property
    def policies_covered(self) -> float:
        """The share of the policies whose true mean cost was foretold: J_c(pi_n, f*) <= max_s J_c(pi_n, f^s).

        A tenth of the budget more is tolerated; policies that cost no more than that, and were not said to, are no
        test.
        """
        told = [r.metrics for r in self.records if {"true_cost", "worst_sample"} <= r.metrics.keys()]
        true, dearest = (np.array([m[name] for m in told]) for name in ("true_cost", "worst_sample"))
        tests = np.maximum(true, dearest) > TOLERATED * self.budget
        return float(np.mean(true[tests] <= dearest[tests] + TOLERATED * self.budget)) if np.any(tests) else np.nan


class Study(NamedTuple):
    """All runs of all arms, and the return of every oracle that they are compared with."""

    runs: Mapping[Arm, Sequence[Run]]
    oracles: Mapping[Arm, float]

    def best(self, arm: Arm) -> float:
        """What the same solver earns that knows the true dynamics."""
        return self.oracles[oracle_of(arm)]

    def normalised(self, arm: Arm, run: Run, value: float) -> float:
        """0 is the prior's policy, 1 the same solver on the true dynamics under the same constraint.

        Where nobody knows these, it is the share of what the behaviour of the offline data earns.
        """
        if not world_of(arm).has_oracle:
            return value / run.behaviour
        prior = run.offline["clone/true_return"]
        return (value - prior) / (self.best(arm) - prior)

    def curves(self, arm: Arm) -> Float[np.ndarray, "runs episodes"]:
        """The normalised true return of every executed policy."""
        return np.array([[self.normalised(arm, run, value) for value in run.true_returns] for run in self.runs[arm]])

    def costs(self, arm: Arm) -> Float[np.ndarray, "runs episodes"]:
        """The true mean cost of every executed policy."""
        return np.array([run.true_costs for run in self.runs[arm]])

    def final(self, arm: Arm) -> Float[np.ndarray, " runs"]:
        """The normalised true return of the policy that is returned in the end."""
        return self.curves(arm)[:, -1]

    def late(self, arm: Arm) -> Float[np.ndarray, " runs"]:
        """The mean of the last episodes."""
        return self.curves(arm)[:, -LATE:].mean(axis=1)

    def total(self, arm: Arm, count: Callable[[Run], float]) -> float:
        """Over all runs."""
        return sum(count(run) for run in self.runs[arm])

    def violating(self, arm: Arm) -> int:
        """Executed policies whose true mean cost exceeds the budget."""
        return sum(run.violating_policies for run in self.runs[arm])

    def policies(self, arm: Arm) -> int:
        return sum(len(run.true_costs) for run in self.runs[arm])

    def csv(self) -> bytes:
        """One line per episode."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["label", "task", "method", "changes", "prior", "seed", *COLUMNS, *METRICS])
        for arm, runs in self.runs.items():
            changes = " ".join(f"{name}={value}" for name, value in arm.changes)
            for run in runs:
                for r in run.records:
                    values = [getattr(r, name) for name in COLUMNS]
                    metrics = [_short(r.metrics.get(name)) for name in METRICS]
                    writer.writerow([arm.label, arm.task, arm.method, changes, run.prior, run.seed, *values, *metrics])
        return text.getvalue().encode()


COLUMNS = ("episode", "phase", "reward", "cost", "budget", "safe", "feasible", "exploring", "seconds")
METRICS = (
    "true_return",
    "true_cost",
    "true_violations",
    "true_interventions",
    "intervened",
    "origin",
    "checks",
    "undone",
    "multiplier",
    "predicted_return",
    "worst_sample",
    "mean_sample",
    "predicted_most",
    "covered",
    "kappa",
    "state_ratio",
    "cost_ratio",
)


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def run_deep(request: Request, arms: Sequence[Arm], numbers: Numbers = UNSEEN) -> Study:
    """Runs what is missing: every arm from every prior with every seed, and the oracles they are compared with."""
    priors, first = numbers.chosen(request.priors), numbers.first_seed + request.seed
    seeds = range(first, first + (request.seeds or SEEDS))
    expanded = {arm: [with_prior(arm, prior, request.preset) for prior in priors] for arm in arms}
    compared = [each for each in arms if world_of(each).has_oracle]
    references = {each: with_prior(each, priors[0], request.preset) for each in dict.fromkeys(map(oracle_of, compared))}
    every = [each for many in expanded.values() for each in many]
    request.say(
        f"{len(arms)} arms x {len(priors)} priors x {len(seeds)} seeds and {len(references)} oracles, kept in "
        f"{STUDIES}: if interrupted, the same command goes on"
    )
    found = run_study(every, seeds, request.preset, STUDIES, request.workers, request.progress)
    known = run_study(references.values(), seeds[:1], request.preset, STUDIES, request.workers)
    runs = {
        arm: [
            Run(
                prior,
                seed,
                records,
                RunFolder.open(folder_of(each, seed, request.preset, STUDIES)).offline(),
                () if world_of(arm).has_oracle else _recorded(each, request.preset),
            )
            for prior, each in zip(priors, many, strict=True)
            for seed, records in zip(seeds, found[each], strict=True)
        ]
        for arm, many in expanded.items()
    }
    return Study(runs, {each: _best(known[arm][0]) for each, arm in references.items()})


def _recorded(each: Arm, preset: str) -> list[float]:
    """The returns of the episodes that an arm begins with."""
    data = each.specification(0, preset).experiment().task.prior.data
    assert data is not None  # these arms name a recipe
    return [float(np.sum(episode.rewards)) for episode in split_episodes(data)]


def _best(records: Sequence[Record]) -> float:
    """The largest true mean return of a policy that keeps the budget in truth; no number if none does."""
    kept = [r.metrics["true_return"] for r in records if r.metrics["true_cost"] <= r.budget]
    return max(kept, default=np.nan)


HEAD = (
    "",
    "final return",
    f"last {LATE}",
    "violating policies",
    "largest true cost",
    "violating episodes",
    "constraint active",
    "fallen back",
    "coverage",
    "J_c covered",
    "kappa at the end",
    "seconds per run",
)


def deep_table(study: Study, arms: Iterable[Arm]) -> str:
    """One line per arm."""
    rows = [HEAD, ("---",) * len(HEAD), *(_row(study, arm) for arm in arms)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _row(study: Study, arm: Arm) -> tuple[str, ...]:
    runs = study.runs[arm]
    seconds = [run.seconds for run in runs]
    affected = sum(run.violating_policies > 0 for run in runs)
    episodes = sum(len(run.records) for run in runs)
    return (
        arm.label,
        str(summarise(list(study.final(arm)))),
        f"{study.late(arm).mean():.2f}",
        f"{study.violating(arm)} of {study.policies(arm)}, in {affected} of {len(runs)} runs",
        f"{study.costs(arm).max():.1f} of {runs[0].budget:g}",
        f"{sum(run.violating_episodes for run in runs)} of {episodes}",
        f"{100 * np.mean([run.active for run in runs]):.0f} %",
        f"{sum(run.fallbacks for run in runs)}",
        _percent([run.coverage for run in runs]),
        _percent([run.policies_covered for run in runs]),
        _last_kappa(runs),
        f"{min(seconds):.0f} to {max(seconds):.0f}",
    )


def _last_kappa(runs: Iterable[Run]) -> str:
    """The mean over the runs whose samples were tested; a policy that is taken over at once never is."""
    found = mean_known(float(tested[-1]) if len(tested := run.metric("kappa")) else np.nan for run in runs)
    return f"{found:.2f}" if np.isfinite(found) else "-"


def mean_known(shares: Iterable[float]) -> float:
    """The mean over the runs that have one; no number if none has."""
    known = [share for share in shares if np.isfinite(share)]
    return float(np.mean(known)) if known else np.nan


def _percent(shares: Iterable[float]) -> str:
    mean = mean_known(shares)
    return f"{100 * mean:.0f} %" if np.isfinite(mean) else "-"


def publish(
    request: Request,
    study: Study,
    title: str,
    text: str,
    sections: Mapping[str, Sequence[Arm]],
    draw: Callable[[Study], Figure],
    more: Mapping[str, Callable[[Study], Figure]] = MappingProxyType({}),
) -> dict[str, bytes]:
    """All that a figure leaves: a page with numbers, every episode, the picture, and more pictures by name."""
    versions = ", ".join(f"{name} {version}" for name, version in versions_now().items())
    lines = [f"# {title}", "", f"![{title}]({request.figure}.png)", "", f"Made by `{request.command}` with {versions}."]
    lines += [line for name in more for line in ("", f"![{title}: {name}]({request.figure}-{name}.png)")]
    lines += ["", text, ""]
    lines += [EXPLAINED, ""]
    for name, arms in sections.items():
        lines += [f"## {name}", "", _scale(study, arms), "", deep_table(study, arms), ""]
    return {
        "README.md": "\n".join(lines).encode(),
        "episodes.csv": study.csv(),
        f"{request.figure}.png": png(draw(study)),
        **{f"{request.figure}-{name}.png": png(made(study)) for name, made in more.items()},
    }


EXPLAINED = (
    "Returns are true means over many initial states (64; bodies on MuJoCo 4, played on another "
    "copy): 0 is the clone of the behaviour, 1 the best policy of the gradient solver that knows the true dynamics, "
    "under the same constraint; on MuJoCo without equations it is the share of what the behaviour earns. "
    "A policy violates if its true mean cost "
    "exceeds the budget, an episode if its own cost does. A constraint is active if its multiplier is above "
    f"{ACTIVE:g}. Coverage: episodes that cost no more than the dearest sample foretold, or a tenth of the budget "
    "more, of those that cost that much or were said to. J_c covered: the same of the true mean costs of policies, and "
    "of the mean costs that samples foretold when they were chosen. Seconds: offline phase and episodes, judging left "
    "out. Intervals take runs as independent; those from one prior are not."
)


def _scale(study: Study, arms: Sequence[Arm]) -> str:
    """What 0 and 1 are here: the clones of these arms, and their oracles; or what their behaviours earn."""
    if not world_of(arms[0]).has_oracle:
        return _behaviours(study, arms)
    clones = {
        (_data(arm), run.prior): f"{run.offline['clone/true_return']:.0f} at cost {run.offline['clone/true_cost']:.0f}"
        for arm in arms
        for run in study.runs[arm]
    }
    zeros = ", ".join(f"{value} ({data} episodes, prior {prior})" for (data, prior), value in clones.items())
    ones = ", ".join(dict.fromkeys(f"{study.best(arm):.0f} (d = {study.runs[arm][0].budget:g})" for arm in arms))
    seen = max(_best(run.records) for arm in arms for run in study.runs[arm])
    return (
        f"{len(study.runs[arms[0]])} runs per arm. 0 is {zeros}; 1 is {ones}. The best policy of these runs that keeps "
        f"the budget earns {seen:.0f}."
    )


def _behaviours(study: Study, arms: Sequence[Arm]) -> str:
    earned = {run.prior: run.behaviour for arm in arms for run in study.runs[arm]}
    ones = ", ".join(f"{value:.1f} (prior {prior})" for prior, value in earned.items())
    clones = {
        run.prior: f"{run.offline['clone/true_return']:.1f} at cost {run.offline['clone/true_cost']:.1f}"
        for arm in arms
        for run in study.runs[arm]
    }
    counts = ", ".join(f"{arm.label} {len(study.runs[arm])}" for arm in arms)
    seen = max(_best(run.records) for arm in arms for run in study.runs[arm])
    return (
        f"Runs: {counts}. 1 is what an episode of the offline data earns: {ones}. "
        f"Its clone: {', '.join(clones.values())}. "
        f"The best policy of these runs that keeps the budget earns {seen:.1f}."
    )


def _data(arm: Arm) -> str:
    return str(dict(arm.changes)["data"]).rsplit(":", 1)[-1]
