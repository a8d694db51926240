"""The same load with 1, 2 and 4 worker processes on one PostgreSQL, and what bounds it."""

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from bench import harness, places
from bench.contestants.job import Job
from bench.contestants.job import store as migrated

WORKERS = (1, 2, 4)
_ACTIVE = 256
_TICKS = os.sysconf("SC_CLK_TCK")
# Above this share of its time, something counts as busy all the time.
_BUSY = 0.85


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("scale", {"load_average_before": harness.load_average()})
    workflows = effort.pick(3000, 64)
    with places.open_places() as kept:
        contestants = {f"workers_{count}": _contestant(kept, count, workflows) for count in WORKERS}
        rounds = harness.Rounds(contestants, effort.rounds)
    for count in WORKERS:
        _tell(result, rounds, count)
    one = rounds.of("workers_1")
    for count in WORKERS[1:]:
        result.compare(f"workers_{count}_to_1_postgres", rounds.of(f"workers_{count}"), one)
    result.measurements["cores"] = os.cpu_count() or 1
    result.measurements["load_average_after"] = harness.load_average()
    return result


def _tell(result: harness.Result, rounds: harness.Rounds, count: int) -> None:
    name = f"workers_{count}"
    for measurement in ("per_second", "worker_cpu_seconds", "postgres_cpu_seconds", "seconds"):
        result.add(f"{name}_{measurement}", rounds.of(name, measurement))
    seconds = sum(rounds.of(name, "seconds"))
    if seconds:
        workers = sum(rounds.of(name, "worker_cpu_seconds")) / seconds
        database = sum(rounds.of(name, "postgres_cpu_seconds")) / seconds
        result.measurements[f"{name}_bound_by"] = _bound(count, workers, database)


def _bound(count: int, workers: float, database: float) -> str:
    """What is busy all the time; the shares are cores in use."""
    shown = f"workers {workers:.2f} + postgres {database:.2f} of {os.cpu_count()} cores"
    if workers + database > _BUSY * (os.cpu_count() or 1):
        return f"the machine's cores ({shown})"
    if workers / count > _BUSY:
        return f"the workers' interpreters ({shown})"
    if database / count > _BUSY:
        return f"one postgres session a worker ({shown})"
    if harness.load_average() > 2 * (os.cpu_count() or 1):
        return f"others on this machine ({shown})"
    return f"waiting in turn: worker, postgres, disk ({shown})"


def _contestant(kept: places.Places, count: int, workflows: int) -> harness.Contestant:
    def contest() -> Mapping[str, float]:
        with kept.fresh("postgres") as url:
            migrated(Job(url))
            return _together(kept.server.pid, url, count, workflows)

    return contest


def _together(server: int, url: str, count: int, workflows: int) -> Mapping[str, float]:
    """Start the workers, let them warm up, open the gate for all at once."""
    names = [chr(ord("a") + number) for number in range(count)]
    share = Job(url, workflows // count, _ACTIVE // count, gate=True)
    workers = [harness.start_contest("ours", share.named(name)) for name in names]
    for worker in workers:
        _await_ready(worker)
    began, before = time.time(), cpu_seconds(server)
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    measurements = [harness.measurements_of(worker, "ours") for worker in workers]
    seconds = max(each["ended_at"] for each in measurements) - began
    return {
        "per_second": share.workflows * count * (share.steps + 1) / seconds,
        "seconds": seconds,
        "worker_cpu_seconds": sum(each["cpu_seconds"] for each in measurements),
        "postgres_cpu_seconds": cpu_seconds(server) - before,
    }


def _await_ready(worker: "subprocess.Popen[str]") -> None:
    assert worker.stdout is not None
    if not worker.stdout.readline():
        harness.measurements_of(worker, "ours")


def cpu_seconds(server: int) -> float:
    """What a server and its children have used; the dead ones count by their parent."""
    used = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text()
        except OSError:  # it ended while we looked
            continue
        fields = text.rpartition(")")[2].split()
        if int(folder.name) == server:
            used += sum(map(int, fields[11:15]))
        elif int(fields[1]) == server:
            used += sum(map(int, fields[11:13]))
    return used / _TICKS


BENCHMARK = harness.Benchmark(
    "scale", "the same load with 1, 2 and 4 workers on one PostgreSQL, and what bounds it", run
)
