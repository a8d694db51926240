"""Whether a connection has a server process of its own, or a pooler lends it one now and then.

With transaction pooling a session's advisory lock and settings stay with a process that the next
statement may not reach, and that another client does: nothing fails, and nothing is protected.
"""

from collections.abc import Sequence

import psycopg

from fairlead import errors
from fairlead.clients.postgres.connection import Connection, connect, where

_ROUNDS = 3
"""Others' traffic can hide in one of them that a process is lent."""


def check_session(connection: Connection, url: str) -> None:
    """Rejected where one process serves several connections, or several serve one.

    The server tells each client its process at the start. A pooler makes that number up, in every
    mode, so only behind one a second connection is opened to see whether it gets our process.
    """
    if connection.info.backend_pid == _process(connection):
        return
    ours: list[int] = []
    theirs: list[int] = []
    try:
        with connect(url) as other:
            for _ in range(_ROUNDS):
                # Ours twice, as a pooler may hand out its idle processes in turn.
                ours += (_process(connection), _process(connection))
                theirs.append(_process(other))
    except psycopg.Error as error:
        raise errors.Unavailable(
            f"the pooler served no second connection: {where(url)}",
            hint="a run needs two for a moment, so its pool must have two or more; run again",
        ) from error
    if lent(ours, theirs):
        raise errors.Rejected(
            f"a pooler lends out the server's processes by transaction: {where(url)}",
            hint="use the server's own URL, or a pool in session mode (pool_mode = session)",
        )


def lent(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Of the processes that two connections saw, both alive all the time."""
    return len({*ours}) > 1 or len({*theirs}) > 1 or not {*ours}.isdisjoint(theirs)


def _process(connection: Connection) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(row[0]) if row else 0
