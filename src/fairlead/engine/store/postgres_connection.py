"""A connection to PostgreSQL: the leader among hosts, poolers, and servers that fall silent."""

import time
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import abc

from fairlead import errors
from fairlead.engine.store import queries

T = TypeVar("T")

_QUERIES = queries.load("postgres")
# A client that stops between two statements must not keep its row locks. A suspended machine or
# a cut cable would otherwise block every batch that needs the same stream, until somebody
# notices; between load and write lie milliseconds.
LIMIT_SILENCE = {"idle_in_transaction_session_timeout": "5s"}
# A cable that is cut says nothing: ask whether the server lives, and give up in seconds.
_PATIENCE: dict[str, Any] = {
    "application_name": "fairlead",
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# A server that is stopped, or behind a proxy that is: its kernel answers for it, so that no
# setting above helps, and after a failover nobody would ever notice that another one leads.
# Longer than any statement of ours, as short as Patroni's lock.
SILENCE_SECONDS = 30.0


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """Gives up a server that does not end a statement, and knows whether it is another each time.

    A pooler in transaction mode gives every transaction whichever session of the server is
    free. What is set or prepared for a session would then be missing here and found by
    strangers, so it is set for each transaction instead, and nothing is prepared. A pooler in
    session mode cannot be told apart beforehand, and is treated alike.
    """

    patience: float | None = None
    pooled = False

    def introduce(self) -> None:
        """Find out who answers: a pooler has told us a number that is not the server's."""
        ((pid,),) = self.execute(_QUERIES["server_process"]).fetchall()
        self.pooled = pid != self.info.backend_pid
        self.prepare_threshold = None if self.pooled else 2
        self._for_each: dict[str, str] = {}
        self.set(LIMIT_SILENCE)

    def set(self, settings: Mapping[str, str]) -> None:
        """For the session, by whatever name it goes."""
        if self.pooled:
            self._for_each.update(settings)
        else:
            self._set(settings, local=False)

    def set_here(self) -> None:
        """At the start of each transaction; nothing where the session keeps its settings."""
        if self._for_each:
            self._set(self._for_each, local=True)

    def _set(self, settings: Mapping[str, str], *, local: bool) -> None:
        values = {"settings": msgspec.json.encode(settings).decode(), "local": local}
        self.execute(_QUERIES["set_settings"], values)

    def wait(self, gen: abc.PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        if timeout is not None or self.patience is None:
            return super().wait(gen, interval, timeout)
        began = time.monotonic()
        try:
            return super().wait(gen, interval, self.patience)
        except psycopg.OperationalError:
            if time.monotonic() - began >= self.patience:
                # Closed, not cancelled: a commit that waits for its standby and is cancelled
                # is answered as if the standby had it.
                self.pgconn.finish()
            raise


def connect(url: str) -> Connection:
    try:
        connection = Connection.connect(**_parameters(url), autocommit=True)
        connection.introduce()
    except psycopg.Error as error:
        raise errors.Unavailable(
            f"cannot reach the database: {_where(url)}: {str(error).strip()}",
            hint="check FAIRLEAD_DATABASE_URL and that the server accepts this user; of several"
            " hosts one must take writes, which none does during a failover",
        ) from error
    return connection


def _parameters(url: str) -> dict[str, Any]:
    """How to connect: what the URL says counts more than what we would choose."""
    parts = psycopg.conninfo.conninfo_to_dict(url)
    several = "," in str(parts.get("host", ""))
    # Replicas answer too; without this the first of them would be taken.
    leader = {"target_session_attrs": "read-write"} if several else {}
    return {**_PATIENCE, **leader, **parts}


def _where(url: str) -> str:
    """The server's address without user or password."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return "a malformed URL"
    hosts = str(parts.get("host", "local socket")).split(",")
    ports = str(parts.get("port", "")).split(",")
    # One port may stand for all hosts.
    each = zip(hosts, ports if len(ports) == len(hosts) else ports * len(hosts), strict=False)
    named = ",".join(f"{host}:{port}" if port else host for host, port in each)
    return f"{named}/{parts.get('dbname', '')}"
