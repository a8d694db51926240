"""Time in rows is whole milliseconds, never before the moment that was asked for."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.engine import clock
from fairlead.engine.testing import START, HandWoundClock

MOMENTS = st.datetimes(
    min_value=datetime(1970, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    timezones=st.just(UTC),
)


@given(st.integers(min_value=0, max_value=7_258_118_400_000))
@example(1001)  # 1.001 s times 1000 is a little less than 1001 in floating point
def test_milliseconds_come_back_as_they_went(millis: int) -> None:
    assert clock.to_millis(clock.from_millis(millis)) == millis


@given(MOMENTS)
def test_a_moment_is_kept_to_the_millisecond_it_lies_in(moment: datetime) -> None:
    kept = clock.from_millis(clock.to_millis(moment))

    assert timedelta(0) <= moment - kept < timedelta(milliseconds=1)


@given(MOMENTS)
def test_a_due_time_is_never_kept_too_early(moment: datetime) -> None:
    kept = clock.from_millis(clock.to_millis_due(moment))

    assert timedelta(0) <= kept - moment < timedelta(milliseconds=1)


def test_another_time_zone_is_the_same_moment() -> None:
    there = START.astimezone(timezone(timedelta(hours=5, minutes=30)))

    assert clock.to_millis(there) == clock.to_millis(START)


def test_the_system_clock_follows_the_stores() -> None:
    wall = clock.SystemClock()
    ahead = timedelta(hours=3)

    wall.follow(datetime.now(UTC) + ahead, wall.steady())

    assert abs(wall.now() - datetime.now(UTC) - ahead) < timedelta(seconds=5)


async def test_the_system_clock_returns_at_once_when_the_time_has_come_or_the_signal_is_set() -> (
    None
):
    wall, signal = clock.SystemClock(), asyncio.Event()

    await wall.wait(signal, wall.now() - timedelta(seconds=1))
    signal.set()
    await wall.wait(signal, wall.now() + timedelta(days=1))


async def test_the_system_clock_is_woken_by_the_signal() -> None:
    wall, signal = clock.SystemClock(), asyncio.Event()
    waiting = asyncio.create_task(wall.wait(signal, wall.now() + timedelta(days=1)))
    await asyncio.sleep(0)

    signal.set()

    await asyncio.wait_for(waiting, 60)


async def test_the_system_clock_waits_no_longer_than_asked() -> None:
    wall, signal = clock.SystemClock(), asyncio.Event()

    await asyncio.wait_for(wall.wait(signal, wall.now() + timedelta(milliseconds=5)), 60)

    assert not signal.is_set()


@pytest.mark.parametrize("way", ["time", "signal"])
async def test_the_hand_wound_clock_waits_for_time_or_signal(way: str) -> None:
    wall, signal = HandWoundClock(), asyncio.Event()
    waiting = asyncio.create_task(wall.wait(signal, START + timedelta(minutes=1)))
    await asyncio.sleep(0)
    wall.advance(timedelta(seconds=59))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()

    if way == "time":
        wall.advance(timedelta(seconds=1))
    else:
        signal.set()

    await asyncio.wait_for(waiting, 60)
