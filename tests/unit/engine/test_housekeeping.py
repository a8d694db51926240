"""A worker archives by itself: in its turn, in small steps, and never at the cost of its work."""

import threading
from datetime import timedelta
from pathlib import Path

from fairlead.engine import batch, housekeeping, retention, service
from fairlead.engine import machine as machines_
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import Home, Setup, engine, state, tell, until

DAY = timedelta(days=1)
KNOWS = retention.Knowledge(batch.MachineRegistry(machines_.Machines(machines.ALL)), ())


def keeper(store: protocol.Store, wall: HandWoundClock, folder: Path) -> housekeeping.Housekeeper:
    policy = housekeeping.Policy(DAY, DAY, folder)
    return housekeeping.Housekeeper(store, KNOWS, wall, policy)


def kinds(folder: Path) -> list[str]:
    return sorted(file.name.partition("-")[0] for file in folder.iterdir())


async def test_a_turn_archives_ended_streams_old_events_and_command_ids(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    async with engine(home.store(), wall, Setup(perform=False)).running() as running:
        await tell(running, "counter/done", machines.Add(100))
        await tell(running, "counter/open", machines.Add(1))
        wall.advance(2 * DAY)
        await tell(running, "counter/open", machines.Add(1))

        await keeper(home.store(), wall, folder).turn()

        assert await state(running, "counter/open") == {"total": 2}
    assert kinds(folder) == ["events", "streams"]
    assert home.sql("SELECT name, kept_from FROM streams") == [("counter/open", 2)]
    assert home.sql("SELECT count(*) FROM events") == [(1,)]
    assert home.sql("SELECT count(*) FROM commands") == [(1,)]


async def test_of_several_workers_one_takes_the_turn(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    async with engine(home.store(), wall, Setup(perform=False)).running() as running:
        await keeper(home.store(), wall, tmp_path / "first").turn()
        await tell(running, "counter/open", machines.Add(1))
        wall.advance(timedelta(minutes=59))
        await keeper(home.store(), wall, tmp_path / "early").turn()
        wall.advance(2 * DAY)
        await keeper(home.store(), wall, tmp_path / "later").turn()

    assert not (tmp_path / "early").exists()
    assert kinds(tmp_path / "later") == ["events"]


async def test_a_folder_that_cannot_be_written_does_not_end_the_worker(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    blocked = tmp_path / "archive"
    blocked.write_text("not a folder")
    policy = housekeeping.Policy(DAY, DAY, blocked)
    parts = service.Parts(home.store(), machines.ALL, wall=wall, retention=policy)

    async with service.Engine(parts).running() as running:

        async def took_its_turn() -> bool:
            return bool(home.sql("SELECT 1 FROM facts WHERE name = 'retention'"))

        await until(took_its_turn)
        await tell(running, "counter/open", machines.Add(1))

        assert await state(running, "counter/open") == {"total": 1}


async def test_a_worker_that_ends_leaves_the_rest_to_the_next_turn(
    home: Home, wall: HandWoundClock, tmp_path: Path
) -> None:
    async with engine(home.store(), wall, Setup(perform=False)).running() as running:
        await tell(running, "counter/done", machines.Add(100))
        wall.advance(2 * DAY)
        working = keeper(home.store(), wall, tmp_path / "archive")
        stopping = threading.Event()
        stopping.set()

        working._work(stopping)

        assert await state(running, "counter/done") == {"total": 100}
    assert list((tmp_path / "archive").iterdir()) == []
