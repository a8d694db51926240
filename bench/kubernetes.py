"""1,000 objects with three children and a status each: our runtime, kopf, and the bare requests.

All on one real API server, in turn, the same number of objects at a time. `bare_loop` is the
limit: a program that knows what to send and does nothing else.
"""

from collections.abc import Mapping

from bench import harbour, harness

_CONTESTANTS = {"runtime": "boats_ours", "kopf": "boats_kopf", "bare_loop": "boats_bare"}
_FIGURES = ("seconds", "requests_per_object", "memory_mb", "cpu_seconds")


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("kubernetes", {"load_average_before": harness.load_average()})
    with harbour.open_harbour() as place:
        if place is not None:
            _race(result, place, effort)
    result.figures["load_average_after"] = harness.load_average()
    return result


def _race(result: harness.Result, place: harbour.Harbour, effort: harness.Effort) -> None:
    rounds = harness.Rounds(_contestants(place, effort.pick(1000, 50)), effort.rounds)
    for name in _CONTESTANTS:
        for figure in _FIGURES:
            result.add(f"{name}_{figure}", rounds.of(name, figure))
    for figure in _FIGURES[1:]:
        result.add(figure, rounds.of("runtime", figure))
    for name in ("kopf", "bare_loop"):
        result.compare(name, rounds.of("runtime"), rounds.of(name))


def _contestants(place: harbour.Harbour, count: int) -> Mapping[str, harness.Contestant | None]:
    def contestant(module: str) -> harness.Contestant:
        return lambda: place.contest(module, place.task(count))

    found: dict[str, harness.Contestant | None] = {
        name: contestant(module) for name, module in _CONTESTANTS.items()
    }
    return {**found, "kopf": harness.peer("kopf", contestant(_CONTESTANTS["kopf"]))}


BENCHMARK = harness.Benchmark(
    "kubernetes", "1,000 objects with three children each, against kopf and a bare loop", run
)
