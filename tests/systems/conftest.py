"""Ctrl-C without a keyboard."""

import signal
import threading

import pytest


@pytest.fixture
def press_ctrl_c():
    """A function that any thread may call: the main thread gets the signal of Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    signal.signal(signal.SIGINT, before)
