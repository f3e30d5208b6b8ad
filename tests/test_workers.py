"""Workers: processes of their own, one core each, and gone when nobody waits for them any more."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children

import pytest

from sbsrl import workers
from sbsrl.workers import worker_pool


def test_workers_are_processes_of_one_thread(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=")
    with worker_pool(1) as pool:
        flags, other = pool.submit(os.getenv, "XLA_FLAGS").result(), pool.submit(os.getpid).result()
        assert other != os.getpid()
    assert flags.startswith("--xla_dump_to= --xla_cpu_multi_thread_eigen=false")
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to="


def test_what_was_not_set_is_not_set_afterwards(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    with worker_pool(1):
        assert "XLA_FLAGS" in os.environ
    assert "XLA_FLAGS" not in os.environ


def test_workers_take_the_cores_in_turn(monkeypatch):
    """Of those that this process may use, here two of four."""
    taken = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 1}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: taken.append(cores), raising=False)
    for number in range(7, 10):
        workers._stay_on_a_core(number)
    assert taken == [{3}, {1}, {3}]


def test_where_no_core_can_be_chosen_none_is(monkeypatch):
    """As on systems other than Linux."""
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: pytest.fail("asked"), raising=False)
    workers._stay_on_a_core(0)


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


def test_ctrl_c_does_not_meet_a_worker_that_is_being_born():
    """It is blocked from the first moment, for the worker only."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with worker_pool(1) as pool:
        blocked = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()
    assert signal.SIGINT in blocked
    assert signal.SIGTERM not in blocked
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert signal.SIGINT not in before


ORPHAN = """
import os, sys, time
from sbsrl.workers import worker_pool

if __name__ == "__main__":
    with worker_pool(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 3600)
        os.kill(os.getpid(), int(sys.argv[1]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_when_their_parent_is_killed(tmp_path, number):
    """No signal reaches them then, and one that went on would hold the lock of its run. It keeps the pipe open."""
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    ended = subprocess.run([sys.executable, script, str(int(number))], check=False, stdout=subprocess.PIPE, timeout=60)
    assert ended.returncode == -number
    assert int(ended.stdout) > 0
