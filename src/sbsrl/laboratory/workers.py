"""Processes that work side by side, one core each."""

import os
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context

__all__ = ["worker_pool"]

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def worker_pool(count: int) -> Executor:
    """So many fresh processes; threads never multiply."""
    flags = os.environ.get("XLA_FLAGS", "")
    if ONE_THREAD not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {ONE_THREAD}".strip()  # for the processes to come
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))
