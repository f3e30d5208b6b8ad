"""What an episode is guarded by, from a task. (The checks themselves are tested where they matter, in episodes.)"""

import jax.numpy as jnp
import pytest

from sbsrl.costs import Cost
from sbsrl.errors import UserError
from sbsrl.prior import Prior
from sbsrl.systems.faults import Guard, describe
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
    assert Guard.of(task) == Guard(2, 2, 0.0, (0.5,), ("place", "speed"))
    assert Guard.of(task, 3.0).step_timeout == 3.0


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UserError("no such file; give another.\n  at line 3"), "UserError: no such file; give another."),
        (KeyError(), "KeyError"),
    ],
)
def test_errors_are_described_in_a_line(error, text):
    assert describe(error) == text
