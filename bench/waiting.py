"""10,000 waiting streams: what they weigh in the worker, and how late they wake."""

from bench import engine, harness, places
from bench.contestants.job import Job

STREAMS = 10_000
_SECONDS = 30


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("waiting", {"load_average_before": harness.load_average()})
    job = Job("", effort.pick(STREAMS, 50), effort.pick(_SECONDS, 1))
    with places.open_places() as kept:
        contestants = {store: engine.child(kept, "waiting", store, job) for store in engine.STORES}
        rounds = harness.Rounds(contestants, effort.pick(2, 1))
    result.measurements["streams"] = job.workflows
    for store in engine.STORES:
        for measurement in ("empty_mb", "waiting_mb", "late_p50_ms", "late_p99_ms"):
            result.add(f"{store}_{measurement}", rounds.of(store, measurement))
    result.measurements["load_average_after"] = harness.load_average()
    return result


BENCHMARK = harness.Benchmark(
    "waiting", "10,000 waiting streams: the worker's memory, and how late timers fire", run
)
