"""The plug-ins of tests/deadlines.py and tests/signals.py, in runs of pytest of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.clients.processes import identity

ROOT = Path(__file__).resolve().parents[2]
HANGING = '''
import asyncio, contextlib, pathlib, subprocess, sys, time
import pytest

pytestmark = pytest.mark.deadline(2)
# It and its child, which leaves for a session of its own, do not end when asked.
DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0: os._exit(0)
open(sys.argv[1], "a").write(f"{os.getpid()} ")
time.sleep(600)
"""

def deaf(name):
    child = subprocess.Popen([sys.executable, "-c", DEAF, name])
    while not (path := pathlib.Path(name)).exists() or len(path.read_text().split()) < 2:
        time.sleep(0.01)
    return child

@pytest.fixture(scope="session")
def server():
    with subprocess.Popen(["sleep", "600"]) as running:
        yield running
        running.kill()

@pytest.fixture
def held():
    with deaf("teardown"):
        yield

def test_sleep(server):
    time.sleep(600)

async def test_asyncio():
    async def stubborn():
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(600)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stubborn())

def test_child(server):
    with deaf("call"):
        raise ValueError("the way out waits for the child")

def test_fixture(held):
    assert True

@pytest.mark.deadline(60)
def test_next(server):
    assert server.poll() is None
'''
SIGNALS = """
import signal, subprocess, sys

def test_children_end_by_a_signal():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with subprocess.Popen(["sleep", "600"]) as child:
            child.send_signal(number)
            assert child.wait(30) == -number
"""
IGNORING = ("sh", "-c", "trap '' INT TERM HUP; exec \"$@\"", "sh")
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])


@WORKERS
def test_a_test_that_hangs_is_ended_with_all_it_started_and_the_next_runs(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    done = run(tmp_path, HANGING, *workers)

    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "3 failed, 2 passed, 2 errors" in done.stdout, done.stdout
    assert "test overran its deadline in its call: 2 s" in done.stdout
    assert "test overran its deadline in its teardown: 2 s" in done.stdout
    assert "    time.sleep(600)\n" in done.stdout, "where the test was"
    assert "in test_asyncio.<locals>.stubborn\n" in done.stdout, "where a task was"
    for name in ("call", "teardown"):
        started = [int(pid) for pid in (tmp_path / name).read_text().split()]
        assert len(started) == 2
        assert [pid for pid in started if identity.identify(pid)] == []


@WORKERS
def test_signals_that_were_ignored_when_the_run_began_work_again(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    done = run(tmp_path, SIGNALS, *workers, through=IGNORING)

    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr


def run(
    folder: Path, text: str, *options: str, through: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    (folder / "test_a.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode=auto\nmarkers =\n    deadline: s\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.deadlines", "-p", "tests.signals"]
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [*through, *command, "-p", "no:cacheprovider", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
