"""The engine as the house sees it: it starts on its own schema only, reads, and is watched."""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairlead import bootstrap, errors, settings
from fairlead.engine import clock, messages, outbox, service, visibility, writer
from fairlead.engine.sample import depot, trip
from fairlead.engine.sample.messages import Arrive, DriveLeg, Order
from fairlead.engine.store import postgres, protocol, sqlite
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import PATIENCE, Home, Setup, engine, name, state, tell, until


async def test_an_engine_refuses_a_store_that_is_not_migrated(
    bare_home: Home, wall: HandWoundClock
) -> None:
    with pytest.raises(errors.Conflict, match="not migrated: 0001_first") as refused:
        async with engine(bare_home.store(), wall).running():
            pytest.fail("it must not run")

    assert refused.value.hint == "run fairlead store migrate"


async def test_an_engine_refuses_a_store_of_a_newer_program(
    home: Home, wall: HandWoundClock
) -> None:
    home.sql("INSERT INTO migrations (name) VALUES ('9999_later')")

    with pytest.raises(errors.Conflict, match="newer"):
        async with engine(home.store(), wall).running():
            pytest.fail("it must not run")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_an_engine_without_a_store_says_where_it_looked(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("")
    store: protocol.Store = (
        sqlite.SqliteStore(tmp_path / "file" / "fairlead.db")
        if kind == "sqlite"
        else postgres.PostgresStore("postgresql://me:secret@127.0.0.1:1/shop")
    )

    with pytest.raises(errors.Unavailable) as refused:
        async with engine(store).running():
            pytest.fail("it must not run")

    assert ("fairlead.db" if kind == "sqlite" else "127.0.0.1:1/shop") in refused.value.message
    assert "secret" not in refused.value.message


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "fairlead.db"
    file.write_text("these are my notes\n" * 100)

    with pytest.raises(errors.FairleadError, match="not a database"):
        sqlite.SqliteStore(file).migrate()

    assert file.read_text().startswith("these are my notes")


async def test_the_samples_run_to_their_end(store: protocol.Store, wall: HandWoundClock) -> None:
    async def drive(effect: DriveLeg, _: outbox.EffectContext) -> Arrive:
        return Arrive(effect.leg)

    cast = Setup({DriveLeg: outbox.Handler(drive)}, known=(depot.DEPOT, trip.TRIP))
    async with engine(store, wall, cast).running() as running:
        await tell(running, "depot/a", Order("a", trips=5, legs=3, at_once=2))
        with running.watch() as signal:
            async with asyncio.timeout(PATIENCE):
                while (await state(running, "depot/a")).get("trips") != 5:
                    await signal.wait()
                    signal.clear()
        every = await running.read(
            lambda s: visibility.streams(s, visibility.StreamFilter(machine="trip", ended=True))
        )

    assert len(every) == 5
    assert {view.version for view in every} == {5}


async def test_a_watcher_hears_commits_until_it_leaves(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Setup(perform=False)).running() as running:
        with running.watch() as signal:
            await tell(running, "counter/a", machines.Add(0))
            assert not signal.is_set()
            await tell(running, "counter/a", machines.Add(1))
            assert signal.is_set()
            signal.clear()
        await tell(running, "counter/a", machines.Add(1))

    assert not signal.is_set()


async def test_a_wait_ends_with_the_signal_or_the_time(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, Setup(perform=False)).running() as running:
        with running.watch() as signal:
            waiting = asyncio.create_task(running.wait(signal, timedelta(minutes=1)))
            await asyncio.sleep(0)
            wall.advance(timedelta(minutes=1))
            await asyncio.wait_for(waiting, PATIENCE)
            signal.set()
            await asyncio.wait_for(running.wait(signal, timedelta(minutes=1)), PATIENCE)

            assert not signal.is_set()


async def test_work_left_by_one_process_is_told_to_another_on_postgres(
    postgres_home: Home, wall: HandWoundClock
) -> None:
    """No time passes here, so no poll comes: only the notice can have woken the worker."""
    done = asyncio.Event()

    async def carry(effect: machines.Carry, _: outbox.EffectContext) -> object:
        done.set()
        return machines.Unload(effect.piece)

    worker = Setup({machines.Carry: outbox.Handler(carry)})
    async with (
        engine(postgres_home.store(), wall, worker).running() as running,
        engine(postgres_home.store(), wall, Setup(perform=False)).running() as submitter,
    ):
        # The server has other tests' databases, too.
        listening = (
            "SELECT 1 FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN%' AND datname = current_database()"
        )

        async def hears() -> bool:
            return bool(await asyncio.to_thread(postgres_home.sql, listening))

        await until(hears)
        await tell(submitter, "fan/a", machines.Load(("x",)))
        await asyncio.wait_for(done.wait(), PATIENCE)
        assert running.counts.troubles == 0


async def test_reading_what_is_not_there_says_so(store: protocol.Store) -> None:
    async with engine(store, cast=Setup(perform=False)).running() as running:
        with pytest.raises(errors.NotFound, match="no such stream: counter/none"):
            await running.read(lambda s: visibility.stream(s, name("counter/none")))


async def test_streams_are_listed_newest_first_in_pages_by_machine_and_end(
    store: protocol.Store,
) -> None:
    async with engine(store, cast=Setup(perform=False)).running() as running:
        for number in range(3):
            await tell(running, f"counter/{number}", machines.Add(1 + 99 * (number == 1)))
        await tell(running, "bell/a", machines.Silence())

        async def listed(**which: object) -> list[str]:
            chosen = visibility.StreamFilter(**which)  # type: ignore[arg-type]  # short for the tests below
            found = await running.read(lambda s: visibility.streams(s, chosen))
            return [view.name for view in found]

        every = await running.read(lambda s: visibility.streams(s, visibility.StreamFilter()))
        assert await listed() == ["bell/a", "counter/2", "counter/1", "counter/0"]
        assert await listed(machine="counter", limit=1) == ["counter/2"]
        assert await listed(before=every[1].number) == ["counter/1", "counter/0"]
        assert await listed(ended=True) == ["counter/1"]
        assert "counter/1" not in await listed(ended=False)


@pytest.mark.parametrize("text", ["", "1", "1.2", "1.2.x", "1.2.3.4", "-1.2.3", "1.2.٣x"])
def test_an_effect_id_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="not an effect id"):
        visibility.parse_effect_id(text)


def test_ids_and_places_come_back_from_their_text() -> None:
    assert visibility.parse_effect_id("12.3.0") == messages.EffectKey(12, 3, 0)
    assert visibility.parse_place(str(visibility.Place(7, 9))) == visibility.Place(7, 9)
    with pytest.raises(errors.Rejected):
        visibility.parse_place("7")


def test_a_damaged_row_is_shown_as_what_it_is() -> None:
    assert visibility.plain("{") == {"unreadable": "{"}


def test_settings_choose_the_store_and_tune_the_engine(tmp_path: Path) -> None:
    chosen = settings.from_environment(
        {"FAIRLEAD_STATE_DIR": str(tmp_path), "FAIRLEAD_IN_FLIGHT": "3"}
    )
    shared = settings.StoreSettings(database_url="postgresql://127.0.0.1/x")

    assert isinstance(bootstrap.installation().store(chosen.store), sqlite.SqliteStore)
    assert isinstance(bootstrap.installation().store(shared), postgres.PostgresStore)
    assert chosen.store.database_file == tmp_path / "fairlead.db"
    kept = bootstrap.installation().store(chosen.store)
    assert isinstance(bootstrap.installation().engine(chosen, kept), service.Engine)


async def test_the_system_clock_takes_the_stores_time(store: protocol.Store) -> None:
    wall = clock.SystemClock()
    wall._zero += timedelta(days=9)

    async with engine(store, wall, Setup(perform=False)).running():
        assert abs(wall.now() - datetime.now(UTC)) < timedelta(minutes=1)


async def test_the_first_of_a_batch_waits_for_company_where_told_to(
    home: Home, wall: HandWoundClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = service.Tuning(gather=timedelta(seconds=1))
    parts = service.Parts(home.store(), Setup().known, {}, (), wall, tuning)
    waited, company = list[float](), threading.Event()

    def wait(seconds: float) -> None:
        waited.append(seconds)
        assert company.wait(PATIENCE)

    clockwork = SimpleNamespace(sleep=wait, monotonic=time.monotonic)
    monkeypatch.setattr(writer, "time", clockwork)

    async with service.Engine(parts, perform=False).running() as together:
        first = asyncio.create_task(tell(together, "counter/a", machines.Add(1)))
        await until(lambda: asyncio.sleep(0.01, bool(waited)))
        second = asyncio.create_task(tell(together, "counter/b", machines.Add(1)))
        await asyncio.sleep(0)
        company.set()
        await asyncio.gather(first, second)

    assert together.counts.commits == 1
    assert set(waited) == {1.0}
