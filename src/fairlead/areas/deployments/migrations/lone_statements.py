"""Statements that PostgreSQL allows in no transaction: what of them is done after a crash.

    look ──► record what is there as begun ──► send ──► record as done

Without a transaction nothing tells what was done but the database itself. So the record of a
statement that was begun holds what it would change, as it was before: whatever differs after a
crash is the statement's own, and what was there before it never is.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairlead.areas.deployments.migrations.statements import Statement
from fairlead.clients.postgres.connection import Connection

Seen = list[int]
"""Numbers of what a statement would make or take away."""

_INDEXES = """
SELECT indexrelid::bigint FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE indrelid = to_regclass(%s) AND (%s = '' OR c.relname = %s) ORDER BY 1
"""
_RELATION = "SELECT to_regclass(%s)::oid::bigint WHERE to_regclass(%s) IS NOT NULL"
_PARTITION = """
SELECT inhrelid::bigint FROM pg_inherits
WHERE inhparent = to_regclass(%s) AND inhrelid = to_regclass(%s)
"""
# What a REINDEX that was cut leaves beside the index: its new one, or the old one.
_HALF_MADE = """
SELECT indexrelid::bigint FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE NOT indisvalid AND c.relname ~ '_cc(new|old)[0-9]*$' ORDER BY 1
"""
_STATE = "SELECT indisvalid, indexrelid::regclass::text FROM pg_index WHERE indexrelid = %s"
_PENDING = "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = %s"


@dataclass(frozen=True, slots=True)
class _Form:
    """How one kind of statement shows what became of it."""

    look: Callable[[Connection], Seen]
    mend: Callable[[Connection, Seen, Seen], bool]
    """Takes away what is half made; whether nothing is left to do."""


def look(connection: Connection, statement: Statement) -> Seen:
    """What the statement would change, as it is now, after a number of the statement itself."""
    return [_number(statement), *_form(statement).look(connection)]


def is_of(statement: Statement, before: Seen) -> bool:
    """Whether it was this statement that was begun, and not one that the file had then."""
    return before[:1] == [_number(statement)]


def mend(connection: Connection, statement: Statement, before: Seen) -> bool:
    """After a statement was cut or has failed: whether it is done; what it left by half is gone."""
    form = _form(statement)
    return form.mend(connection, before[1:], form.look(connection))


def _form(statement: Statement) -> _Form:
    words = statement.tokens
    if statement.starts("CREATE") and "ON" in words:
        name, table = _index(words)
        return _Form(lambda it: _numbers(it, _INDEXES, table, name, name), _made)
    if statement.starts("DROP", "INDEX"):
        name = _name(_after(words, "CONCURRENTLY"))
        return _Form(lambda it: _numbers(it, _RELATION, name, name), _gone)
    if "DETACH" in words:
        table, part = _name(words[2:]), _name(_after(words, "PARTITION"))
        return _Form(lambda it: _numbers(it, _PARTITION, table, part), _detached(table, part))
    if statement.starts("REINDEX"):
        return _Form(lambda it: _numbers(it, _HALF_MADE), _again)
    # VACUUM and settings: doing them again does no more.
    return _Form(lambda _: [], lambda *_: False)


def _made(connection: Connection, before: Seen, now: Seen) -> bool:
    made = [each for each in now if each not in before]
    halves = [each for each in made if _dropped(connection, each)]
    return len(made) > len(halves)


def _again(connection: Connection, before: Seen, now: Seen) -> bool:
    _made(connection, before, now)
    return False


def _gone(_: Connection, before: Seen, now: Seen) -> bool:
    return bool(before) and not now


def _detached(table: str, part: str) -> Callable[[Connection, Seen, Seen], bool]:
    def mend(connection: Connection, before: Seen, now: Seen) -> bool:
        if now and connection.execute(_PENDING, (now[0],)).fetchone() == (True,):
            connection.execute(f"ALTER TABLE {table} DETACH PARTITION {part} FINALIZE".encode())
            return True
        return bool(before) and not now

    return mend


def _dropped(connection: Connection, index: int) -> bool:
    """Of an index: whether it was half made, and is gone now."""
    row = connection.execute(_STATE, (index,)).fetchone()
    if row is None or row[0]:
        return False
    connection.execute(f"DROP INDEX CONCURRENTLY {row[1]}".encode())
    return True


def _numbers(connection: Connection, question: str, *values: str) -> Seen:
    rows = connection.execute(question.encode(), values or None).fetchall()
    return [number for (number,) in rows]


def _index(words: Sequence[str]) -> tuple[str, str]:
    """Of `CREATE INDEX CONCURRENTLY`: its name, empty where PostgreSQL gives one, and its table."""
    at = words.index("ON")
    name = words[at - 1]
    plain = "" if name == "CONCURRENTLY" else _plain(name)
    return plain, _name(_after(words, "ON"))


def _after(words: Sequence[str], word: str) -> Sequence[str]:
    return words[words.index(word) + 1 :] if word in words else ()


def _name(words: Sequence[str]) -> str:
    """The name that comes first, with its schema, as SQL: it goes into a statement as it is."""
    rest = [*words]
    while rest and rest[0] in ("IF", "EXISTS", "ONLY"):
        del rest[0]
    parts = rest[:1]
    while rest[1:2] == ["."]:
        del rest[:2]
        parts += rest[:1]
    return ".".join(each if each.startswith('"') else each.lower() for each in parts)


def _number(statement: Statement) -> int:
    return int.from_bytes(hashlib.sha256(statement.sql.encode()).digest()[:8], signed=True)


def _plain(word: str) -> str:
    return word[1:-1].replace('""', '"') if word.startswith('"') else word.lower()
