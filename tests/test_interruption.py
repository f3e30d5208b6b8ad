"""Requests to stop that are held back."""

import signal
from threading import Thread

import pytest

from sbsrl.interruption import REQUESTS, uninterrupted


def interrupt(number, frame):
    raise KeyboardInterrupt(number)


@pytest.fixture(autouse=True)
def requests_interrupt():
    before = [signal.signal(request, interrupt) for request in REQUESTS]
    yield
    for request, handler in zip(REQUESTS, before, strict=True):
        signal.signal(request, handler)


def ask(request, done, error=None):
    """A body that is asked to stop, goes on, and perhaps fails."""
    with uninterrupted():
        signal.raise_signal(request)
        done.append(request)
        if error:
            raise error


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_waits_for_the_end_of_the_body(request_):
    done = []
    with pytest.raises(KeyboardInterrupt) as caught:
        ask(request_, done)
    assert done == [request_]
    assert caught.value.args == (request_,)
    assert [signal.getsignal(each) for each in REQUESTS] == [interrupt, interrupt]


def test_it_comes_also_after_a_body_that_fails():
    with pytest.raises(KeyboardInterrupt) as caught:
        ask(signal.SIGINT, [], OSError("disk full"))
    assert isinstance(caught.value.__context__, OSError)


def test_without_a_request_nothing_happens():
    with uninterrupted():
        pass
    assert [signal.getsignal(each) for each in REQUESTS] == [interrupt, interrupt]


def test_other_threads_may_use_it():
    """Only the main thread may set handlers, and only it is interrupted."""
    seen = []

    def work():
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [interrupt]
