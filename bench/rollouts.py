"""1,000 canaries at rest, then started together: our operator beside Argo Rollouts.

Each contest has a fresh cluster whose pods are ready at once, the same for all. Ours is measured
as a user starts it, `fairlead operator`, once sharing by pods alone, as Argo Rollouts does here,
and once through a route of Istio. A ratio above 1 means that ours is faster.

Then 10,000 canaries at rest, for their memory: as the first process leaves it that saw them all
(worked), after a start with the store it left (idle), and with an empty one (adopted).
"""

import functools
from collections.abc import Mapping

from bench import canary_race, canary_rest, harness, kwok_cluster, peers_build
from bench.contestants import canaries, canaries_argo, canaries_ours

_MEASUREMENTS = (
    "seconds",
    "requests_per_canary",
    "cpu_seconds",
    "memory_mb",
    "idle_requests",
    "idle_cpu_seconds",
    "idle_memory_mb",
)
_OURS = "replicas"
_PEER = "argo_rollouts"


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("rollouts", {"load_average_before": harness.load_average()})
    if kwok_cluster.can_open():
        found = _contestants()
        _race(result, found, effort)
        _rest(result, found, effort)
    result.measurements["load_average_after"] = harness.load_average()
    return result


def _race(
    result: harness.Result, found: Mapping[str, canaries.Contestant], effort: harness.Effort
) -> None:
    load = canary_race.Load(effort.pick(1000, 20), effort.pick(60, 3))
    turns = {name: _turn(one, load) for name, one in found.items()}
    rounds = harness.Rounds(turns, effort.rounds)
    for measurement in _MEASUREMENTS[1:]:
        result.add(measurement, rounds.of(_OURS, measurement))
    for name in found:
        for measurement in _MEASUREMENTS:
            result.add(f"{name}_{measurement}", rounds.of(name, measurement))
    result.compare(_PEER, rounds.of(_OURS), rounds.of(_PEER))


def _rest(
    result: harness.Result, found: Mapping[str, canaries.Contestant], effort: harness.Effort
) -> None:
    """Ten times as many, once each: they take minutes to write."""
    count = effort.pick(10_000, 40)
    load = canary_race.Load(count, effort.pick(60, 3), longest=1800.0)
    for name in (_OURS, _PEER):
        if name not in found:
            continue
        turn = functools.partial(canary_rest.run, found[name], load)
        measurements = harness.Rounds({name: turn}, 1)
        prefix = "" if name == _OURS else f"{name}_"
        for time in ("worked", "idle", "adopted"):
            for measurement in ("memory_mb", "most_memory_mb", "requests"):
                result.add(
                    f"{prefix}{time}_{count}_{measurement}",
                    measurements.of(name, f"{time}_{measurement}"),
                )


def _turn(contestant: canaries.Contestant, load: canary_race.Load) -> harness.Contestant:
    return lambda: canary_race.run(contestant, load)


def _contestants() -> dict[str, canaries.Contestant]:
    found: dict[str, canaries.Contestant] = {}
    if canaries_ours.is_shipped():
        found = {name: canaries_ours.Operator(name) for name in (_OURS, "istio")}
    else:
        harness.say("no kind of canaries is shipped yet, so ours is left out")
    built = peers_build.argo_rollouts()
    return {**found, _PEER: canaries_argo.ArgoRollouts(built)} if built else found


BENCHMARK = harness.Benchmark(
    "rollouts", "1,000 canaries at rest and started together, against Argo Rollouts", run
)
