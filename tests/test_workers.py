"""Workers: processes of their own, one core each, and gone when nobody waits for them any more."""

import os
import signal
import time
from multiprocessing import active_children

import pytest

from sbsrl.workers import worker_pool


def test_workers_are_processes_of_one_thread(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=")
    with worker_pool(1) as pool:
        flags, other = pool.submit(os.getenv, "XLA_FLAGS").result(), pool.submit(os.getpid).result()
        assert other != os.getpid()
    assert flags.startswith("--xla_dump_to= --xla_cpu_multi_thread_eigen=false")


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux keeps processes on cores")
def test_a_worker_has_one_core():
    with worker_pool(1) as pool:
        assert len(pool.submit(os.sched_getaffinity, 0).result()) == 1


def test_an_interruption_ends_work_that_would_take_an_hour():
    """Begun or waiting: what was asked for is dropped, and no process is left behind."""
    before, begun = set(active_children()), []
    with pytest.raises(KeyboardInterrupt):
        begin_and_interrupt(begun)
    assert len(begun) == 3
    assert all(each.cancelled() or each.exception() for each in begun)
    assert set(active_children()) == before


def begin_and_interrupt(begun):
    with worker_pool(1) as pool:
        pool.submit(os.getpid).result()  # the worker is up
        begun += [pool.submit(time.sleep, 3600) for _ in range(3)]
        raise KeyboardInterrupt


def test_ctrl_c_is_left_to_the_parent():
    """A terminal sends it to every process; one that is told about is enough."""
    with worker_pool(1) as pool:
        worker = pool.submit(os.getpid).result()
        os.kill(worker, signal.SIGINT)
        assert pool.submit(os.getpid).result() == worker
