"""The true system of a run: opened late, closed at the end, and what is said if either fails."""

import dataclasses
import re
import threading

import gymnasium
import pytest
import toys

from sbsrl.errors import UserError
from sbsrl.runs import system as system_module
from sbsrl.runs.system import LazySystem


def task(opens):
    return dataclasses.replace(toys.make(), name="arm", open=opens)


class Arm(gymnasium.Env):
    action_space = toys.Cart.action_space
    closed = 0

    def close(self):
        self.closed += 1


def test_it_is_opened_when_it_is_asked_for_and_once():
    arms = [Arm(), Arm()]
    with LazySystem(task(arms.pop), pytest.fail) as system:
        assert len(arms) == 2
        assert system.open() is system.open()
        assert len(arms) == 1
        (arm,) = {system.open()}
        assert arm.closed == 0
    assert arm.closed == 1


def test_what_was_not_opened_is_not_closed():
    with LazySystem(task(pytest.fail), pytest.fail):
        pass


def test_one_that_cannot_be_opened_is_told_in_a_line():
    def opens():
        raise OSError("no route to the arm\nat 10.0.0.7")

    with (
        pytest.raises(UserError, match=r"^the system of arm cannot be opened: OSError: no route to the arm\.$"),
        LazySystem(task(opens), pytest.fail) as system,
    ):
        system.open()


@pytest.mark.parametrize(
    ("opened", "said"),
    [
        (None, "the system of arm is a NoneType; open() must give a gymnasium.Env."),
        (gymnasium.Env(), "the system of arm has actions of shape None, and the task has 1 numbers per action"),
    ],
)
def test_what_is_no_such_system_is_refused_before_it_is_reset(opened, said):
    with LazySystem(task(lambda: opened), pytest.fail) as system, pytest.raises(UserError, match=re.escape(said)):
        system.open()


def test_one_that_does_not_close_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(system_module, "CLOSE_TIMEOUT", 0.1)
    notes, released = [], threading.Event()
    arm = Arm()
    arm.close = lambda: released.wait(30)
    with LazySystem(task(lambda: arm), notes.append) as system:
        system.open()
    released.set()
    assert notes == ["closing the system raised DeadlineExceeded: the call did not return within 0.1 s."]


def test_one_that_cannot_be_closed_hides_nothing_that_happened():
    notes = []
    arm = Arm()
    arm.close = lambda: 1 / 0

    def play():
        with LazySystem(task(lambda: arm), notes.append) as system:
            system.open()
            raise KeyError("what happened")

    with pytest.raises(KeyError, match="what happened"):
        play()
    assert notes == ["closing the system raised ZeroDivisionError: division by zero."]
