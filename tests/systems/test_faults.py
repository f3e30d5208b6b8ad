"""What an episode is guarded by, from a task. (The checks themselves are tested where they matter, in episodes.)"""

import jax.numpy as jnp
import pytest

from sbsrl.costs import Cost
from sbsrl.errors import UserError
from sbsrl.prior import Prior
from sbsrl.systems.faults import HURRY, STEP_TIMEOUT, Fault, Guard, describe, read_action
from sbsrl.task import Task


def test_a_task_says_what_its_episodes_are_guarded_by():
    task = Task(
        name="walk",
        state_names=("place", "speed"),
        action_low=(-1.0,),
        action_high=(1.0,),
        horizon=5,
        costs=(Cost("speed", 1.0), Cost("heat", 2.0)),
        start=lambda key: jnp.zeros(2),
        open=lambda: pytest.fail("nothing is opened"),
        prior=Prior("none", informative=False),
        safe_action=(0.5,),
    )
    limits = ((-1.0, 1.0),)
    assert Guard.of(task) == Guard(2, 2, STEP_TIMEOUT, (0.5,), ("place", "speed"), action_limits=limits)
    assert Guard.of(task, 9.0).step_timeout == 9.0
    assert Guard.of(task, 9.0).in_a_hurry().step_timeout == HURRY
    assert Guard.of(task, 0.0).in_a_hurry().step_timeout == 0.0


@pytest.mark.parametrize("action", [1.0 + 1e-3, -50.0])
def test_actions_beyond_their_limits_are_not_sent(action):
    guard = Guard(1, 1, action_limits=((-1.0, 1.0), (0.0, 9.0)))
    assert read_action([1.0 + 1e-7, 9.0], 3, (2,), guard).tolist() == [1.0 + 1e-7, 9.0]  # rounded
    with pytest.raises(Fault, match=r"for step 3 is .*, not between -1 and 1; it was not sent"):
        read_action([action, 1.0], 3, (2,), guard)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UserError("no such file; give another.\n  at line 3"), "UserError: no such file; give another."),
        (KeyError(), "KeyError"),
    ],
)
def test_errors_are_described_in_a_line(error, text):
    assert describe(error) == text
