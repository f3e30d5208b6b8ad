import numpy as np
import pytest
import slider

from sbsrl import choice
from sbsrl.report.reference import reference_returns
from sbsrl.runs.view import Reference
from sbsrl.specification import Specification
from sbsrl.tasks import TASKS


def test_the_scale_runs_from_doing_nothing_to_the_oracle():
    scale = Reference(idle=-500.0, oracle=-200.0)
    assert (scale.normalised(-500), scale.normalised(-200), scale.normalised(-350)) == (0, 1, 0.5)


def test_hanging_still_earns_minus_50_pi_squared_and_the_oracle_swings_up():
    experiment, _ = Specification.make("pendulum", "sbsrl", 0, "smoke", {}).start()
    scale = reference_returns(experiment)
    np.testing.assert_allclose(scale.idle, -50 * np.pi**2)
    assert -200 < scale.oracle < -175


PLANNED = [task for task, entry in TASKS.items() if entry.presets()["cpu"].get("solver") != "gradient"]


@pytest.mark.parametrize("task", PLANNED)
def test_every_task_can_be_planned_for_by_who_knows_it(task):
    """In single precision, whatever the true dynamics are computed in; it earns more than doing nothing."""
    experiment, _ = Specification.make(task, "sbsrl", 0, "smoke", {}).start()
    scale = reference_returns(experiment, seeds=1)
    assert scale.oracle > scale.idle


def test_solvers_that_learn_over_many_episodes_have_no_oracle_of_three_plans():
    with pytest.MonkeyPatch.context() as patch:
        slider.register(patch.setitem)
        experiment = Specification.make("slider", "sbsrl", 0, "smoke", {}).experiment()
        assert reference_returns(experiment) is None


def test_the_oracle_is_not_asked_for_a_risk(monkeypatch):
    """It knows the truth; that draws of the belief violate with its policy is no matter."""
    small = {"icem.candidates": 32, "icem.elites": 4, "icem.iterations": 2, "gp.features": 32}
    experiment = Specification.make("pendulum", "sbsrl", 0, "cpu", {**small, "risk": 0.01}).experiment()
    monkeypatch.setattr(choice, "tried", None)
    found = reference_returns(experiment, seeds=1)
    assert found.oracle > found.idle
