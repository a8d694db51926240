"""How long an evaluation takes: 200 statements on a schema of 300 tables; the limit is 10 s.

No peer runs migrations to see what they lock, so the figure stands beside its limit.
"""

import time

import psycopg

from bench import harness
from fairlead.areas.deployments.migrations import evaluation, files
from fairlead.clients.postgres.server.running import PostgresServer
from fairlead.clients.postgres.server.wheel import installed_wheel

TABLES = 300
STATEMENTS = 200
LIMIT = 10.0


def run(_effort: harness.Effort) -> harness.Result:
    measurements: dict[str, float | str] = {"load_average_before": harness.load_average()}
    with PostgresServer() as server:
        url = server.create_database("shop")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("".join(map(_table, range(TABLES))).encode())
        seconds = min(_seconds(url) for _ in range(3))
    measurements["seconds"] = round(seconds, 2)
    measurements["statements a second"] = round(STATEMENTS / seconds)
    measurements["part of the limit"] = round(seconds / LIMIT, 2)
    return harness.Result("migrations", measurements)


def _table(number: int) -> str:
    key = f"REFERENCES t{number - 1}" if number else ""
    columns = "a int, b text, c varchar(20), d numeric(8, 2), e timestamptz, f jsonb, g bool, h int"
    return (
        f"CREATE TABLE t{number} (id bigserial PRIMARY KEY, parent bigint {key}, {columns});"
        f"CREATE INDEX ON t{number} (a); CREATE INDEX ON t{number} (e);"
        f"INSERT INTO t{number} DEFAULT VALUES;"
    )


def _statement(number: int) -> str:
    table = f"t{number % TABLES}"
    forms = (
        f"ALTER TABLE {table} ADD COLUMN z{number} int",
        f"CREATE INDEX i{number} ON {table} (h)",
        f"ALTER TABLE {table} ALTER a TYPE bigint",
        f"CREATE TABLE n{number} (id int REFERENCES {table})",
        f"DELETE FROM {table} WHERE id BETWEEN 1 AND 100",  # noqa: S608 - a name of our own
    )
    return forms[number % len(forms)]


def _seconds(url: str) -> float:
    text = ";\n".join(map(_statement, range(STATEMENTS)))
    program = str(installed_wheel().programs / "pg_dump")
    request = evaluation.Request(url, [files.Migration("1", "1.sql", text)], pg_dump=program)
    began = time.monotonic()
    found = evaluation.evaluate(request)
    assert len(found.statements) == STATEMENTS, found
    assert not any("cannot" in "".join(each.reasons) for each in found.statements), found
    return time.monotonic() - began


BENCHMARK = harness.Benchmark(
    "migrations", "evaluation of 200 statements on 300 tables, beside its limit of 10 s", run
)
