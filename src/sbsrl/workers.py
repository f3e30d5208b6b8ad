"""Processes that work side by side, one core each."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from multiprocessing.sharedctypes import Synchronized
from threading import Thread
from time import sleep

__all__ = ["worker_pool"]

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@contextmanager
def worker_pool(count: int) -> Iterator[Executor]:
    """So many fresh processes; threads never multiply. Whatever they do is dropped at once if the caller fails."""
    context = get_context("spawn")
    first = context.Value("i", os.getpid() % 1024)  # two pools of one worker each should not meet on the first core
    others = set(active_children())
    with _one_thread():
        pool = ProcessPoolExecutor(count, mp_context=context, initializer=_settle, initargs=(first,))
        try:
            yield pool
        except BaseException:
            for worker in set(active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Tells the JAX of processes that are started meanwhile to use one thread."""
    flags = os.environ.get("XLA_FLAGS")
    os.environ["XLA_FLAGS"] = f"{flags or ''} {ONE_THREAD}".strip()
    try:
        yield
    finally:
        if flags is None:
            del os.environ["XLA_FLAGS"]
        else:
            os.environ["XLA_FLAGS"] = flags


def _settle(number: "Synchronized[int]") -> None:
    """Begins a worker: Ctrl-C is the parent's, whose end is its own, and it has a core before JAX counts them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with number.get_lock():
        mine = number.value
        number.value += 1
    _stay_on_a_core(mine)


def _stay_on_a_core(number: int) -> None:
    if not hasattr(os, "sched_setaffinity"):  # only Linux can
        return
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})


def _end_with(parent: int) -> None:
    """Ends this process when its parent was killed: nobody waits for its work any more."""
    while os.getppid() == parent:
        sleep(1)
    os._exit(1)
