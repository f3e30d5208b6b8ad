"""Limits of time. Limits that must hold are generous (30 s); limits that must be exceeded are short (0.1 s)."""

import subprocess
import sys
import threading
from time import monotonic

import pytest

from sbsrl.systems.deadline import DeadlineExceeded, within

LONG, SHORT = 30.0, 0.1


@pytest.fixture
def hang():
    """A function that does not return before the test ends."""
    released = threading.Event()
    yield lambda: released.wait(LONG)
    released.set()


@pytest.mark.parametrize("seconds", [0, LONG])
def test_the_result_is_that_of_the_function(seconds):
    assert within(seconds, divmod, 17, 5) == (3, 2)


@pytest.mark.parametrize("seconds", [0, LONG])
def test_exceptions_come_out_as_they_are(seconds):
    error = LookupError("nowhere")

    def fail():
        raise error

    with pytest.raises(LookupError) as caught:
        within(seconds, fail)
    assert caught.value is error


def test_a_late_call_raises_and_later_ones_are_served(hang):
    started = monotonic()
    with pytest.raises(TimeoutError, match=r"did not return within 0.1 s"):
        within(SHORT, hang)
    assert monotonic() - started < LONG / 2
    assert within(LONG, abs, -1) == 1


def test_a_timeout_of_the_function_itself_is_told_apart():
    def fail():
        raise TimeoutError("the sensor is silent")

    with pytest.raises(TimeoutError) as caught:
        within(LONG, fail)
    assert not isinstance(caught.value, DeadlineExceeded)


def test_all_calls_run_in_one_thread_and_without_a_limit_in_the_own():
    threads = {within(LONG, threading.get_ident) for _ in range(5)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    assert within(0, threading.get_ident) == threading.get_ident()


def test_callers_in_different_threads_do_not_wait_for_each_other():
    began, released = threading.Event(), threading.Event()

    def slow():
        began.set()
        released.wait(LONG)

    other = threading.Thread(target=within, args=(LONG, slow))
    other.start()
    assert began.wait(LONG)
    try:
        assert within(LONG / 2, abs, -2) == 2
    finally:
        released.set()
        other.join()


def _ended(thread):
    thread.join(LONG)
    return not thread.is_alive()


def test_the_thread_ends_with_its_caller():
    found = []
    caller = threading.Thread(target=lambda: found.append(within(LONG, threading.current_thread)))
    caller.start()
    caller.join()
    del caller
    assert _ended(found[0])


def test_a_late_thread_ends_when_its_call_returns():
    released, found = threading.Event(), []

    def late():
        found.append(threading.current_thread())
        released.wait(LONG)

    with pytest.raises(TimeoutError):
        within(SHORT, late)
    released.set()
    assert _ended(found[0])


def test_ctrl_c_works_while_waiting_and_the_next_call_waits_for_the_interrupted_one(press_ctrl_c):
    released, calls = threading.Event(), []

    def first():
        press_ctrl_c()
        released.wait(LONG)
        calls.append("first")

    with pytest.raises(KeyboardInterrupt):
        within(LONG, first)
    assert calls == []
    released.set()
    within(LONG, calls.append, "second")
    assert calls == ["first", "second"]


def test_a_call_that_never_began_never_begins(press_ctrl_c):
    released, calls = threading.Event(), []

    def first():
        calls.append(threading.current_thread())
        press_ctrl_c()
        released.wait(LONG)

    with pytest.raises(KeyboardInterrupt):
        within(LONG, first)
    with pytest.raises(TimeoutError):
        within(SHORT, calls.append, "too late")
    released.set()
    assert _ended(calls[0])
    assert len(calls) == 1


def test_a_hanging_call_does_not_keep_the_program_alive():
    code = """
import threading
from sbsrl.systems.deadline import within
try:
    within(0.1, threading.Event().wait)
except TimeoutError:
    print("late")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "late\n"), done.stderr
