"""A limit on the time that a call may take, for systems that may never answer.

Calls with a limit run in a thread of their own, the same one for all calls of a caller. The thread is a daemon: unlike
the threads of `concurrent.futures`, it is not waited for when the program ends. Code that holds the global interpreter
lock while it hangs cannot be watched in this way.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar

__all__ = ["DeadlineExceeded", "within"]

T = TypeVar("T")


class DeadlineExceeded(TimeoutError):  # noqa: N818  (says what happened; a TimeoutError of the function is another one)
    """The call did not return in time. It may still be under way."""


def within(seconds: float, function: Callable[..., T], *args: Any) -> T:
    """What `function(*args)` returns or raises, or DeadlineExceeded after `seconds`; 0 calls directly, without a limit.

    Calls of one thread run one after the other, also if the wait for one was ended by Ctrl-C: the next one begins when
    that one has returned, and its time runs meanwhile. After DeadlineExceeded calls run in a new thread, and the call
    that was late never begins if it has not begun.
    """
    if not seconds:
        return function(*args)
    call = _Call(function, args)
    worker = _worker()
    worker.calls.put(call)
    try:
        error, value = _wait(call, seconds)
    except Empty:
        call.wanted = False
        worker.dismiss()
        raise DeadlineExceeded(f"the call did not return within {seconds:g} s") from None
    if error is not None:
        raise error
    return value


class _Call:
    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args
        self.wanted = True
        self.reply: SimpleQueue[tuple[BaseException | None, Any]] = SimpleQueue()

    def run(self) -> None:
        try:
            self.reply.put((None, self.function(*self.args)))
        except BaseException as error:  # whatever it is, the caller's thread raises it
            self.reply.put((error, None))


SLICE = 0.1
"""Seconds. A signal that arrives just before the thread begins to wait does not end the wait, so it waits in slices."""


def _wait(call: _Call, seconds: float) -> tuple[BaseException | None, Any]:
    end = monotonic() + seconds
    while (left := end - monotonic()) > SLICE:
        with suppress(Empty):
            return call.reply.get(timeout=SLICE)
    return call.reply.get(timeout=max(left, 0.0))


class _Worker:
    """A thread that runs calls until it is dismissed."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Call | None] = SimpleQueue()
        self.thread = threading.Thread(target=_serve, args=(self.calls,), name="sbsrl-deadline", daemon=True)
        self.thread.start()
        self.dismissed = False

    @property
    def serves(self) -> bool:
        """Also false in a process that was forked, where the thread does not exist."""
        return not self.dismissed and self.thread.is_alive()

    def dismiss(self) -> None:
        """Lets the thread end when its call returns, if ever."""
        self.dismissed = True
        self.calls.put(None)

    def __del__(self) -> None:  # the thread that called has ended
        self.calls.put(None)


def _serve(calls: "SimpleQueue[_Call | None]") -> None:
    while (call := calls.get()) is not None:
        if call.wanted:
            call.run()
        del call  # frees arguments and result while the thread waits


_local = threading.local()


def _worker() -> _Worker:
    worker: _Worker | None = getattr(_local, "worker", None)
    if worker is None or not worker.serves:
        worker = _local.worker = _Worker()
    return worker
