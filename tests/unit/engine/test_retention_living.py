"""Old events of streams that live on leave by a file; state, views and duplicates stay right."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.engine import codec, projections, retention, service, visibility
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import Home, Setup, engine, name, state, tell, until

DAY = timedelta(days=1)
A = name("counter/a")


def _total(row: Any, event: visibility.EventView) -> Any:
    total = (row or {"total": 0})["total"] + event.data["number"]
    return {"total": total, "seq": event.seq}


def _restored(kept: visibility.SnapshotView) -> tuple[str, projections.Row]:
    total = json.loads(kept.state.data)["total"]
    return kept.stream, {"total": total, "seq": kept.seq}


TOTALS = projections.Projection(
    "totals", 1, lambda event: event.stream, projections.one_by_one(_total), _restored
)
CAST = Setup(perform=False, views=[TOTALS])


async def add(running: service.Engine, *numbers: int, stream: str = "counter/a") -> None:
    for number in numbers:
        await tell(running, stream, machines.Add(number))


async def caught_up(running: service.Engine) -> None:
    """On a shared server, open transactions of others hold the feed back for a moment."""

    async def so() -> bool:
        await running.projector.catch_up()
        views = await running.read(
            lambda s: visibility.streams(s, visibility.StreamFilter(machine="counter"))
        )
        kept = await rows(running)
        return all(kept.get(view.name, {}).get("seq") == view.version for view in views)

    await until(so)


async def rows(running: service.Engine) -> dict[str, Any]:
    return dict(await running.read(lambda s: projections.rows(s, "totals")))


async def seqs(running: service.Engine) -> list[int]:
    found = await running.read(lambda s: visibility.events(s, A))
    own = [event.seq for event in found]

    async def told() -> bool:
        # The feed stops behind the oldest transaction of the server, which other tests use too.
        fed = await running.read(lambda s: visibility.feed(s, visibility.Place()))
        return [event.seq for event in fed if event.stream == A] == own

    await until(told)
    return own


def older_than(wall: HandWoundClock, age: timedelta) -> retention.Age:
    return retention.Age(wall.now() - age, wall.now() - age)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_old_events_leave_and_the_stream_goes_on(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    file = tmp_path / "old.jsonl"
    async with engine(home.store(), wall, CAST).running() as running:
        await add(running, 1, 2)
        wall.advance(DAY)
        await add(running, 3)
        await caught_up(running)

        done = await running.trim(older_than(wall, DAY / 2), file)
        await add(running, 4)

        assert done == retention.Archived(1, 2, file)
        assert await state(running, "counter/a") == {"total": 10}
        assert await seqs(running) == [3, 4]
        view = await running.read(lambda s: visibility.stream(s, A))
        assert (view.kept_from, view.archived) == (3, "events before 3 are in the archive")
    head, first, second, snapshot = lines(file)
    assert (head["stream"], head["first"], head["ended_at"]) == ("counter/a", 1, None)
    assert [first["data"]["number"], second["data"]["number"]] == [1, 2]
    assert snapshot["snapshot"] == {"type": "Count", "version": 1, "data": {"total": 3}}
    assert home.sql("SELECT count(*) FROM events") == [(2,)]


@pytest.mark.parametrize("cuts", [(1,), (2, 4), (1, 2, 3, 5), (6,)])
async def test_a_projection_built_again_is_what_it_was(
    home: Home, wall: HandWoundClock, tmp_path: Path, cuts: tuple[int, ...]
) -> None:
    async with engine(home.store(), wall, CAST).running() as running:
        for number in range(1, 7):
            await add(running, number)
            await add(running, number * 10, stream="counter/b") if number < 3 else None
            if number in cuts:
                await caught_up(running)
                wall.advance(DAY)
                await running.trim(older_than(wall, DAY / 2), tmp_path / f"{number}.jsonl")
        await caught_up(running)
        before = await rows(running)

        await running.projector.rebuild("totals")
        await caught_up(running)

        assert await rows(running) == before
        assert before["counter/a"] == {"total": 21, "seq": 6}
        assert await seqs(running) == list(range(cuts[-1] + 1, 7))
    told = [lines(tmp_path / f"{number}.jsonl") for number in cuts]
    assert sum("type" in line for file in told for line in file) == cuts[-1] + min(cuts[-1], 2)


async def test_events_that_a_projection_has_not_read_stay(
    store: protocol.Store, wall: HandWoundClock, tmp_path: Path
) -> None:
    async with engine(store, wall, CAST).running() as running:
        await add(running, 1)
        await caught_up(running)
        await add(running, 2)
        wall.advance(DAY)

        done = await running.trim(older_than(wall, DAY / 2), tmp_path / "old.jsonl")

        assert done.streams == 0
        assert await seqs(running) == [1, 2]


async def test_a_projection_that_needs_every_event_keeps_them(
    store: protocol.Store, wall: HandWoundClock, tmp_path: Path
) -> None:
    whole = projections.Projection("whole", 1, TOTALS.key, TOTALS.fold)
    async with engine(store, wall, Setup(perform=False, views=[whole])).running() as running:
        with pytest.raises(errors.Rejected, match="a projection needs every event: whole"):
            await running.trim(older_than(wall, DAY), tmp_path / "old.jsonl")


async def test_a_crash_before_the_file_is_safe_deletes_nothing(
    store: protocol.Store,
    wall: HandWoundClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: Path) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(retention, "_sync_folder", broken)
    async with engine(store, wall, CAST).running() as running:
        await add(running, 1, 2)
        await caught_up(running)
        wall.advance(DAY)

        with pytest.raises(OSError, match="the disk is gone"):
            await running.trim(older_than(wall, DAY / 2), tmp_path / "old.jsonl")

        assert await seqs(running) == [1, 2]


async def test_a_crash_between_the_mark_and_the_deletion_shows_nothing_twice(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    steps = iter(range(9))

    def crash() -> None:
        # After the page that is exported and the mark.
        if next(steps) == 2:
            raise KeyboardInterrupt

    async with engine(home.store(), wall, CAST).running() as running:
        await add(running, 1, 2)
        await caught_up(running)
        wall.advance(DAY)
        knows, age = running._knowledge(), older_than(wall, DAY / 2)
        session = home.store().open()
        with pytest.raises(KeyboardInterrupt):
            retention.trim(session, knows, age, tmp_path / "1.jsonl", crash)

        await running.projector.rebuild("totals")

        assert await rows(running) == {"counter/a": {"total": 3, "seq": 2}}
        assert await seqs(running) == []
        assert home.sql("SELECT count(*) FROM events") == [(2,)]
        await add(running, 3)
        await caught_up(running)
        wall.advance(DAY)
        retention.trim(session, knows, older_than(wall, DAY / 2), tmp_path / "2.jsonl")
        session.close()
    assert home.sql("SELECT count(*) FROM events") == [(0,)]


async def test_a_stream_that_cannot_be_folded_stays_whole(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    async with engine(home.store(), wall, CAST).running() as running:
        await add(running, 1)
        await add(running, 1, stream="counter/b")
        await caught_up(running)
        home.sql("UPDATE events SET type = 'FromTheFuture' WHERE stream = "
                 "(SELECT id FROM streams WHERE name = 'counter/a')")  # fmt: skip
        wall.advance(DAY)

        done = await running.trim(older_than(wall, DAY / 2), tmp_path / "old.jsonl")

        assert (done.streams, await seqs(running)) == (1, [1])


async def test_a_duplicate_is_recognised_within_the_window_and_forgotten_after(
    store: protocol.Store, wall: HandWoundClock, tmp_path: Path
) -> None:
    async with engine(store, wall, CAST).running() as running:
        await tell(running, "counter/a", machines.Add(1), "once")
        await caught_up(running)
        wall.advance(DAY)
        forgiving = retention.Age(wall.now(), wall.now() - 2 * DAY)

        await running.trim(forgiving, tmp_path / "1.jsonl")
        within = await tell(running, "counter/a", machines.Add(1), "once")
        await running.trim(older_than(wall, DAY / 2), tmp_path / "2.jsonl")
        after = await tell(running, "counter/a", machines.Add(1), "once")

    assert (within.duplicate, within.first) == (True, 1)
    assert (after.duplicate, after.first) == (False, 2)


async def test_a_trimmed_stream_that_ended_is_archived_with_the_rest_of_it(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    async with engine(home.store(), wall, CAST).running() as running:
        await add(running, 60)
        await caught_up(running)
        wall.advance(DAY)
        await running.trim(older_than(wall, DAY / 2), tmp_path / "1.jsonl")
        await add(running, 40)
        later = wall.now() + DAY

        done = await running.write(lambda s: retention.archive(s, later, tmp_path / "2.jsonl"))

    head, rest = lines(tmp_path / "2.jsonl")
    assert (done.streams, head["first"], rest["seq"]) == (1, 2, 2)
    assert home.sql("SELECT count(*) FROM snapshots") == [(0,)]


async def test_two_runs_at_once_delete_once(
    home: Home, wall: HandWoundClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine(home.store(), wall, CAST).running() as running:
        await add(running, 1, 2)
        await caught_up(running)
        wall.advance(DAY)
        knows, age, rival = running._knowledge(), older_than(wall, DAY / 2), home.store().open()
        sync = retention._sync_folder

        def meanwhile(folder: Path) -> None:
            monkeypatch.setattr(retention, "_sync_folder", sync)
            retention.trim(rival, knows, age, tmp_path / "rival.jsonl")

        monkeypatch.setattr(retention, "_sync_folder", meanwhile)
        done = await running.trim(age, tmp_path / "old.jsonl")
        rival.close()
        kept = await running.read(lambda s: visibility.snapshots(s, 0))

    assert done.streams == 0
    assert [(one.seq, one.state) for one in kept] == [(2, codec.Encoded("Count", 1, '{"total":3}'))]
