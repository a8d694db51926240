"""Views are folds of the feed: rebuilt from zero they are the same, and never count twice."""

import asyncio
from typing import Any

import pytest

from fairlead.engine import projections, service, visibility
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import PATIENCE, Home, Setup, engine, tell, until
from tests.tampered import TamperedStore, Tampering


def count_events(row: Any, event: visibility.EventView) -> Any:
    seen = row or {"events": 0, "sum": 0}
    return {"events": seen["events"] + 1, "sum": seen["sum"] + event.data.get("number", 0)}


def view(version: int = 1, fold: Any = count_events) -> projections.Projection:
    return projections.Projection(
        "totals",
        version,
        lambda event: event.stream if "counter" in event.stream else None,
        projections.one_by_one(fold),
    )


async def rows(running: service.Engine) -> dict[str, Any]:
    return dict(await running.read(lambda s: projections.rows(s, "totals")))


async def shows(running: service.Engine, expected: dict[str, Any]) -> None:
    """On a shared server, open transactions of others hold the feed back for a moment."""

    async def so() -> bool:
        await running.projector.catch_up()
        return await rows(running) == expected

    await until(so)


async def fill(running: service.Engine) -> dict[str, Any]:
    for number in (1, 2, 3):
        await tell(running, "counter/a", machines.Add(number))
    await tell(running, "counter/b", machines.Add(5))
    await tell(running, "fan/a", machines.Load(()))
    return {"counter/a": {"events": 3, "sum": 6}, "counter/b": {"events": 1, "sum": 5}}


async def test_a_view_follows_the_events_it_asks_for(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Setup(views=[view()])).running() as running:
        expected = await fill(running)

        await shows(running, expected)


async def test_a_view_rebuilt_from_zero_equals_the_one_that_followed(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Setup(views=[view()])).running() as running:
        expected = await fill(running)
        await shows(running, expected)
        await running.write(lambda s: s.rows("clear_projected", name="totals"))

        await running.projector.rebuild("totals")

        await shows(running, expected)


async def test_a_long_feed_is_read_in_pieces(
    store: protocol.Store, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projections, "_CHUNK", 2)

    async with engine(store, wall, Setup(perform=False, views=[view()])).running() as running:
        expected = await fill(running)

        await shows(running, expected)


async def test_a_new_version_of_the_fold_builds_the_rows_again(
    home: Home, wall: HandWoundClock
) -> None:
    async with engine(home.store(), wall, Setup(views=[view()])).running() as running:
        await shows(running, await fill(running))
    shorter = view(2, lambda row, event: {"last": event.seq})

    async with engine(home.store(), wall, Setup(views=[shorter])).running() as running:
        await shows(running, {"counter/a": {"last": 3}, "counter/b": {"last": 1}})


async def test_an_older_program_leaves_the_rows_of_a_newer_one_alone(
    home: Home, wall: HandWoundClock
) -> None:
    """During an upgrade both run: each starting over would undo the other without end."""
    newer = view(2, lambda row, event: {"last": event.seq})
    async with engine(home.store(), wall, Setup(perform=False, views=[newer])).running() as running:
        await fill(running)
        before = {"counter/a": {"last": 3}, "counter/b": {"last": 1}}
        await shows(running, before)

    async with engine(home.store(), wall, Setup(perform=False, views=[view(1)])).running() as old:
        await old.projector.catch_up()

        assert await rows(old) == before


async def test_a_fold_that_gives_nothing_drops_the_row(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    until_two = view(fold=lambda row, event: {"seq": event.seq} if event.seq < 2 else None)

    async with engine(store, wall, Setup(perform=False, views=[until_two])).running() as running:
        await fill(running)

        await shows(running, {"counter/b": {"seq": 1}})


async def test_two_projectors_on_one_store_count_no_event_twice(
    home: Home, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projections, "_CHUNK", 1)
    cast = Setup(perform=False, views=[view()])

    async with (
        engine(home.store(), wall, cast).running() as one,
        engine(home.store(), wall, cast).running() as two,
    ):
        expected = await fill(one)
        await asyncio.gather(*(shows(each, expected) for each in (one, two, one, two)))


async def test_a_bookmark_that_another_moved_meanwhile_is_read_again(
    home: Home, wall: HandWoundClock
) -> None:
    """Read, then the other projector commits, then ours: it must lose, and look again."""
    line = Tampering()
    cast = Setup(perform=False, views=[view()])
    loop = asyncio.get_running_loop()

    async with (
        engine(home.store(), wall, cast).running() as quick,
        engine(TamperedStore(home.store(), line), wall, cast).running() as slow,
    ):
        expected = await fill(quick)

        def overtake(call: str, _: Any) -> None:
            if call == "advance_projection" and line.calls[call] == 1:
                asyncio.run_coroutine_threadsafe(quick.projector.catch_up(), loop).result(PATIENCE)

        line.before = overtake
        await shows(slow, expected)


async def test_a_view_that_another_began_meanwhile_is_not_begun_again(
    home: Home, wall: HandWoundClock
) -> None:
    """One asleep between its look and its start would wake and clear what the other folded."""
    line = Tampering()
    cast = Setup(perform=False, views=[view()])
    loop = asyncio.get_running_loop()
    done: list[str] = []

    async with (
        engine(home.store(), wall, cast).running() as quick,
        engine(TamperedStore(home.store(), line), wall, cast).running() as slow,
    ):
        expected = await fill(quick)

        def overtake(call: str, _: Any) -> None:
            if call == "start_projection":
                asyncio.run_coroutine_threadsafe(shows(quick, expected), loop).result(PATIENCE)

        line.before, line.after = overtake, lambda call, _: done.append(call)
        await shows(slow, expected)

    assert "start_projection" not in done


async def test_a_fold_that_fails_stops_its_own_view_only(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    broken = projections.Projection("broken", 1, lambda event: event.stream, lambda *_: 1 / 0)  # type: ignore[arg-type]  # the point of the test

    async with engine(store, wall, Setup(views=[broken, view()])).running() as running:
        await fill(running)

        async def followed() -> bool:
            return len(await rows(running)) == 2

        await until(followed, wall)


async def test_rows_are_listed_in_pages(store: protocol.Store, wall: HandWoundClock) -> None:
    async with engine(store, wall, Setup(views=[view()], perform=False)).running() as running:
        await shows(running, await fill(running))
        first = await running.read(lambda s: projections.rows(s, "totals", limit=1))
        second = await running.read(lambda s: projections.rows(s, "totals", after=first[0][0]))

    assert [key for key, _ in (*first, *second)] == ["counter/a", "counter/b"]
