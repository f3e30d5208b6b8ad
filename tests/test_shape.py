"""The shape of episodes that the bounds on returns are about."""

from dataclasses import replace

import pytest

from sbsrl import UserError, make_task
from sbsrl.costs import Cost
from sbsrl.prior import Prior
from sbsrl.shape import described, episode_shape
from sbsrl.task import Limits


@pytest.fixture
def task():
    """Two outputs of different noise, rewards in a range of 5, and two costs, in ranges of 3 and of 10."""
    pendulum = make_task("pendulum")
    return replace(
        pendulum,
        horizon=4,
        costs=(Cost("one", 10.0, "sum", (0.0, 3.0)), Cost("other", 9.0, "statewise", (-2.0, 8.0))),
        prior=replace(pendulum.prior, gp=replace(pendulum.prior.gp, noise=(0.3, 0.2, 0.25))),
        limits=Limits((1.0, 1.0, 8.0, 1.0), reward=(-5.0, 0.0)),
        signals=None,
        equations=None,
    )


def test_it_has_the_larger_range_and_the_smallest_noise(task):
    """Of cost and reward; costs are charged to the state a step leads to, so their delay is 1."""
    assert episode_shape(task) == (4, 3, 0.2, 5.0, "sum", 1)
    assert episode_shape(task, 1) == (4, 3, 0.2, 10.0, "statewise", 1)


def test_a_task_that_is_described_has_a_model_and_limits(task):
    assert described(task) == (task.prior.gp, task.limits)


@pytest.mark.parametrize("changes", [{"limits": None}, {"prior": Prior("nothing", False)}])
def test_it_needs_a_model_and_limits(task, changes):
    with pytest.raises(UserError, match="needs limits and a Gaussian-process prior, which pendulum does not have"):
        episode_shape(replace(task, **changes))
