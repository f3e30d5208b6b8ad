"""Made-up episodes."""

from sbsrl.record import Record


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
