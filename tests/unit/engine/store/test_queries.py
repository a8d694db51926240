"""SQL lives in named queries: the same names on both stores, each with a purpose, all valid."""

import re
import sqlite3
from pathlib import Path

import psycopg
import pytest

from fairlead.engine.store import queries
from tests.engines import Home

SQLITE, POSTGRES = queries.load("sqlite"), queries.load("postgres")
# What only one of the two stores needs, and why.
ONLY_SQLITE = {
    "last_stream",  # PostgreSQL draws numbers from a sequence
    "end_all_workers",  # a server has a clock of its own
    "insert_lane_effects",  # PostgreSQL has a trigger for lanes
}
ONLY_POSTGRES = {
    *("lock_streams", "lock_streams_now"),  # SQLite locks the file
    "stream_block",
    "insert_events_in_turn",  # SQLite has one writer, and no numbers of transactions
    *("restored_events", "renumber_events", "restart_projections", "clear_all_projected"),
    *("notify", "server_process", "set_settings"),
    "where_we_are",  # a file is asked where it lies
}
SOURCE = Path(queries.__file__).parents[1]


def test_both_dialects_know_the_same_queries() -> None:
    assert {*SQLITE} - {*POSTGRES} == ONLY_SQLITE
    assert {*POSTGRES} - {*SQLITE} == ONLY_POSTGRES


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_query_is_named_once_and_has_a_purpose(dialect: str) -> None:
    text = (Path(queries.__file__).parent / "queries" / f"{dialect}.sql").read_text()
    heads = re.findall(r"^-- ([a-z_]+)(?:: (.+))?$", text, re.MULTILINE)

    assert len({name for name, _ in heads}) == len(heads)
    assert [name for name, purpose in heads if len(purpose.split()) < 2] == []
    assert text.count(";\n") + text.endswith(";") >= len(heads)


def test_no_query_is_kept_that_nobody_asks() -> None:
    code = "\n".join(
        file.read_text() for file in [*SOURCE.rglob("*.py"), *SOURCE.parent.rglob("*.py")]
    )

    unused = {name for name in {*SQLITE, *POSTGRES} if f'"{name}"' not in code}

    assert unused == set()


def test_a_text_is_parted_by_its_heads() -> None:
    text = "-- one: the first\nSELECT 1;\n\n-- two: the second\nSELECT 2\n    + 3;\n"

    assert queries.parse(text) == {"one": "SELECT 1", "two": "SELECT 2\n    + 3"}


@pytest.mark.parametrize("name", sorted(SQLITE))
def test_sqlite_understands_every_query(sqlite_home: Home, name: str) -> None:
    statement = SQLITE[name]
    values: dict[str, object] = dict.fromkeys(re.findall(r":([a-z_]+)", statement), None)
    places = [None] * statement.count("?")

    connection = sqlite3.connect(sqlite_home.address)
    try:
        plan = connection.execute(f"EXPLAIN {statement}", values or places).fetchall()
    finally:
        connection.close()

    assert plan


def test_postgres_understands_every_query(postgres_home: Home) -> None:
    # A lock cannot be prepared; tests of retention take it.
    preparable = {name: text for name, text in POSTGRES.items() if not text.startswith("LOCK")}
    with psycopg.connect(postgres_home.address) as connection:
        for name, statement in preparable.items():
            numbered = with_numbers(statement)

            connection.execute(f"PREPARE {name} AS {numbered}".encode())

        prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert prepared == (len(preparable),)


def with_numbers(statement: str) -> str:
    """As the server itself spells parameters: $1, $2, …; a name always gets its number."""
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        name = found[1] or str(len(numbers))
        return numbers.setdefault(name, f"${len(numbers) + 1}")

    return re.sub(r"%(?:\((\w+)\))?s", number, statement)
