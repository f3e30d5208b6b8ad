"""How often another policy than the one that was found acted, and what that costs in return."""

from collections.abc import Sequence

import numpy as np

from ..runs.study import Arm
from .deep_study import Study

__all__ = ["INTERVENTIONS", "MONITORED", "interventions_table", "price"]

MONITORED = ", monitor"
"""What the label of an arm under watch ends with."""
INTERVENTIONS = (
    "Interventions: executed episodes in which another policy than the one that was found acted at some time, the "
    "share of all steps in which it did, and the share of simulated episodes (64 per policy). How much memory a run "
    "takes is in benchmarks/deep.md."
)


PRICE = 4
"""The column of the price."""


def interventions_table(study: Study, compared: Sequence[Arm]) -> str:
    """One line per arm: who acted, what that costs where there is an arm without the monitor, and what a run takes."""
    head = ("", "episodes with interventions", "share of steps", "simulated", "price", "minutes per run")
    rows = [head, ("---",) * len(head), *(_row(study, each, compared) for each in compared)]
    if all(row[PRICE] == "-" for row in rows[2:]):
        rows = [(*row[:PRICE], *row[PRICE + 1 :]) for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _row(study: Study, each: Arm, compared: Sequence[Arm]) -> tuple[str, ...]:
    runs = study.runs[each]
    shares = np.concatenate([run.metric("intervened") for run in runs])
    simulated = np.concatenate([run.metric("true_interventions") for run in runs])
    plain = next((other for other in compared if f"{other.label}{MONITORED}" == each.label), None)
    minutes = [run.seconds / 60 for run in runs]
    return (
        each.label,
        f"{np.sum(shares > 0)} of {len(shares)}" if len(shares) else "-",
        f"{100 * shares.mean():.1f} %" if len(shares) else "-",
        f"{100 * simulated.mean():.1f} %" if len(simulated) else "-",
        f"{price(study, plain, each):.3f}" if plain else "-",
        f"{min(minutes):.1f} to {max(minutes):.1f}",
    )


def price(study: Study, plain: Arm, watched: Arm) -> float:
    """By how much less the policies of the last episodes earn under watch."""
    return float(study.late(plain).mean() - study.late(watched).mean())
