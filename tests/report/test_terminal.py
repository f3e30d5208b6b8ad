"""What a person sees of a run, from what its folder has."""

import io

import pytest
from rich.console import Console

from sbsrl.record import Interruption
from sbsrl.report.terminal import Terminal, summary_table
from sbsrl.runs.view import Reference, RunView

SPEED = {"name": "speed", "budget": 6.0, "aggregation": "statewise", "least": 0.0}
EFFORT = {"name": "effort", "budget": 2.0, "aggregation": "sum", "least": 0.0}


def make_view(records, costs=(SPEED,), **parts):
    """A run of three episodes as config.json describes it."""
    settings = {"run": {"episodes": 3}, "method": {"samples": 8, "tightening": [0.1]}}
    system = {"horizon": 50, "costs": list(costs)}
    config = {"task": "pendulum", "method": "sbsrl", "settings": settings, "system": system}
    return RunView(config, list(records), **parts)


def shown(thing, width=200):
    console = Console(file=io.StringIO(), width=width)
    console.print(thing)
    return console.file.getvalue()


def live(records, costs=(SPEED,), before=()):
    console = Console(file=io.StringIO(), width=200)
    with Terminal(console) as terminal:
        terminal.started(make_view(before, costs), None)
        for r in records:
            terminal.finished_episode(r)
    return console.file.getvalue()


def summary(records, costs=(SPEED,), **parts):
    return shown(summary_table(make_view(records, costs, **parts)))


def row(text, name):
    (line,) = (line for line in text.splitlines() if line.strip().startswith(name))
    return line.strip().removeprefix(name).strip()


def test_a_safe_episode_and_a_violation_are_told_apart(record):
    out = live([record(), record(1, cost=6.5)])
    first, second = (next(line for line in out.splitlines() if line.startswith(f"    {n}  ")) for n in (0, 1))
    assert "safe" in first
    assert "VIOLATION 0.5" in second


def test_a_single_episode_above_a_bound_on_the_expected_cost_is_no_violation(record):
    out = live([record(cost=2.5, budget=2.0)], [EFFORT])
    assert "above the budget by 0.5" in out
    assert "VIOLATION" not in out


def test_of_several_costs_one_that_no_step_may_exceed_decides(record):
    both = {"cost/speed": 6.5, "cost/effort": 2.6}
    assert "VIOLATION" in live([record(cost=2.6, budget=2.0, metrics=both)], [EFFORT, SPEED])
    assert "VIOLATION" not in live([record(cost=2.6, budget=2.0, metrics=both | {"cost/speed": 5})], [EFFORT, SPEED])


def test_infeasible_plans_are_never_passed_over(record):
    out = live([record(feasible=False, metrics={"infeasible_plans": 7, "worst_plan": 1.25})])
    assert "7 plans were infeasible" in out
    assert "1.25" in out


def test_who_acted_is_said_and_counted(record):
    watched = [record(metrics={"intervened": share}) for share in (0.0, 0.25, 1.0)]
    assert "another policy took over, in 25% of the steps." in live(watched)
    assert "another policy took over, in 0%" not in live(watched)
    assert row(summary(watched), "interventions") == "another policy took over in 2 of 3 episodes"
    assert "interventions" not in summary([record()])


def test_an_episode_that_was_cut_short_says_when_and_why(record):
    out = live([record(steps=12, ended="fault", reason="the observation at step 13 is not finite")])
    assert "fault after 12 steps" in out
    assert "the observation at step 13 is not finite." in out
    assert "after" not in live([record()])


def test_episodes_of_before_are_shown_as_such(record):
    out = live([record(1)], before=[record(0)])
    assert "done before" in next(line for line in out.splitlines() if line.startswith("    0  "))
    assert "2.0 s" in next(line for line in out.splitlines() if line.startswith("    1  "))


def test_programs_are_compiled_until_the_first_step(record):
    """After that the bar tells which episode is played, and it never goes beyond its end."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    terminal = Terminal(console)
    said = []

    def task():
        (bar,) = terminal._progress.tasks
        return bar

    with terminal:
        said.append(task().description)
        terminal.started(make_view([record(0)]), None)
        said.append(task().description)
        assert task().total is None
        terminal.stepped()
        said.append(task().description)
        assert (task().completed, task().total) == (51, 200)
        for episode in (1, 2, 3):
            terminal.finished_episode(record(episode))
            said.append(task().description)
    assert said == ["preparing", "compiling", "episode 1", "episode 2", "final policy", "final policy"]


def test_the_summary_counts_violations_and_normalises(record):
    ends = Reference(-500.0, -200.0)
    out = summary([record(cost=6.5), record(1, "final", -230.0)], reference=ends)
    assert row(out, "final return") == "-230.00"
    assert row(out, "violating episodes") == "1 of 2"
    assert row(out, "normalised").startswith("0.900")
    assert row(out, "largest cost") == "6.500 of 6"


def test_each_of_several_costs_has_its_rows(record):
    both = [
        record(cost=6.5, metrics={"cost/speed": 6.5, "cost/effort": 1.0}),
        record(1, "final", cost=2.5, budget=2.0, metrics={"cost/speed": 5.0, "cost/effort": 2.5}),
    ]
    lines = [line.strip() for line in summary(both, [SPEED, EFFORT]).splitlines()]
    speed, effort = lines.index("speed"), lines.index("effort")
    assert speed < effort
    assert lines[speed + 1].split() == ["largest", "cost", "6.500", "of", "6"]
    assert lines[speed + 2].endswith("1 of 2")
    assert lines[effort + 1].endswith("1.750; 2 bounds the expected cost")
    assert lines[effort + 2].endswith("2.500; 1 of 2 single episodes cost more than 2")


def test_the_time_is_what_the_user_waited(record):
    view = make_view([record(), record(1, "final")])
    assert row(shown(summary_table(view, waited=17.4)), "time") == "17 s, of which episodes 4 s"
    assert row(shown(summary_table(view)), "time") == "4 s of episodes"


def test_without_a_certificate_nothing_is_claimed(record):
    assert row(summary([]), "guarantee") == "none yet: no episode is finished"
    assert row(summary([record()]), "guarantee") == "not known: there is no certificate.json"
    refused = {"guarantee": "none", "reasons": ["too few samples.", "another."]}
    assert row(summary([record()], certificate=refused), "guarantee") == "none: too few samples. (certificate.json)"
    held = {"guarantee": "safety", "statement": "theorem 1 holds"}
    assert row(summary([record()], certificate=held), "guarantee") == "theorem 1 holds"


def test_a_run_that_has_not_begun_has_a_summary(record):
    assert row(summary([]), "episodes") == "0, of which 0 under the exploration constraint"


@pytest.mark.parametrize("show", [live, summary])
def test_a_violated_calibration_assumption_is_shown(show, record):
    out = show([record(calibration_warning="the calibration assumption is violated at episode 3: at (x, a) = ...")])
    assert "the calibration assumption is violated at episode 3" in out


def test_what_others_wrote_is_no_markup(record):
    """Square brackets are markup to the terminal's library."""
    text = "step 3 raised ValueError: [/bold] of [x]"
    for show in (live, summary):
        assert text in show([record(steps=2, ended="fault", reason=text)])
    cost = SPEED | {"name": "[red]speed[/]"}
    metrics = {"cost/[red]speed[/]": 5.0, "cost/effort": 1.0}
    assert "[red]speed[/]" in summary([record(metrics=metrics)], [cost, EFFORT])


def test_episodes_that_the_user_stopped_are_counted_apart_and_their_violations_too(record):
    short = Interruption(1, 13, -1.0, cost=2.0, budget=6.0, violation=0.0, safe=True)
    fast = Interruption(1, 4, -1.0, cost=6.5, budget=6.0, violation=0.5, safe=False)
    assert "interrupted" not in summary([record()])
    assert row(summary([record()], interruptions=[short]), "interrupted").endswith(
        "after 13 steps and played anew; no violation"
    )
    told = row(summary([record()], interruptions=[short, fast]), "interrupted")
    assert told.startswith("2 more, stopped by the user after 13, 4 steps")
    assert told.endswith("1 of them violated a budget")


def test_a_risk_that_was_promised_has_a_row(record):
    """What was shown, at most, and how the data compare with the belief."""
    promised = {
        "promised": 0.05,
        "confidence": 0.95,
        "episodes": [{"bound": 0.011}, {"bound": 0.034}],
        "not_covered": [],
        "calibration": "nothing speaks against the belief",
    }
    certificate = {"guarantee": "none", "reasons": ["no theorem."], "risk": promised}
    text = row(summary([record()], certificate=certificate), "risk")
    assert "at most 0.05 per episode if the truth is a draw from the belief" in text
    assert "0.011 to 0.034" in text
    assert "risk " not in summary([record()], certificate={"guarantee": "none", "reasons": ["no theorem."]})
