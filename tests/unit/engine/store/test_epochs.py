"""Idempotency keys of two lines of a store's history never meet."""

import asyncio
import contextlib
import os
import sqlite3
from pathlib import Path

import psycopg
import pytest

from fairlead import errors
from fairlead.clients.postgres.server import identity
from fairlead.clients.postgres.server.running import PostgresServer
from fairlead.engine.store import epochs, postgres, protocol
from fairlead.engine.testing import HandWoundClock
from tests import ha, machines
from tests.engines import Home, Setup, engine, handlers, state, tell, until
from tests.outside_world import OutsideWorld
from tools.servers import pgbouncer


async def performed(home: Home, wall: HandWoundClock, *pieces: str) -> list[str]:
    """The keys under which these are carried."""
    outside = OutsideWorld()
    async with engine(home.store(), wall, Setup(handlers(outside.carry))).running() as running:
        if pieces:
            await tell(running, "fan/a", machines.Load(pieces))

        async def idle() -> bool:
            return not (await state(running, "fan/a"))["waiting"]

        await until(idle, wall)
    return [context.idempotency_key for context in outside.contexts]


def test_a_store_stays_in_its_epoch_as_long_as_it_stays_in_its_place(
    session: protocol.Session,
) -> None:
    first = epochs.current(session, "here")

    assert first == ""
    assert epochs.current(session, "here") == first
    moved = epochs.current(session, "there")
    assert len(moved) == 8
    assert epochs.current(session, "there") == moved
    # Back where it was, but not when it was: a backup may have been brought back twice.
    assert epochs.current(session, "here") not in (first, moved)


def test_a_store_that_cannot_say_where_it_is_keeps_its_epoch(session: protocol.Session) -> None:
    assert epochs.current(session, epochs.UNKNOWN) == ""
    by_hand = epochs.renew(session)
    assert epochs.current(session, epochs.UNKNOWN) == by_hand
    assert epochs.current(session, "here") == by_hand


def test_a_person_starts_a_new_epoch(session: protocol.Session) -> None:
    before = epochs.current(session, "here")

    renewed = epochs.renew(session)

    assert renewed != before
    assert epochs.current(session, "here") == renewed


async def test_after_a_new_epoch_new_effects_have_new_keys_and_old_ones_keep_theirs(
    home: Home, wall: HandWoundClock
) -> None:
    async with engine(home.store(), wall, Setup(perform=False)).running() as before:
        await tell(before, "fan/a", machines.Load(("old",)))
    session = home.store().open()
    epoch = epochs.renew(session)
    session.close()

    keys = await performed(home, wall, "new")

    assert sorted(epoch in key for key in keys) == [False, True]
    assert home.sql("SELECT count(*) FROM outbox") == [(0,)]


async def test_attempts_of_one_effect_have_one_key_also_across_epochs(
    home: Home, wall: HandWoundClock
) -> None:
    outside = OutsideWorld([OSError("no road")])
    async with engine(home.store(), wall, Setup(handlers(outside.carry))).running() as running:
        await tell(running, "fan/a", machines.Load(("x",)))
        await until(lambda: asyncio.sleep(0.01, len(outside.asked) == 1))
    session = home.store().open()
    epochs.renew(session)
    session.close()

    (again,) = await performed(home, wall)

    assert again == outside.contexts[0].idempotency_key


async def test_a_file_that_another_was_moved_over_is_noticed(
    sqlite_home: Home, wall: HandWoundClock
) -> None:
    """The same event numbers come again for other data."""
    file = Path(sqlite_home.address)
    await performed(sqlite_home, wall, "a")
    backup = file.with_suffix(".backup")
    with sqlite3.connect(file) as connection:
        connection.execute(f"VACUUM INTO '{backup}'")
    connection.close()
    (lost,) = await performed(sqlite_home, wall, "lost")
    backup.replace(file)

    (other,) = await performed(sqlite_home, wall, "other")

    assert other != lost
    assert other.rpartition("-")[0] != lost.rpartition("-")[0]


async def test_a_standby_that_leads_without_the_last_commits_is_noticed(
    wall: HandWoundClock,
) -> None:
    """As after a failover with asynchronous replication: it counts on from what it had."""
    with PostgresServer() as server:
        home = Home("postgres", server.create_database("shop"))
        home.store().migrate()
        await performed(home, wall, "a")
        standby = follower(server)
        (lost,) = await performed(home, wall, "lost")
        lead(server, standby)

        (other,) = await performed(home, wall, "other")

    assert other != lost
    assert other.rpartition("-")[0] != lost.rpartition("-")[0]


@pytest.mark.ha
def test_a_session_that_a_pooler_keeps_through_a_failover_begins_a_new_epoch(
    tmp_path: Path,
) -> None:
    """In transaction mode its clients hear nothing of the server's end."""
    ha.needed(pgbouncer.find)
    with (
        PostgresServer() as server,
        pgbouncer.PgBouncer(tmp_path / "pooler", server.port, "transaction") as pooler,
    ):
        server.create_database("shop")
        store = postgres.PostgresStore(pooler.url("shop"))
        store.migrate()
        with contextlib.closing(store.open()) as session:
            assert epoch_of_a_batch(session) == ""
            lead(server, follower(server))

            # Decided anew, as any batch that lost a race.
            with pytest.raises(protocol.Lost):
                epoch_of_a_batch(session)
            later = epoch_of_a_batch(session)

            assert later == epoch_of_a_batch(session) != ""


def epoch_of_a_batch(session: protocol.Session) -> str:
    with session.transaction() as transaction:
        transaction.load(protocol.Needed([]))
        return transaction.epoch


def test_a_server_that_only_follows_is_waited_for() -> None:
    """As one that a proxy still takes for the leader: nothing is refused for good."""
    with PostgresServer() as server:
        store = postgres.PostgresStore(server.create_database("shop"))
        store.migrate()
        follow(server, follower(server))

        with contextlib.closing(store.open()) as session, pytest.raises(errors.Unavailable):
            epoch_of_a_batch(session)


def follower(server: PostgresServer) -> Path:
    """The data of a standby that has all up to now, and hears of nothing more."""
    data = server.folder / "socket" / "standby"  # where whoever runs the server may write
    made = identity.run_as(
        identity.unprivileged_identity(),
        [
            *(server._programs / "pg_basebackup", "--pgdata", data, "--checkpoint=fast"),
            *("--no-sync", "--dbname", server.socket_url),
        ],
    )
    assert made.returncode == 0, made.stderr
    (data / "standby.signal").touch()
    return data


def follow(server: PostgresServer, standby: Path) -> None:
    """In the place of the leader, which is dead."""
    data = server.folder / "data"
    data.rename(server.folder / "dead")
    standby.rename(data)
    server.restart("immediate")


def lead(server: PostgresServer, standby: Path) -> None:
    follow(server, standby)
    with psycopg.connect(server.databases.admin_url, autocommit=True) as connection:
        assert connection.execute("SELECT pg_promote()").fetchone() == (True,)


def test_a_server_says_which_line_of_which_history_it_is(postgres_home: Home) -> None:
    session = postgres.PostgresStore(postgres_home.address).open()
    with psycopg.connect(postgres_home.address, autocommit=True) as connection:
        row = connection.execute("SELECT system_identifier FROM pg_control_system()").fetchone()
    assert row is not None

    place = session._place()
    session.close()

    system, line, database = place.split(".")
    assert (system, line) == (str(row[0]), "00000001")
    assert database.isdigit()


def test_a_server_that_hides_its_place_is_no_trouble(
    postgres_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgres._QUERIES, "where_we_are", "SELECT no_such_function()")
    session = postgres.PostgresStore(postgres_home.address).open()

    with session.transaction() as transaction:
        assert transaction.epoch == ""
    session.close()


def test_a_user_without_special_rights_may_ask(postgres_home: Home) -> None:
    with psycopg.connect(postgres_home.address, autocommit=True) as connection:
        name = f"plain_{os.getpid()}"
        connection.execute(f"CREATE ROLE {name}".encode())
        try:
            connection.execute(f"SET ROLE {name}".encode())
            row = connection.execute(postgres._QUERIES["where_we_are"].encode()).fetchone()
        finally:
            connection.execute("RESET ROLE")
            connection.execute(f"DROP ROLE {name}".encode())

    assert row is not None
