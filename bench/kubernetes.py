"""1,000 objects with three children and a status each: our operator, kopf, and bare requests.

All on one real API server, in turn, with as many requests at once. `operator` is what a user
runs (reconcilers, engine on disk, effects), and its are the figures that count; `runtime` is the
same without the engine; `bare_loop` is the limit: a program that knows what to send and does no
more. Ratios above 1 mean that the operator is faster. Our own brake of 500 requests a second is
off, for the others have none.

Then the operator alone: what it costs to hold 10,000 objects and have nothing to do, and how
long its admission webhook takes.
"""

from collections.abc import Mapping

from bench import api_server, harness, reviews

_CONTESTANTS = {
    "operator": "fleet_operator",
    "runtime": "fleet_runtime",
    "kopf": "fleet_kopf",
    "bare_loop": "fleet_bare",
}
_MEASUREMENTS = ("seconds", "requests_per_object", "memory_mb", "cpu_seconds")


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("kubernetes", {"load_average_before": harness.load_average()})
    with api_server.open_api_server() as place:
        if place is not None:
            _race(result, place, effort)
            _rest(result, place, effort)
    _review(result, effort)
    result.measurements["load_average_after"] = harness.load_average()
    return result


def _race(result: harness.Result, place: api_server.ApiServer, effort: harness.Effort) -> None:
    rounds = harness.Rounds(_contestants(place, effort.pick(1000, 50)), effort.rounds)
    for measurement in _MEASUREMENTS[1:]:
        result.add(measurement, rounds.of("operator", measurement))
    for name in _CONTESTANTS:
        for measurement in _MEASUREMENTS:
            result.add(f"{name}_{measurement}", rounds.of(name, measurement))
    for name in ("kopf", "bare_loop"):
        result.compare(name, rounds.of("operator"), rounds.of(name))
        result.compare(f"runtime_{name}", rounds.of("runtime"), rounds.of(name))


def _rest(result: harness.Result, place: api_server.ApiServer, effort: harness.Effort) -> None:
    """Half as many objects, one child each; the second operator finds everything done."""
    count = effort.pick(5000, 50)
    task = place.task(count, children=1)
    idle = place.task(count, children=1, seconds=effort.pick(60, 2))
    try:
        place.contest("fleet_operator", task)
        measurements = api_server.run("fleet_operator", idle)
    except harness.Failed as failure:
        harness.say(f"the operator at rest is left out: {failure}")
        return
    for name in ("cached", "writes", "idle_requests", "idle_memory_mb", "memory_mb", "seconds"):
        result.measurements[f"rest_{name}"] = round(measurements[name], 1)
    asked = measurements["writes"] + measurements["idle_requests"]
    if asked:
        result.broken.append(f"at rest the operator asks for nothing but watches, found: {asked:g}")


def _review(result: harness.Result, effort: harness.Effort) -> None:
    contest = harness.Rounds(
        {"webhook": lambda: reviews.run(effort.pick(2000, 100))}, effort.rounds
    )
    for measurement in ("p50_ms", "p99_ms", "memory_mb"):
        result.add(f"webhook_{measurement}", contest.of("webhook", measurement))


def _contestants(
    place: api_server.ApiServer, count: int
) -> Mapping[str, harness.Contestant | None]:
    def contestant(module: str) -> harness.Contestant:
        return lambda: place.contest(module, place.task(count))

    found: dict[str, harness.Contestant | None] = {
        name: contestant(module) for name, module in _CONTESTANTS.items()
    }
    return {**found, "kopf": harness.peer("kopf", contestant(_CONTESTANTS["kopf"]))}


BENCHMARK = harness.Benchmark(
    "kubernetes", "1,000 objects with three children each, against kopf and a bare loop", run
)
