"""The program as it is started. Requests to stop (SIGINT, which is Ctrl-C, and SIGTERM) are heard before all else.

Whenever one comes, the program says so in one line and exits with 130, without a traceback. What is on disk can be
resumed, as after a kill. How it ends depends on what it is doing:

- starting (importing JAX takes seconds) or exiting: it ends at once;
- working: KeyboardInterrupt is raised in the main thread, once, and the work puts itself in order. If that cannot
  happen, because the main thread is in a long compilation or the exception was lost, the process is ended after
  `PATIENCE` seconds, or at the next request. Requests within `SAME_REQUEST` seconds count as one.

SIGINT is heard even if it was ignored by the process that started this one, as shells do for background jobs.
"""

import atexit
import os
import signal
import sys
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from select import select
from threading import Thread
from time import monotonic, sleep
from types import FrameType
from typing import Any, NoReturn

from .interruption import REQUESTS

__all__ = ["main"]

INTERRUPTED = 130
LINE = b"sbsrl: interrupted.\n"
PATIENCE = 10.0
SAME_REQUEST = 1.0
CLEAN_LINE = b"\r\x1b[K\x1b[?25h"
"""For a terminal: erases what a progress bar left on the line and shows the cursor that it hid."""


def main() -> int:
    """Runs the command line and returns its exit code; if it was interrupted, ends the process with 130 instead."""
    _on_request(_end)
    Thread(target=_watch, args=(_arrivals(),), daemon=True).start()
    atexit.register(_on_request, signal.SIG_IGN)  # runs after the exit handlers of what is imported below
    from .cli import main as command_line  # noqa: PLC0415  (imports JAX)

    return _work(command_line)


class _Interruption:
    """Raises KeyboardInterrupt in the main thread at a request, and nothing more while that one is dealt with."""

    def __init__(self) -> None:
        self.requested = False
        self._armed = True

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signals."""
        self.requested = True
        if self._armed:
            self._armed = False
            raise KeyboardInterrupt

    def unraisable(self, problem: Any) -> None:
        """The hook for exceptions that have nowhere to go, as in finalisers: a KeyboardInterrupt is raised again.

        Many end up there while JAX computes, in its callback of the garbage collector.
        """
        if issubclass(problem.exc_type, KeyboardInterrupt):
            start_new_thread(self._repeat, ())
        else:
            sys.__unraisablehook__(problem)

    def _repeat(self) -> None:
        sleep(0.01)  # by then the main thread has left the finaliser
        self._armed = True
        os.kill(os.getpid(), signal.SIGINT)


def _work(command_line: Callable[[], int]) -> int:
    """The exit code of the command line. Whatever it raises or returns after a request is the interruption.

    XLA, for one, turns a KeyboardInterrupt in its callbacks into an error of its own.
    """
    interruption = _Interruption()
    code: int | None = None
    sys.unraisablehook = interruption.unraisable
    try:
        _on_request(interruption.handle)
        code = command_line()
    except BaseException:
        if not interruption.requested:
            raise
    finally:
        _on_request(_ignore if interruption.requested else _end)
    if interruption.requested or code is None:
        _leave(said=code == INTERRUPTED)
    return code


def _leave(said: bool) -> NoReturn:
    """Ends the process with 130 when the work is in order; exit handlers and threads have no say in it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if said:
        os._exit(INTERRUPTED)
    _end()


def _end(*_: Any) -> NoReturn:
    """Ends the process with 130 and the line, at once. A handler of signals that may also be called."""
    with suppress(OSError):
        os.write(2, CLEAN_LINE + LINE if os.isatty(2) else LINE)
    os._exit(INTERRUPTED)


def _ignore(*_: Any) -> None:
    """A handler that does nothing. Unlike SIG_IGN it may take the place of another one at any moment."""


def _on_request(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in REQUESTS:
        signal.signal(number, handler)


def _arrivals() -> int:
    """A pipe with one byte per signal, its number, written when it arrives, whatever the main thread is doing."""
    arrivals, end = os.pipe()
    os.set_blocking(end, False)
    signal.set_wakeup_fd(end, warn_on_full_buffer=False)
    return arrivals


def _watch(arrivals: int) -> None:
    """Ends the process if the work does not do so in time after a request. Runs in a thread of its own."""
    while not _request(arrivals, seconds=3600):
        pass
    sleep(SAME_REQUEST)
    while _request(arrivals, seconds=0):
        pass
    _request(arrivals, PATIENCE - SAME_REQUEST)
    _end()


def _request(arrivals: int, seconds: float) -> bool:
    """Whether a request arrives within that time; waits for it. Other signals are not meant."""
    deadline = monotonic() + seconds
    while select([arrivals], [], [], max(deadline - monotonic(), 0))[0]:
        if os.read(arrivals, 1)[0] in REQUESTS:
            return True
    return False
