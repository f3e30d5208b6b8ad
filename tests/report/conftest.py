"""Made-up runs: figures are tested without running anything."""

import pytest

from sbsrl.record import Record
from sbsrl.report.comparison import Comparison
from sbsrl.runs.view import Reference


def make_record(episode=0, phase="exploit", reward=-200.0, cost=5.0, budget=6.0, metrics=None, **changes):
    """An episode of 50 steps like any other; safe if its cost says so."""
    plain = {
        "violation": max(cost - budget, 0.0),
        "safe": cost <= budget,
        "feasible": True,
        "exploring": phase == "explore",
        "uncertainty": 100.0,
        "samples": 30,
        "seconds": 2.0,
        "steps": 50,
        "metrics": {"infeasible_plans": 0, "worst_plan": 0.0, "evaluated": 0.2, **(metrics or {})},
    }
    return Record(episode=episode, phase=phase, reward=reward, cost=cost, budget=budget, **{**plain, **changes})


@pytest.fixture
def record():
    return make_record


@pytest.fixture
def made_up():
    """A comparison of these arms with three seeds of two training episodes each, no two of them alike."""

    def make(arms):
        arms = list(dict.fromkeys(arms))
        runs = {
            arm: [
                [
                    make_record(0, "explore", -400.0 + i, 5.0 + seed),
                    make_record(1, "exploit", -250.0 + 10 * seed, 4.0, metrics={"infeasible_plans": seed}),
                    make_record(2, "final", -210.0 - i, 5.5),
                ]
                for seed in range(3)
            ]
            for i, arm in enumerate(arms)
        }
        scales = {task: Reference(-500.0, -200.0) for task in dict.fromkeys(arm.task for arm in arms)}
        return Comparison(runs, scales, range(3))

    return make
