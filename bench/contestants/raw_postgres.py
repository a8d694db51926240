"""The raw loop on PostgreSQL: the same, with executemany, which psycopg pipelines."""

import time

import psycopg

from bench.contestants import job as jobs
from bench.contestants import raw
from fairlead.engine.store import queries

_QUERIES = queries.load("postgres")
_STREAM = """INSERT INTO streams (id, name, machine, version, state_type, state_version, state,
    ended_at, queue, created_at, updated_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""
_STATE = """UPDATE streams SET version = %s, state_type = %s, state_version = %s, state = %s,
    ended_at = %s, updated_at = %s WHERE id = %s AND version = %s"""
_EVENT = """INSERT INTO events (stream, seq, type, version, data, cause, at)
    VALUES (%s, %s, %s, %s, %s, %s, %s)"""
_COMMAND = """INSERT INTO commands (id, stream, digest, first, last, at)
    VALUES (%s, %s, %s, %s, %s, %s)"""
_EFFECT = """INSERT INTO outbox (stream, seq, n, type, version, data, in_order, owner, due_at,
    epoch, queue, machine) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""


def fill(job: jobs.Job) -> list[raw.Stream]:
    """Tables with one row for each active stream."""
    jobs.store(job)
    kept = raw.streams(job.active)
    with psycopg.connect(job.url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executemany(_STREAM, raw.first_rows(kept))
    return kept


def run(job: jobs.Job) -> jobs.Measurements:
    kept = fill(job)
    with psycopg.connect(job.url, autocommit=True) as connection:
        connection.prepare_threshold = 2
        rounds = max(1, job.workflows // job.active)
        took: list[float] = []
        for seq in range(1, rounds + 1):
            began = time.perf_counter()
            _batch(connection, kept, seq)
            took.append(time.perf_counter() - began)
    return {
        "per_second": rounds * job.active / sum(took),
        "p50_ms": jobs.percentile(took, 0.5) * 1000,
        "p99_ms": jobs.percentile(took, 0.99) * 1000,
    }


def _batch(connection: psycopg.Connection, kept: list[raw.Stream], seq: int) -> None:
    """Two round trips: all that is read, then all that is written together with the commit."""
    names = [each.name for each in kept]
    with connection.pipeline():
        connection.execute("BEGIN")
        loaded = connection.execute(
            _QUERIES["load_streams"], {"names": names, "ordered": [], "bytes": 2**62}
        )
        ids = [f"{each.name} {seq}" for each in kept]
        known = connection.execute(_QUERIES["load_commands"], {"ids": ids})
    loaded.fetchall()
    known.fetchall()
    with connection.pipeline(), connection.cursor() as cursor:
        cursor.executemany(_STATE, [raw.state_row(each, seq) for each in kept])
        cursor.executemany(_EVENT, [raw.event_row(each, seq) for each in kept])
        cursor.executemany(_COMMAND, [raw.command_row(each, seq) for each in kept])
        cursor.executemany(_EFFECT, [raw.effect_row(each, seq) for each in kept])
        connection.execute("COMMIT")


if __name__ == "__main__":
    jobs.serve(run)
