"""Old streams leave the store by a file: whole, once, and only when they are really over."""

import errno
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.engine import retention, service
from fairlead.engine.store import protocol
from fairlead.engine.testing import START, HandWoundClock
from tests import machines, parcels
from tests.engines import Home, Setup, engine, events, state, tell

LATER = START + timedelta(days=1)
LOOKING = Setup(perform=False)


async def fill(running: service.Engine) -> None:
    await tell(running, "counter/done", machines.Add(60), "first")
    await tell(running, "counter/done", machines.Add(40))
    await tell(running, "counter/open", machines.Add(1))


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_ended_streams_are_written_to_a_file_and_deleted(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    file = tmp_path / "old.jsonl"
    async with engine(home.store(), wall, LOOKING).running() as running:
        await fill(running)

        moved = await running.write(lambda s: retention.archive(s, LATER, file))

        assert moved == retention.Archived(1, 2, file)
        with pytest.raises(errors.NotFound):
            await state(running, "counter/done")
        assert await state(running, "counter/open") == {"total": 1}
    head, first, second = lines(file)
    assert (head["stream"], head["version"]) == ("counter/done", 2)
    assert head["state"] == {"type": "Count", "version": 1, "data": {"total": 100}}
    assert (first["seq"], first["data"]["number"], first["cause"]) == (1, 60, "first")
    assert (second["seq"], second["data"]["number"]) == (2, 40)
    assert home.sql("SELECT count(*) FROM commands") == [(1,)]
    assert not file.with_name("old.jsonl.partial").exists()


async def test_a_full_disk_deletes_nothing_and_is_not_filled_further(
    home: Home, wall: HandWoundClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    async with engine(home.store(), wall, LOOKING).running() as running:
        await fill(running)
        folder = tmp_path / "archive"
        folder.mkdir()
        monkeypatch.setattr(os, "fsync", full)

        with pytest.raises(OSError, match="no space left"):
            await running.write(lambda s: retention.archive(s, LATER, folder / "old.jsonl"))

        assert list(folder.iterdir()) == []
        assert await state(running, "counter/done") == {"total": 100}


async def test_what_a_stream_was_found_by_leaves_with_it(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    file = tmp_path / "old.jsonl"
    cast = Setup(perform=False, known=(parcels.PARCEL,))
    async with engine(home.store(), wall, cast).running() as running:
        for name in ("parcel/done", "parcel/open"):
            await tell(running, name, parcels.Write(parcels.Parcel(city=name)))
        await tell(running, "parcel/done", parcels.Deliver())

        await running.write(lambda s: retention.archive(s, LATER, file))

    assert home.sql("SELECT value FROM attributes") == [("parcel/open",)]


async def test_streams_that_ended_too_lately_stay_and_leave_no_file(
    store: protocol.Store, wall: HandWoundClock, tmp_path: Path
) -> None:
    file = tmp_path / "old.jsonl"
    async with engine(store, wall, LOOKING).running() as running:
        await fill(running)

        moved = await running.write(lambda s: retention.archive(s, START, file))

        assert moved == retention.Archived(0, 0, None)
        assert await state(running, "counter/done") == {"total": 100}
    assert not file.exists()


async def test_ids_of_commands_that_found_no_stream_go_by_their_age(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    async with engine(home.store(), wall, LOOKING).running() as running:
        await tell(running, "counter/unborn", machines.Add(0), "old")
        wall.advance(timedelta(days=2))
        await tell(running, "counter/unborn", machines.Add(0), "young")

        await running.write(lambda s: retention.archive(s, LATER, tmp_path / "old.jsonl"))

    assert home.sql("SELECT id FROM commands") == [("young",)]


async def test_a_file_that_exists_is_never_written_over(
    store: protocol.Store, wall: HandWoundClock, tmp_path: Path
) -> None:
    file = tmp_path / "old.jsonl"
    file.write_text("precious\n")

    async with engine(store, wall, LOOKING).running() as running:
        await fill(running)
        with pytest.raises(errors.Conflict, match="the archive exists"):
            await running.write(lambda s: retention.archive(s, LATER, file))

        assert len(await events(running, "counter/done")) == 2
    assert file.read_text() == "precious\n"


async def test_a_stream_that_moves_while_it_is_archived_stays(
    home: Home, wall: HandWoundClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = retention._sync_folder

    def meanwhile(folder: Path) -> None:
        home.sql("UPDATE streams SET version = 3 WHERE name = 'counter/done'")
        sync(folder)

    monkeypatch.setattr(retention, "_sync_folder", meanwhile)
    async with engine(home.store(), wall, LOOKING).running() as running:
        await fill(running)

        moved = await running.write(lambda s: retention.archive(s, LATER, tmp_path / "old.jsonl"))

        assert moved.streams == 0
        assert len(await events(running, "counter/done")) == 2


@pytest.mark.parametrize("left", ["effect", "timer"])
async def test_a_stream_that_still_waits_for_something_stays(
    home: Home, wall: HandWoundClock, tmp_path: Path, left: str
) -> None:
    async with engine(home.store(), wall, LOOKING).running() as running:
        await fill(running)
        number = home.sql("SELECT id FROM streams WHERE name = 'counter/done'")[0][0]
        home.sql(
            f"INSERT INTO outbox (stream, seq, n, type, version, data, in_order, due_at) "  # noqa: S608 - our own words
            f"VALUES ({number}, 1, 0, 'Nothing', 1, '{{}}', {_false(home)}, 0)"
            if left == "effect"
            else f"INSERT INTO timers (stream, name, seq, due_at, type, version, data) "  # noqa: S608 - our own words
            f"VALUES ({number}, 'bell', 1, 0, 'Add', 1, '{{}}')"
        )

        moved = await running.write(lambda s: retention.archive(s, LATER, tmp_path / "old.jsonl"))

    assert moved.streams == 0


async def test_many_streams_are_read_in_pages(
    home: Home, wall: HandWoundClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_PAGE", 2)
    file = tmp_path / "old.jsonl"
    async with engine(home.store(), wall, LOOKING).running() as running:
        for number in range(5):
            await tell(running, f"counter/{number}", machines.Add(100))

        moved = await running.write(lambda s: retention.archive(s, LATER, file))

    assert (moved.streams, moved.events) == (5, 5)
    assert len({line["stream"] for line in lines(file) if "stream" in line}) == 5
    assert home.sql("SELECT count(*) FROM events") == [(0,)]


async def test_a_stream_begun_again_after_it_was_archived_gets_a_number_of_its_own(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    """Idempotency keys are made of it: the same number would name an old effect again."""
    async with engine(home.store(), wall, LOOKING).running() as running:
        await fill(running)
        before = home.sql("SELECT id FROM streams WHERE name = 'counter/done'")
        await running.write(lambda s: retention.archive(s, LATER, tmp_path / "old.jsonl"))

        receipt = await tell(running, "counter/done", machines.Add(1), "first")

        assert (receipt.first, receipt.duplicate) == (1, False)
    assert home.sql("SELECT id FROM streams WHERE name = 'counter/done'") != before


def _false(home: Home) -> str:
    return "0" if home.kind == "sqlite" else "false"
