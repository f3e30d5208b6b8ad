"""Made-up runs: figures are tested without running anything."""

import pytest
from made_up_records import make_record

from sbsrl.report.comparison import Comparison
from sbsrl.runs.view import Reference


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
