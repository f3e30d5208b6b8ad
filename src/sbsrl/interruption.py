"""Requests to stop, held back where an interruption would leave something half done."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

__all__ = ["uninterrupted"]

REQUESTS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds back SIGINT and SIGTERM while the body runs and delivers them, to the handlers of before, when it ends.

    Signals interrupt the main thread only: in another thread this does nothing. The body should be short.
    """
    if current_thread() is not main_thread():
        yield
        return
    held: list[int] = []
    handlers = [signal.signal(request, lambda number, frame: held.append(number)) for request in REQUESTS]
    try:
        yield
    finally:
        for request, handler in zip(REQUESTS, handlers, strict=True):
            signal.signal(request, handler)
        for number in held:
            signal.raise_signal(number)
