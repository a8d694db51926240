"""Several hosts in the URL: the one that takes writes is found, and a silent one is given up."""

import contextlib
import socket
import time
from collections.abc import Iterator

import psycopg
import pytest

from fairlead import errors
from fairlead.clients.postgres.server.running import PostgresServer
from fairlead.engine.store import postgres, postgres_connection
from tests.engines import PATIENCE


@pytest.fixture(scope="module")
def replica() -> Iterator[PostgresServer]:
    """A server that answers and takes no writes, as a follower does."""
    with PostgresServer(settings={"default_transaction_read_only": "on"}) as server:
        yield server


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Takes connections, as the kernel does for a process that is stopped, and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(8)
        yield listening.getsockname()[1]


def test_of_several_hosts_the_one_that_takes_writes_is_found(
    replica: PostgresServer, postgres_url: str
) -> None:
    store = postgres.PostgresStore(_before(f"127.0.0.1:{replica.port}", postgres_url))

    store.migrate()

    assert postgres.PostgresStore(postgres_url).pending_migrations() == []


def test_a_host_that_says_nothing_costs_its_share_of_time_and_no_more(
    silent_port: int, postgres_url: str
) -> None:
    url = _before(f"127.0.0.1:{silent_port}", postgres_url)
    begun = time.monotonic()

    postgres.PostgresStore(f"{url}?connect_timeout=2").now()

    assert 2 <= time.monotonic() - begun < PATIENCE


def test_where_no_host_takes_writes_each_is_named_with_a_hint(replica: PostgresServer) -> None:
    hosts = f"127.0.0.1:{replica.port},127.0.0.1:1"
    store = postgres.PostgresStore(f"postgresql://postgres:secret@{hosts}/postgres")

    with pytest.raises(errors.Unavailable) as caught:
        store.now()

    assert caught.value.message.startswith(f"cannot reach the database: {hosts}/postgres: ")
    assert "session is read-only" in caught.value.message
    assert "secret" not in caught.value.message
    assert "failover" in caught.value.hint


def test_a_statement_that_is_never_answered_ends_with_the_connection(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_connection, "SILENCE_SECONDS", 0.5)
    store = postgres.PostgresStore(postgres_url)
    store.migrate()

    with psycopg.connect(postgres_url) as other, contextlib.closing(store.open()) as session:
        other.execute("LOCK TABLE streams, outbox, timers")
        with pytest.raises(errors.Unavailable, match="did not answer"):
            session.rows("count_rows")
        other.rollback()

        # Closed, so that nothing of the unanswered statement is taken for another's answer.
        with pytest.raises(errors.Unavailable):
            session.rows("count_rows")
    with contextlib.closing(store.open()) as session:
        assert session.rows("count_rows") == [(0, 0, 0, 0)]


def _before(host: str, url: str) -> str:
    """The same URL with another host before its own."""
    return url.replace("@", f"@{host},", 1)
