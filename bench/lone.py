"""One stream's latency, against a bare commit of the same statements without any engine."""

from bench import engine, harness, places
from bench.contestants.job import Job

_SHAPES = ("submit", "turn")


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("lone", {"load_average_before": harness.load_average()})
    times = effort.pick(500, 20)
    with places.open_places() as kept:
        contestants: dict[str, harness.Contestant | None] = {}
        for store in engine.STORES:
            bare = engine.child(kept, f"raw_{store}", store, Job("", times, 1))
            contestants[f"bare_{store}"] = bare
            for shape in _SHAPES:
                job = Job("", times, 1, shape=shape)
                contestants[f"{shape}_{store}"] = engine.child(kept, "lone", store, job)
        rounds = harness.Rounds(contestants, effort.pick(5, 1))
    for store in engine.STORES:
        _tell(result, rounds, store)
    result.measurements["load_average_after"] = harness.load_average()
    return result


def _tell(result: harness.Result, rounds: harness.Rounds, store: str) -> None:
    for name in ("bare", *_SHAPES):
        for measurement in ("p50_ms", "p99_ms"):
            result.add(f"{name}_{store}_{measurement}", rounds.of(f"{name}_{store}", measurement))
    # Less time is faster, so the bare commit stands above: 0.67 means 1.5 times as long.
    for measurement in ("p50", "p99"):
        bare = rounds.of(f"bare_{store}", f"{measurement}_ms")
        ours = rounds.of(f"submit_{store}", f"{measurement}_ms")
        result.compare(f"bare_{measurement}_{store}", bare, ours)


BENCHMARK = harness.Benchmark(
    "lone", "one stream's transition latency against a bare commit of the same statements", run
)
