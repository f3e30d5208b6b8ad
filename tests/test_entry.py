"""The program as it is started: a request to stop, at any moment, is one line and exit code 130."""

import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
LINE = "sbsrl: interrupted.\n"

ask_to_stop = pytest.mark.parametrize("request_", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)


@pytest.fixture(autouse=True)
def children_hear_sigint():
    """Tests that run in the background inherit, and pass on, that SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start(*command, folder):
    return subprocess.Popen(
        [sys.executable, *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def stub(body, folder):
    """The program with `work()` in the place of the command line; it prints 'ready' when the test may go on."""
    code = (
        "import atexit, os, signal, sys, threading, time, types\n"
        f"from sbsrl import entry\n{body}\n"
        "sys.modules['sbsrl.cli'] = types.SimpleNamespace(main=work)\n"
        "sys.exit(entry.main())\n"
    )
    process = start("-c", code, folder=folder)
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process, seconds=60):
    """Exit code, standard output and standard error."""
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def until(condition, process):
    """Waits for that; the process must still be at work then."""
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def listens(process):
    """Whether the program's first lines have run: before them there is only Python's own start."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def test_the_console_script_and_the_module_are_this_program():
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["sbsrl"] == "sbsrl.entry:main"
    assert "from .entry import main" in (TOP / "src/sbsrl/__main__.py").read_text()


@ask_to_stop
@pytest.mark.parametrize("seconds", [0, 0.05, 0.2, 0.5, 1, 2, 3])
def test_a_request_while_it_starts_is_one_line(tmp_path, tiny_flags, request_, seconds):
    """While JAX is imported, or while the first programs compile: that depends on the machine."""
    process = start("-m", "sbsrl", "train", "pendulum", *tiny_flags, "--out", "run", folder=tmp_path)
    until(lambda: listens(process), process)
    time.sleep(seconds)
    process.send_signal(request_)
    code, out, err = ended(process)
    assert code == 130
    assert (out + err).count("interrupted") == 1
    assert err in ("", LINE)


def test_a_run_that_was_interrupted_in_episodes_goes_on(tmp_path, tiny_flags):
    """By Ctrl-C when it was trained, by SIGTERM when it was resumed; every episode that was shown is kept."""
    ledger = tmp_path / "run" / "episodes.jsonl"
    train = start("-m", "sbsrl", "train", "pendulum", *tiny_flags, "--out", "run", folder=tmp_path)
    interrupt_after("0", train, signal.SIGINT)
    first = ledger.read_text()
    interrupt_after("1", start("-m", "sbsrl", "resume", "run", folder=tmp_path), signal.SIGTERM)
    second = ledger.read_text()
    code, _, err = ended(start("-m", "sbsrl", "resume", "run", folder=tmp_path), seconds=300)
    assert (code, err) == (0, "")
    assert first.count("\n") >= 1
    assert second.startswith(first)
    assert second.count("\n") >= 2
    assert ledger.read_text().startswith(second)


def interrupt_after(episode, process, number):
    """Asks the run to stop a moment after it showed that episode; it must say how to go on."""
    assert any(line.split()[:1] == [episode] for line in process.stdout)
    time.sleep(0.05)
    process.send_signal(number)
    code, out, err = ended(process)
    assert (code, err) == (130, "")
    assert out.count("interrupted") == 1
    assert "sbsrl resume run" in out.splitlines()[-1]


@ask_to_stop
def test_requests_that_follow_do_not_disturb_the_first(tmp_path, request_):
    """`timeout` sends two, an impatient user more: the work still puts itself in order and says so itself."""
    body = """
def work():
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("tidying", flush=True)
        time.sleep(0.5)
        print("interrupted; in order", flush=True)
        return 130
"""
    process = stub(body, tmp_path)
    process.send_signal(request_)
    assert process.stdout.readline() == "tidying\n"
    process.send_signal(request_)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (130, "interrupted; in order\n", "")


@pytest.mark.parametrize("what", ["raise RuntimeError('INTERNAL: callback failed')", "return 0", "raise"])
def test_whatever_comes_of_a_request_is_the_interruption(tmp_path, what):
    """XLA makes an error of its own out of a KeyboardInterrupt; others lose it."""
    body = f"""
def work():
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        {what}
"""
    process = stub(body, tmp_path)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (130, "", LINE)


def test_a_request_in_a_finaliser_reaches_the_work(tmp_path):
    """Python prints and drops what a finaliser raises."""
    body = """
class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

def work():
    print("ready", flush=True)
    try:
        Last()
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted; in order")
        return 130
"""
    assert ended(stub(body, tmp_path), seconds=20) == (130, "interrupted; in order\n", "")


def test_other_exceptions_in_finalisers_are_shown_as_ever(tmp_path):
    body = """
class Last:
    def __del__(self):
        raise ValueError("a bug")

def work():
    print("ready", flush=True)
    Last()
    return 0
"""
    code, _, err = ended(stub(body, tmp_path))
    assert code == 0
    assert "ValueError: a bug" in err


STUBBORN = """
entry.SAME_REQUEST, entry.PATIENCE = 0.3, {patience}

def work():
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("lost", flush=True)
    time.sleep(60)
"""


def test_work_that_does_not_end_is_ended(tmp_path):
    """As when the main thread is in a compilation, which does not look at signals."""
    process = stub(STUBBORN.format(patience=1), tmp_path)
    process.send_signal(signal.SIGINT)
    assert ended(process, seconds=20) == (130, "lost\n", LINE)


def test_a_second_request_ends_it_at_once(tmp_path):
    process = stub(STUBBORN.format(patience=3600), tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "lost\n"
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    assert ended(process, seconds=20) == (130, "", LINE)


def test_a_thread_that_hangs_does_not_keep_it(tmp_path):
    body = """
def work():
    threading.Thread(target=time.sleep, args=(3600,)).start()
    print("ready", flush=True)
    time.sleep(60)
"""
    process = stub(body, tmp_path)
    process.send_signal(signal.SIGINT)
    assert ended(process, seconds=20) == (130, "", LINE)


@ask_to_stop
@pytest.mark.parametrize("last", ["atexit.register(linger)", "threading.Thread(target=linger).start()"])
def test_a_request_while_it_exits_is_one_line(tmp_path, request_, last):
    """In exit handlers, or while threads are waited for."""
    body = f"""
def linger():
    time.sleep(0.2)
    print("ready", flush=True)
    time.sleep(60)

def work():
    {last}
    return 0
"""
    process = stub(body, tmp_path)
    process.send_signal(request_)
    assert ended(process, seconds=20) == (130, "", LINE)


@pytest.mark.parametrize(
    ("end", "expected"), [("return 0", 0), ("return 2", 2), ("sys.exit(3)", 3), ("raise ValueError('a bug')", 1)]
)
def test_without_a_request_the_exit_code_is_the_command_line_s(tmp_path, end, expected):
    code, out, err = ended(stub(f"def work():\n    print('ready', flush=True)\n    {end}", tmp_path))
    assert (code, out) == (expected, "")
    assert ("ValueError: a bug" in err) == (expected == 1)


def test_it_is_heard_where_the_shell_ignores_sigint(tmp_path):
    """Shells without job control do so for background jobs."""
    body = "def work():\n    print('ready', flush=True)\n    time.sleep(60)"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = stub(body, tmp_path)
    process.send_signal(signal.SIGINT)
    assert ended(process, seconds=20) == (130, "", LINE)


@ask_to_stop
def test_workers_end_with_the_program(tmp_path, request_):
    """They hold the pipes open: `ended` returns when the last one is gone."""
    body = """
from sbsrl.workers import worker_pool

def work():
    with worker_pool(2) as pool:
        pool.submit(os.getpid).result()
        print("ready", flush=True)
        for _ in range(4):
            pool.submit(time.sleep, 3600)
        pool.submit(os.getpid).result()
"""
    process = stub(body, tmp_path)
    process.send_signal(request_)
    assert ended(process, seconds=20) == (130, "", LINE)


def test_workers_notice_when_the_program_was_ended_at_once(tmp_path):
    """Nobody terminates them then. As above, `ended` waits for them."""
    body = """
from sbsrl.workers import worker_pool

def work():
    with worker_pool(1) as pool:
        pool.submit(os.getpid).result()
        print("ready", flush=True)
        pool.submit(time.sleep, 3600)
        entry._end()
"""
    process = stub(body, tmp_path)
    assert ended(process, seconds=20)[0] == 130
