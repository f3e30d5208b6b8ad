"""A bystander changes nothing, and notes what a system answers that it did not declare."""

import gymnasium
import numpy as np
import pytest

from sbsrl.own.witness import Witness

BOX = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
ORIGIN = np.zeros(2, np.float32)


class Telling(gymnasium.Env):
    """Answers what it is told to."""

    action_space = BOX

    def __init__(self, steps=(), first=ORIGIN, space=BOX):
        self.observation_space, self.first, self.steps = space, first, list(steps)

    def reset(self, **options):
        return self.first, options

    def step(self, action):
        return self.steps.pop(0)


def answer(observation, terminated=False, truncated=False):
    return observation, 1.0, terminated, truncated, {"cost": 2.0}


INSIDE = np.full(2, 0.5, np.float32)


def watched(*steps, **options):
    env = Witness(Telling(steps, **options))
    env.reset(seed=3)
    for _ in steps:
        env.step(np.zeros(2))
    return env


def test_what_the_system_answers_is_passed_on():
    outcome = answer(INSIDE)
    env = Witness(Telling([outcome, 7]))
    first, info = env.reset(seed=3, options={"far": 1})
    assert (first.tolist(), info) == ([0.0, 0.0], {"seed": 3, "options": {"far": 1}})
    assert env.step(np.zeros(2)) is outcome
    assert env.step(np.zeros(2)) == 7
    assert (env.outside, len(env.seconds)) == ([], 2)
    assert min(env.seconds) >= 0


@pytest.mark.parametrize(
    ("observation", "why"),
    [
        (np.array([0.0, 1.5], np.float32), "number 1 is 1.5, not between -1 and 1"),
        (np.array([np.nan, 0.0], np.float32), "number 0 is nan, not between -1 and 1"),
        (np.zeros(3, np.float32), r"its shape is (3,), not (2,)"),
        (np.zeros(2, np.float64), "it is float64, and float32 is declared"),
        ({"place": 0.0}, "it is a dict, not an array"),
        ([0.0, 0.0], "it is a list, not an array"),
    ],
)
def test_observations_that_were_not_declared_are_noted_with_the_reason(observation, why):
    assert watched(answer(INSIDE), answer(observation)).outside == [f"at step 2: {why}"]
    assert watched(first=observation).outside == [f"after the reset: {why}"]


def test_of_a_nan_that_is_not_first_the_number_is_the_right_one():
    assert watched(answer(np.array([0.0, np.nan], np.float32))).outside == [
        "at step 1: number 1 is nan, not between -1 and 1"
    ]


def test_other_spaces_are_named():
    env = watched(answer(9), first=1, space=gymnasium.spaces.Discrete(3))
    assert env.outside == ["at step 1: int is not in Discrete"]


@pytest.mark.parametrize(("terminated", "truncated"), [(True, False), (False, True)])
def test_whether_the_episode_is_over_is_known_until_the_next_begins(terminated, truncated):
    env = watched(answer(INSIDE), answer(INSIDE, terminated, truncated))
    assert env.ended
    env.reset()
    assert not env.ended
    assert not watched(answer(INSIDE)).ended
    charged = (INSIDE, 1.0, 5.0, terminated, truncated, {})  # as safety_gymnasium has it
    assert watched(charged).ended
