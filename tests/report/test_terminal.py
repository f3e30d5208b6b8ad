import io

import pytest
from rich.console import Console

from sbsrl.loop import Record
from sbsrl.report.reference import Reference
from sbsrl.report.terminal import Terminal, summary_table
from sbsrl.runs import Specification


def record(**changes):
    fields = {
        "episode": 0,
        "phase": "explore",
        "reward": -300.0,
        "cost": 5.0,
        "budget": 6.0,
        "violation": 0.0,
        "safe": True,
        "feasible": True,
        "exploring": True,
        "uncertainty": 100.0,
        "samples": 30,
        "infeasible_plans": 0,
        "worst_plan": 0.0,
        "planned_information": 100.0,
        "evaluated": 0.5,
        "objection": None,
        "seconds": 1.0,
    }
    return Record(**{**fields, **changes})


def shown(records, show):
    console = Console(file=io.StringIO(), width=200)
    experiment, _ = Specification.make("pendulum", "sbsrl", 0, "smoke", {}).start()
    show(console, experiment, records)
    return console.file.getvalue()


def live(console, experiment, records):
    with Terminal(console) as terminal:
        terminal.started(experiment, [], None)
        for r in records:
            terminal.finished_episode(r)


def summary(console, experiment, records):
    console.print(summary_table(experiment, records, Reference(-500.0, -200.0)))


def test_a_safe_episode_and_a_violation_are_told_apart():
    out = shown([record(), record(episode=1, cost=6.5, violation=0.5, safe=False)], live)
    first, second = (next(line for line in out.splitlines() if line.startswith(f"    {n}  ")) for n in (0, 1))
    assert "safe" in first
    assert "VIOLATION 0.5" in second


def test_infeasible_plans_are_never_passed_over():
    out = shown([record(feasible=False, infeasible_plans=7, worst_plan=1.25)], live)
    assert "7 plans were infeasible" in out
    assert "1.25" in out


def test_the_summary_counts_violations_and_normalises():
    out = shown([record(cost=6.5, violation=0.5, safe=False), record(episode=1, phase="final", reward=-230.0)], summary)
    assert "1 of 2" in out
    assert "0.900" in out
    assert "6.500 of 6" in out


@pytest.mark.parametrize("show", [live, summary])
def test_a_violated_calibration_assumption_is_shown(show):
    out = shown([record(objection="the calibration assumption is violated at episode 3: at (x, a) = ...")], show)
    assert "the calibration assumption is violated at episode 3" in out
