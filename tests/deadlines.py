"""Pytest plug-in: every test ends, and with it what it started; the run goes on with the next.

A phase of a test (setup, call, teardown) that overruns is ended by an alarm: what the test started
is killed, because the way out of a test often waits for it, then an exception is raised where the
test is. pytest-timeout would raise too, but leave the processes, and hypothesis would take its
exception for a finding. `@pytest.mark.deadline(seconds)` gives a test another time.
"""

import asyncio
import contextlib
import faulthandler
import os
import signal
import threading
import time
import types
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from _pytest.outcomes import OutcomeException

USUAL_SECONDS = 300.0
LONG_SECONDS = 900.0
LONG_MARKS = ("slow", "cluster", "dataplane", "ha")
AGAIN_SECONDS = 5.0
"""An alarm can ring in a task that nobody waits for, or in a cleaning up that hangs as well."""

LAST_SECONDS = 120.0
"""So long after its deadline a test that no alarm reaches takes the whole process with it."""

_ENDING_SECONDS = 10.0
_MARK = "STARTED_BY_TESTS_OF"
_PROC = Path("/proc")


class Overran(OutcomeException):
    """Of those exceptions that pytest cleans up after, and that no `except Exception` stops."""


class Process(NamedTuple):
    """One of the table of processes; with its start it is never mistaken for a later one."""

    pid: int
    started: int
    parent: int


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("usepdb", default=False):
        config.pluginmanager.register(Deadlines(config), "deadlines of tests")


class Deadlines:
    """The alarm of the test that runs, and whose the processes are."""

    def __init__(self, config: pytest.Config) -> None:
        self._stderr = config.stash.get(fault_handler_stderr_fd_key, 2)
        self._phase = ""
        self._began = 0
        self._overran = False
        self._run = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._marks: tuple[bytes, ...] = ()
        # When fixtures that outlive a test were made: what was started then is not the test's.
        self._shared: list[tuple[int, int]] = []
        os.environ[_MARK] = self._run

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._began, self._overran = _ticks(), False
        result = yield
        if self._overran:
            # A fixture may have started some of it again on the way out.
            self._end_all()
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        with self._bounded(item, "setup"):
            yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        with self._bounded(item, "call"):
            yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        with self._bounded(item, "teardown"):
            yield

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: "pytest.FixtureDef[object]"
    ) -> Generator[None, object, object]:
        began = _ticks()
        made = yield
        if fixturedef.scope != "function":
            self._shared.append((began, _ticks()))
        return made

    @contextlib.contextmanager
    def _bounded(self, item: pytest.Item, phase: str) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        seconds = limit(item)

        def ring(_number: int, _frame: types.FrameType | None) -> None:
            if self._phase:
                self._marks = self._marks_of(item)
                raise Overran(self._told(seconds))

        self._phase = phase
        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
        faulthandler.dump_traceback_later(seconds + LAST_SECONDS, exit=True, file=self._stderr)
        try:
            yield
        finally:
            self._phase = ""
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            faulthandler.cancel_dump_traceback_later()

    def _told(self, seconds: float) -> str:
        self._overran = True
        waits = [line for task in _tasks() for line in _waits(task)]
        ended = [f"  {each}" for each in self._end_all()]
        return "\n".join(
            (
                f"test overran its deadline in its {self._phase}: {seconds:g} s",
                *(("asyncio tasks:", *waits) if waits else ()),
                *(("killed what it had started:", *ended) if ended else ()),
                "hint: mend what it waits for, or give it @pytest.mark.deadline(seconds)",
            )
        )

    def _marks_of(self, item: pytest.Item) -> tuple[bytes, ...]:
        """In the environment of what the test started: ours, or its folder, as the product does."""
        folder = (getattr(item, "funcargs", None) or {}).get("tmp_path")
        ours = f"{_MARK}={self._run}"
        return tuple(os.fsencode(str(each)) for each in (ours, folder) if each is not None)

    def _end_all(self) -> list[str]:
        ended: list[str] = []
        until = time.monotonic() + _ENDING_SECONDS
        while (found := self._started()) and time.monotonic() < until:
            # The oldest first, so that no parent starts again what was ended.
            ended += [_words(each) for each in sorted(found, key=lambda each: each.started)]
            for each in sorted(found, key=lambda each: each.started):
                _kill(each)
            time.sleep(0.05)
        return list(dict.fromkeys(ended))

    def _started(self) -> list[Process]:
        """What lives of this test: children and theirs, and those who left but bear its mark."""
        table = {each.pid: each for each in _processes()}
        young = (each for each in table.values() if each.started >= self._began)
        found = []
        for each in young:
            line = list(_line(each, table))
            mine = any(one.parent == os.getpid() for one in line) or _bears(each, self._marks)
            shared = any(
                began <= one.started <= ended for one in line for began, ended in self._shared
            )
            if mine and not shared:
                found.append(each)
        return found


def limit(item: pytest.Item) -> float:
    """How many seconds each phase of this test may take."""
    mark = item.get_closest_marker("deadline")
    if mark is not None:
        return float(mark.args[0])
    long = any(item.get_closest_marker(name) for name in LONG_MARKS)
    return LONG_SECONDS if long else USUAL_SECONDS


def _ticks() -> int:
    """Now, as the table of processes tells when one was started."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def _processes() -> Iterator[Process]:
    for folder in _PROC.iterdir():
        found = _process(int(folder.name)) if folder.name.isdigit() else None
        if found is not None:
            yield found


def _process(pid: int) -> Process | None:
    """The living one with this number."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name and may hold anything, brackets too.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZXx" else Process(pid, int(fields[19]), int(fields[1]))


def _line(process: Process, table: dict[int, Process]) -> Iterator[Process]:
    """The process and those it comes from, up to us."""
    one: Process | None = process
    while one is not None and one.pid != os.getpid():
        yield one
        one = table.get(one.parent)


def _bears(process: Process, marks: tuple[bytes, ...]) -> bool:
    with contextlib.suppress(OSError):
        environment = (_PROC / str(process.pid) / "environ").read_bytes()
        return process.pid != os.getpid() and any(mark in environment for mark in marks)
    return False


def _kill(process: Process) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(process.pid)
        try:
            # After the open: from here on the number cannot change hands.
            found = _process(process.pid)
            if found is not None and found.started == process.started:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _words(process: Process) -> str:
    with contextlib.suppress(OSError):
        line = (_PROC / str(process.pid) / "cmdline").read_bytes().replace(b"\0", b" ")
        return f"{process.pid} {' '.join(line.decode(errors='replace').split())[:100]}"
    return str(process.pid)


def _tasks() -> list["asyncio.Task[object]"]:
    try:
        return list(asyncio.all_tasks())
    except RuntimeError:
        return []  # no loop runs here


def _waits(task: "asyncio.Task[object]") -> Iterator[str]:
    """Where a task waits, line by line; its own stack ends at the first await."""
    yield f"  {task.get_name()}:"
    awaited: object = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        yield f"    {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
        awaited = getattr(awaited, "cr_await", None)
