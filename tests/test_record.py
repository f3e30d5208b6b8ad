"""A line of the ledger comes back as it was, also one that the first version wrote."""

import json

from sbsrl.record import Record

FIRST_VERSION = (
    '{"episode": 1, "phase": "explore", "reward": -237.4870300292969, "cost": 5.2018723487854, "budget": 6.0, '
    '"violation": 0.0, "safe": true, "feasible": false, "exploring": true, "uncertainty": 512.0371704101562, '
    '"samples": 30, "infeasible_plans": 2, "worst_plan": 0.03125, "planned_information": 201.5, '
    '"evaluated": 0.1484375, "objection": "the calibration assumption is violated at episode 1: ...", '
    '"seconds": 1.8750612359989464}'
)
"""Written by commit 1ea95aa, but for its numbers."""


def record(**changes):
    plain = Record(
        episode=3,
        phase="exploit",
        reward=-1.5,
        cost=2.0,
        budget=1.5,
        violation=0.5,
        safe=False,
        feasible=True,
        exploring=False,
        uncertainty=0.25,
        samples=4,
        seconds=0.1,
        line=3,
        steps=7,
        ended="terminated",
        metrics={"infeasible_plans": 0, "worst_plan": 0.0, "loss": 0.125},
    )
    return plain._replace(**changes)


def test_a_line_comes_back_as_it_was():
    for written in (record(), record(ended="fault", reason="why", calibration_warning="because", metrics={})):
        assert Record.from_json(json.loads(json.dumps(written._asdict()))) == written


def test_the_fixed_keys_come_first():
    fixed = "episode phase reward cost budget violation safe feasible exploring uncertainty samples seconds"
    assert list(record()._asdict())[:12] == fixed.split()


def test_a_line_of_the_first_version_still_loads():
    old = Record.from_json(json.loads(FIRST_VERSION))
    assert (old.episode, old.phase, old.reward, old.seconds) == (1, "explore", -237.4870300292969, 1.8750612359989464)
    assert (old.infeasible_plans, old.worst_plan) == (2, 0.03125)
    assert old.metrics["planned_information"] == 201.5
    assert old.metrics["evaluated"] == 0.1484375
    assert old.calibration_warning == "the calibration assumption is violated at episode 1: ..."
    assert "objection" not in old.metrics
    assert (old.line, old.steps, old.ended, old.reason) == (-1, -1, "horizon", "")


def test_a_key_of_a_later_version_is_kept_as_a_metric():
    content = {**record(metrics={})._asdict(), "temperature": 21.5}
    del content["metrics"]
    assert Record.from_json(content).metrics == {"temperature": 21.5}


def test_what_was_not_said_of_plans_is_nothing():
    assert (record(metrics={}).infeasible_plans, record(metrics={}).worst_plan) == (0, 0.0)
