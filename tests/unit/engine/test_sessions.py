"""Sessions are opened more slowly after each loss, and no call waits longer than its deadline."""

import asyncio
import functools
import threading
import time
from typing import Any

import pytest

from fairlead import errors
from fairlead.engine import sessions
from fairlead.engine.store import protocol
from tests.engines import PATIENCE, Home, until
from tests.tampered import gone

SECONDS = 1.5
LEAST = (0.0, 0.0, 0.05, 0.15, 0.35, 0.75)


def refuse() -> protocol.Session:
    raise gone()


def test_a_store_that_refuses_is_asked_less_and_less_often() -> None:
    reopening, began, waited = sessions.Reopening(refuse), time.monotonic(), []
    for _ in range(6):
        with pytest.raises(errors.Unavailable):
            reopening.open()
        waited.append(time.monotonic() - began)

    # The second at once, then pauses of 0.05 to 0.1 s, 0.1 to 0.2 s, and so on. A busy machine only
    # adds to them.
    assert all(seconds >= least for seconds, least in zip(waited, LEAST, strict=True))


def test_a_session_that_breaks_once_is_replaced_at_once(sqlite_home: Home) -> None:
    reopening = sessions.Reopening(sqlite_home.store().open)

    reopening.lost()

    assert reopening._pause() == 0
    reopening.open().close()


def test_sessions_that_are_lost_without_a_write_in_between_are_a_series(sqlite_home: Home) -> None:
    reopening = sessions.Reopening(sqlite_home.store().open)
    end, opens = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        reopening.open().close()
        reopening.lost()
        opens += 1

    assert opens <= 9


@pytest.fixture
def endless_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits one out does not end within a test."""
    monkeypatch.setattr(sessions, "_LONGEST_PAUSE", 1e6)


@pytest.mark.usefixtures("endless_pauses")
def test_a_write_that_got_through_ends_the_series() -> None:
    reopening = sessions.Reopening(refuse)
    for _ in range(50):
        reopening.lost()
    reopening.fine()

    with pytest.raises(errors.Unavailable):
        reopening.open()


@pytest.mark.usefixtures("endless_pauses")
def test_whoever_ends_does_not_wait_out_the_pause() -> None:
    reopening = sessions.Reopening(refuse)
    for _ in range(50):
        reopening.lost()
    reopening.stop()

    with pytest.raises(errors.Unavailable):
        reopening.open()


async def test_a_call_that_overruns_is_left_behind_and_the_next_gets_another_thread(
    sqlite_home: Home,
) -> None:
    threads: list[int] = []
    stuck = threading.Event()
    line = sessions.SessionThread(sqlite_home.store().open, "test")

    def noted(_: Any) -> int:
        threads.append(threading.get_ident())
        return 7

    def hang(session: Any) -> None:
        noted(session)
        stuck.wait(PATIENCE)

    assert await line.run(noted, PATIENCE) == 7
    with pytest.raises(errors.Unavailable, match=r"within 0\.05 s"):
        await line.run(hang, 0.05)
    assert await line.run(noted, PATIENCE) == 7
    stuck.set()
    line.leave()

    # On a busy machine the one in the middle may be given up before it was begun.
    assert threads[0] != threads[-1]


async def test_a_session_that_is_slow_to_open_is_waited_for_by_the_next_call(
    sqlite_home: Home,
) -> None:
    opens, slow = 0, threading.Event()

    def open_() -> protocol.Session:
        nonlocal opens
        opens += 1
        slow.wait(PATIENCE)
        return sqlite_home.store().open()

    line = sessions.SessionThread(open_, "test")
    ran: list[str] = []

    for _ in range(3):
        with pytest.raises(errors.Unavailable):
            await line.run(lambda _: ran.append("too late"), 0.05)
    slow.set()
    await line.run(lambda _: ran.append("in time"), PATIENCE)
    line.leave()

    assert (opens, ran) == (1, ["in time"])


async def test_a_lost_race_keeps_the_session_and_an_absence_does_not(sqlite_home: Home) -> None:
    opens = 0

    def open_() -> protocol.Session:
        nonlocal opens
        opens += 1
        return sqlite_home.store().open()

    line = sessions.SessionThread(open_, "test")

    def fail(error: Exception, _: protocol.Session) -> None:
        raise error

    for error in (protocol.Lost("raced"), gone(), protocol.Lost("raced")):
        with pytest.raises(type(error)):
            await line.run(functools.partial(fail, error), PATIENCE)
    line.leave()

    assert opens == 2


async def test_an_answer_that_a_busy_loop_sees_too_late_still_counts(sqlite_home: Home) -> None:
    line = sessions.SessionThread(sqlite_home.store().open, "test")
    await line.run(lambda _: None, PATIENCE)
    answered = threading.Event()

    def answer(_: protocol.Session) -> int:
        answered.set()
        return 7

    async def stand_still() -> None:
        assert answered.wait(PATIENCE)
        time.sleep(0.3)  # noqa: ASYNC251 - a loop that stands still is what is tested

    async with asyncio.TaskGroup() as group:
        asked = group.create_task(line.run(answer, 0.1))
        group.create_task(stand_still())
    line.leave()

    assert asked.result() == 7


async def test_a_silent_owner_is_stood_in_for_a_limited_number_of_times(sqlite_home: Home) -> None:
    done: list[str] = []
    unasked = sessions.Unasked(lambda _: done.append("unasked"), after=0.01, again=0.01, most=3)
    line = sessions.SessionThread(sqlite_home.store().open, "test", unasked)

    for _ in range(2):
        done.clear()
        await line.run(lambda _: done.append("asked"), PATIENCE)
        await until(lambda: asyncio.sleep(0.01, len(done) >= 4))
        await asyncio.sleep(0.1)

        assert done == ["asked", *["unasked"] * 3]
    line.leave()


async def test_a_session_that_breaks_unasked_is_replaced_when_asked(sqlite_home: Home) -> None:
    opens, broke = 0, threading.Event()

    def open_() -> protocol.Session:
        nonlocal opens
        opens += 1
        return sqlite_home.store().open()

    def break_(_: protocol.Session) -> None:
        broke.set()
        raise gone()

    unasked = sessions.Unasked(break_, after=0.01, again=0.01, most=1)
    line = sessions.SessionThread(open_, "test", unasked)
    await line.run(lambda _: None, PATIENCE)
    await asyncio.to_thread(broke.wait, PATIENCE)
    await line.run(lambda _: None, PATIENCE)
    line.leave()

    assert opens == 2


async def test_what_failed_unasked_is_done_again_soon_with_another_session(
    sqlite_home: Home,
) -> None:
    """As where one commit of another process held the file for longer than a renewal waits."""
    opened: list[protocol.Session] = []
    done = threading.Event()

    def open_() -> protocol.Session:
        opened.append(sqlite_home.store().open())
        return opened[-1]

    def stumble(session: protocol.Session) -> None:
        if session is opened[0]:
            raise gone()
        done.set()

    unasked = sessions.Unasked(stumble, after=0.01, again=0.01, most=5)
    line = sessions.SessionThread(open_, "test", unasked)
    await line.run(lambda _: None, PATIENCE)

    assert await asyncio.to_thread(done.wait, PATIENCE)
    line.leave()


async def test_after_a_call_that_overran_a_silent_owner_is_stood_in_for_soon(
    sqlite_home: Home,
) -> None:
    """The renewal that was given up is the one that a lease cannot do without."""
    done, stuck = threading.Event(), threading.Event()
    unasked = sessions.Unasked(lambda _: done.set(), after=3600.0, again=0.01, most=1)
    line = sessions.SessionThread(sqlite_home.store().open, "test", unasked)
    await line.run(lambda _: None, PATIENCE)

    with pytest.raises(errors.Unavailable):
        await line.run(lambda _: stuck.wait(PATIENCE), 0.05)

    assert await asyncio.to_thread(done.wait, PATIENCE / 2)
    stuck.set()
    line.leave()
