"""Transitions a second with 256 streams active, against peers and against the raw limit.

Ten no-op steps a workflow, fsync on everywhere. Against DBOS and procrastinate only steps
are counted on our side, not the command that starts a workflow, though it is a transition
like the others; against pgbench and the raw loop, which know only transitions, all count.
"""

from collections.abc import Mapping

from bench import harness, pgbench, places
from bench.contestants.job import Job

STORES = ("sqlite", "postgres")
# Chosen from one short try each: DBOS with 16, 64 and 256 threads (on PostgreSQL 64 was best,
# on SQLite 16, by less than the noise), procrastinate with 10, 20, 64 and 256 jobs at once.
_DBOS_THREADS = 64
_PROCRASTINATE_JOBS = 20
_RAW_BATCH = 128
# What our own walk is compared with: the price of what a machine may ask for besides.
_SHAPES = ("depot", "found", "withdrawn", "cancelled")


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("engine", {"load_average_before": harness.load_average()})
    with places.open_places() as kept:
        rounds = harness.Rounds(_contestants(kept, effort), effort.rounds)
    for store in STORES:
        _tell(result, rounds, store)
    for name in ("procrastinate", "pgbench"):
        result.add(f"{name}_postgres_per_second", rounds.of(f"{name}_postgres"))
    steps = rounds.of("ours_postgres", "steps_per_second")
    result.compare("procrastinate_postgres", steps, rounds.of("procrastinate_postgres"))
    all_ = rounds.of("ours_postgres")
    result.compare("pgbench_postgres", all_, rounds.of("pgbench_postgres"))
    result.measurements["load_average_after"] = harness.load_average()
    return result


def _tell(result: harness.Result, rounds: harness.Rounds, store: str) -> None:
    ours = rounds.of(f"ours_{store}")
    steps = rounds.of(f"ours_{store}", "steps_per_second")
    result.add(f"ours_{store}_per_second", ours)
    result.add(f"ours_{store}_steps_per_second", steps)
    for measurement in ("per_commit", "cpu_microseconds"):
        result.add(f"ours_{store}_{measurement}", rounds.of(f"ours_{store}", measurement))
    for name in (*_SHAPES, "dbos", "raw", "bare"):
        result.add(f"{name}_{store}_per_second", rounds.of(f"{name}_{store}"))
    for name in _SHAPES:
        result.compare(f"{name}_{store}", rounds.of(f"{name}_{store}"), ours)
    result.compare(f"dbos_{store}", steps, rounds.of(f"dbos_{store}"))
    result.compare(f"raw_{store}", ours, rounds.of(f"raw_{store}"))


def _contestants(
    kept: places.Places, effort: harness.Effort
) -> Mapping[str, harness.Contestant | None]:
    found: dict[str, harness.Contestant | None] = {}
    for store in STORES:
        found |= _on(kept, store, effort)
    jobs = effort.pick(600, 50)
    found["procrastinate_postgres"] = harness.peer(
        "procrastinate",
        child(kept, "procrastinate_jobs", "postgres", Job("", jobs, _PROCRASTINATE_JOBS)),
    )
    found["pgbench_postgres"] = pgbench.contestant(kept, effort.pick(4, 1))
    return found


def _on(
    kept: places.Places, store: str, effort: harness.Effort
) -> dict[str, harness.Contestant | None]:
    workflows = effort.pick(1500, 100)
    peers = effort.pick(64, 4)
    raw = effort.pick(20_000, 1_280)
    bare = effort.pick(1_000, 50)
    dbos = child(kept, "dbos_steps", store, Job("", peers, _DBOS_THREADS))
    return {
        f"ours_{store}": child(kept, "ours", store, Job("", workflows)),
        f"raw_{store}": child(kept, f"raw_{store}", store, Job("", raw, _RAW_BATCH)),
        f"dbos_{store}": harness.peer("dbos", dbos),
        **{
            f"{name}_{store}": child(kept, "ours", store, Job("", workflows, shape=name))
            for name in _SHAPES
        },
        f"bare_{store}": child(kept, f"raw_{store}", store, Job("", bare, 1)),
    }


def child(kept: places.Places, module: str, store: str, job: Job) -> harness.Contestant:
    def contest() -> Mapping[str, float]:
        with kept.fresh(store) as url:
            return harness.contest(module, job.at(url))

    return contest


BENCHMARK = harness.Benchmark(
    "engine", "transitions a second against DBOS, procrastinate, pgbench and a raw loop", run
)
