"""The raw loop on SQLite: batches of `active` with one commit each, or a commit each (1)."""

import contextlib
import json
import sqlite3
import time

from bench.contestants import job as jobs
from bench.contestants import raw
from fairlead.engine.store import queries, sqlite_connection

_QUERIES = queries.load("sqlite")


def run(job: jobs.Job) -> jobs.Measurements:
    jobs.store(job)
    with contextlib.closing(sqlite3.connect(job.url, isolation_level=None)) as connection:
        for pragma in sqlite_connection.PRAGMAS:
            connection.execute(pragma)
        return _loop(connection, job)


def _loop(connection: sqlite3.Connection, job: jobs.Job) -> jobs.Measurements:
    kept = raw.streams(job.active)
    connection.executemany(_QUERIES["insert_streams"], raw.first_rows(kept))
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


def _batch(connection: sqlite3.Connection, kept: list[raw.Stream], seq: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    names = json.dumps([each.name for each in kept])
    connection.execute(_QUERIES["load_streams"], {"names": names, "ordered": "[]"}).fetchall()
    ids = json.dumps([f"{each.name} {seq}" for each in kept])
    connection.execute(_QUERIES["load_commands"], {"ids": ids}).fetchall()
    many = connection.executemany
    many(_QUERIES["update_states"], [raw.state_row(each, seq) for each in kept])
    many(_QUERIES["insert_events"], [raw.event_row(each, seq) for each in kept])
    many(_QUERIES["insert_commands"], [raw.command_row(each, seq) for each in kept])
    many(_QUERIES["insert_effects"], [raw.effect_row(each, seq) for each in kept])
    connection.execute("COMMIT")


if __name__ == "__main__":
    jobs.serve(run)
