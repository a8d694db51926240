"""PostgreSQL behind pgbouncer: what a mode cannot do is done another way, without being told."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import psycopg
import pytest

from fairlead.engine.store import postgres, protocol
from tests import ha
from tests.contract.test_store import effect, event, stream, write
from tests.engines import PATIENCE, fed
from tools.servers import pgbouncer

pytestmark = pytest.mark.ha


@pytest.fixture(params=["session", "transaction"])
def pooler(
    request: pytest.FixtureRequest, postgres_url: str, tmp_path: Path
) -> Iterator[pgbouncer.PgBouncer]:
    ha.needed(pgbouncer.find)
    port = urlsplit(postgres_url).port or 5432
    mode = cast("pgbouncer.Mode", request.param)
    with pgbouncer.PgBouncer(tmp_path / "pooler", port, mode) as running:
        yield running


@pytest.fixture
def pooled(pooler: pgbouncer.PgBouncer, postgres_url: str) -> postgres.PostgresStore:
    store = postgres.PostgresStore(pooler.url(urlsplit(postgres_url).path[1:]))
    store.migrate()
    return store


async def test_many_sessions_that_share_few_of_the_server_keep_their_batches_apart(
    pooled: postgres.PostgresStore,
) -> None:
    with contextlib.ExitStack() as opened:
        sessions = [opened.enter_context(contextlib.closing(pooled.open())) for _ in range(8)]
        write(sessions[0], streams=[stream(number) for number in range(1, 9)])
        # More often than a statement is executed before it is prepared.
        for round_ in range(1, 6):
            for number, session in enumerate(sessions, 1):
                write(session, events=[event(number, round_)])

        assert [len(await fed(session, 40)) for session in sessions] == [40] * 8


def test_what_a_batch_sets_is_not_found_by_another_client_of_the_pool(
    pooled: postgres.PostgresStore, pooler: pgbouncer.PgBouncer, postgres_url: str
) -> None:
    with contextlib.closing(pooled.open()) as session:
        write(session, streams=[stream(1)], events=[event(1)])

        with psycopg.connect(pooler.url(urlsplit(postgres_url).path[1:])) as stranger:
            found = [
                stranger.execute(f"SHOW {name}").fetchone()
                for name in ("enable_seqscan", "idle_in_transaction_session_timeout")
            ]

    assert found == [("on",), ("0",)]


def test_inside_a_batch_the_limits_hold(pooled: postgres.PostgresStore) -> None:
    with (
        contextlib.closing(pooled.open()) as session,
        session.transaction() as transaction,
    ):
        transaction.load(protocol.Needed([]))

        shown = session._connection.execute("SHOW idle_in_transaction_session_timeout").fetchone()
        assert shown == ("5s",)


def test_notices_come_through_in_session_mode_and_are_done_without_in_the_other(
    pooled: postgres.PostgresStore, pooler: pgbouncer.PgBouncer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where one comes, it ends the wait; where none does, the wait only costs time.
    seconds = 1.0 if pooler.mode == "transaction" else PATIENCE
    monkeypatch.setattr(postgres, "ECHO_SECONDS", seconds)

    listener = pooled.listen(protocol.WORK_CHANNEL)

    assert (listener is None) == (pooler.mode == "transaction")
    if listener is not None:
        with contextlib.closing(listener), contextlib.closing(pooled.open()) as session:
            write(session, streams=[stream(1)], effects=[effect(1)])
            assert listener.wait(PATIENCE)
