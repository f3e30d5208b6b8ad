"""Learning itself, on the smoke preset: cheap, and with a threshold that can fail."""

import pytest

from sbsrl import learn
from sbsrl.report.reference import reference_returns


@pytest.mark.parametrize("seed", [0, 1])
def test_the_pendulum_is_learned_without_a_violation_or_an_infeasible_plan(seed):
    """Final normalised return at least 0.7. Eight seeds gave 0.79 to 0.99, and 0.32 to 0.40 in episode 0."""
    result = learn("pendulum", seed=seed, preset="smoke")
    scale = reference_returns(result.experiment)
    assert all(r.safe for r in result.records)
    assert all(r.feasible for r in result.records)
    assert scale.normalised(result.records[-1].reward) >= 0.7
    assert scale.normalised(result.records[0].reward) < 0.5


def test_without_safety_the_same_run_violates():
    """The bound is not met by chance: the same planner without it turns faster than 6 rad/s."""
    assert max(r.violation for r in learn("pendulum", "unsafe", preset="smoke").records) > 0.3
