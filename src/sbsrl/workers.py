"""Processes that work side by side, one core each."""

import os
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized

__all__ = ["worker_pool"]

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def worker_pool(count: int) -> Executor:
    """So many fresh processes; threads never multiply."""
    flags = os.environ.get("XLA_FLAGS", "")
    if ONE_THREAD not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {ONE_THREAD}".strip()  # for the processes to come
    context = get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_settle, initargs=(context.Value("i", 0),))


def _settle(settled: "Synchronized[int]") -> None:
    """Keeps this process on a core of its own, before JAX counts the cores and makes a thread for each."""
    if not hasattr(os, "sched_setaffinity"):  # only Linux can
        return
    with settled.get_lock():
        number = settled.value
        settled.value += 1
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})
