"""What history costs: the transition rate on empty tables and beside 1,000,000 ended events."""

import contextlib
import sqlite3
from collections.abc import Mapping

import psycopg

from bench import engine, harness, places
from bench.contestants import job as jobs

_PER_STREAM = 11
_STREAMS = 90_910
# Numbers above those of the history, which a PostgreSQL writer draws by the thousand.
_NEXT_BLOCK = 1_000

_HISTORY = (
    """INSERT INTO streams (id, name, machine, version, state_type, state_version, state,
        created_at, updated_at, ended_at)
    SELECT i, 'walk/old-' || i, 'walk', 11, 'Home', 1, '{"steps":10}', i, i, i FROM numbers""",
    """INSERT INTO commands (id, stream, digest, first, last, at)
    SELECT 'start old-' || i, i, '00000000000000000000000000000000', 1, 1, i FROM numbers""",
    """INSERT INTO events (stream, seq, type, version, data, cause, at)
    SELECT i, seq, 'Stepped', 1, '{"step":' || seq || '}', 'effect ' || i || '.' || seq || '.0', i
    FROM numbers, (SELECT i AS seq FROM numbers WHERE i <= 11) AS steps""",
)


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("ended", {"load_average_before": harness.load_average()})
    streams = effort.pick(_STREAMS, 100)
    job = jobs.Job("", effort.pick(1500, 50))
    with places.open_places() as kept, contextlib.ExitStack() as stack:
        contestants: dict[str, harness.Contestant | None] = {}
        for store in engine.STORES:
            url = stack.enter_context(kept.fresh(store))
            _remember(url, streams)
            contestants[f"empty_{store}"] = engine.child(kept, "ours", store, job)
            contestants[f"full_{store}"] = _beside(job.at(url))
        rounds = harness.Rounds(contestants, effort.pick(5, 1))
    result.measurements["ended_events"] = streams * _PER_STREAM
    for store in engine.STORES:
        empty, full = rounds.of(f"empty_{store}"), rounds.of(f"full_{store}")
        result.add(f"empty_{store}_per_second", empty)
        result.add(f"full_{store}_per_second", full)
        result.compare(f"empty_{store}", full, empty)
    result.measurements["load_average_after"] = harness.load_average()
    return result


def _beside(job: jobs.Job) -> harness.Contestant:
    """The load on the large tables, each time with streams of its own."""
    rounds = iter(range(1_000_000))

    def contest() -> Mapping[str, float]:
        return harness.contest("ours", job.named(f"round{next(rounds)}"))

    return contest


def _remember(url: str, streams: int) -> None:
    jobs.store(jobs.Job(url))
    if url.startswith("postgresql://"):
        _remember_postgres(url, streams)
    else:
        _remember_sqlite(url, streams)


def _remember_postgres(url: str, streams: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE TEMP TABLE numbers AS SELECT generate_series(1, {streams}) AS i"
        )
        for statement in _HISTORY:
            connection.execute(statement.encode())
        connection.execute("SELECT setval('stream_blocks', %s)", [_NEXT_BLOCK])
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _remember_sqlite(path: str, streams: int) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TEMP TABLE numbers (i INTEGER PRIMARY KEY)")
        connection.executemany(
            "INSERT INTO numbers VALUES (?)", [(number,) for number in range(1, streams + 1)]
        )
        for statement in _HISTORY:
            connection.execute(statement)


BENCHMARK = harness.Benchmark(
    "ended", "the transition rate on empty tables and beside 1,000,000 ended events", run
)
