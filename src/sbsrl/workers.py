"""A pool of processes, each with one thread on one core, that ends with whoever asked for its work."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.sharedctypes import Synchronized
from threading import Thread
from time import sleep

from .interruption import uninterrupted

__all__ = ["worker_pool"]

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@contextmanager
def worker_pool(count: int) -> Iterator[Executor]:
    """An executor with `count` new processes of one thread each. If the body raises, they are terminated."""
    context = _Context()
    first = context.Value("i", os.getpid() % 1024)  # two pools of one worker each should not meet on the first core
    others = set(active_children())
    with _one_thread():
        pool = ProcessPoolExecutor(count, mp_context=context, initializer=_settle, initargs=(first, os.getpid()))
        try:
            yield pool
        except BaseException:
            for worker in set(active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


class _Worker(SpawnProcess):
    """A process that Ctrl-C cannot meet before `_settle` makes it ignore SIGINT: it is born with SIGINT blocked."""

    def start(self) -> None:
        with uninterrupted():  # a process that is left without its orders complains with a traceback
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a new process inherits it
            try:
                super().start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


class _Context(SpawnContext):
    """Makes such processes."""

    Process = _Worker


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sets XLA_FLAGS such that JAX uses one thread in processes that are started inside; restores it afterwards."""
    flags = os.environ.get("XLA_FLAGS")
    os.environ["XLA_FLAGS"] = f"{flags or ''} {ONE_THREAD}".strip()
    try:
        yield
    finally:
        if flags is None:
            del os.environ["XLA_FLAGS"]
        else:
            os.environ["XLA_FLAGS"] = flags


def _settle(number: "Synchronized[int]", parent: int) -> None:
    """Begins a worker: ignores SIGINT, exits when the parent dies, pins itself to one core (before JAX counts them)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(parent,), daemon=True).start()
    with number.get_lock():
        mine = number.value
        number.value += 1
    _stay_on_a_core(mine)


def _stay_on_a_core(number: int) -> None:
    """Pins this process to one of the cores it may use; consecutive numbers take them in turn."""
    if not hasattr(os, "sched_setaffinity"):  # only Linux can
        return
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})


def _end_with(parent: int) -> None:
    """Ends this process within a second of the end of its parent, however that ended. Does not return."""
    while os.getppid() == parent:
        sleep(1)
    os._exit(1)
