"""Processes that work side by side, one core each."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from multiprocessing.sharedctypes import Synchronized

__all__ = ["worker_pool"]

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@contextmanager
def worker_pool(count: int) -> Iterator[Executor]:
    """So many fresh processes; threads never multiply. Whatever they do is dropped at once if the caller fails."""
    flags = os.environ.get("XLA_FLAGS", "")
    if ONE_THREAD not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {ONE_THREAD}".strip()  # for the processes to come
    context = get_context("spawn")
    others = set(active_children())
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_settle, initargs=(context.Value("i", 0),))
    try:
        yield pool
    except BaseException:
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _settle(settled: "Synchronized[int]") -> None:
    """Leaves Ctrl-C to the parent, and keeps this process on a core of its own before JAX makes a thread for each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not hasattr(os, "sched_setaffinity"):  # only Linux can
        return
    with settled.get_lock():
        number = settled.value
        settled.value += 1
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})
