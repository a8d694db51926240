"""Deployments a second through 1,000 stacks with ten each, beside the engine's own figure.

The adapter answers at once, so what is timed is the machines, the queues of the stacks and the
engine. Transitions count on both sides: a deployment makes some twelve of them, larger than the
steps of a walk.
"""

from collections.abc import Mapping

from bench import engine, harness, places
from bench.contestants.job import Job

_EACH = 10


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("deployments", {"load_average_before": harness.load_average()})
    with places.open_places() as kept:
        found: dict[str, harness.Contestant | None] = {}
        for store in engine.STORES:
            found |= _on(kept, store, effort)
        rounds = harness.Rounds(found, effort.pick(3, 1))
    for store in engine.STORES:
        stacks, walks = (f"{name}_{store}" for name in ("stacks", "walks"))
        result.add(f"{store}_deployments_per_second", rounds.of(stacks, "steps_per_second"))
        result.add(f"{store}_transitions_per_second", rounds.of(stacks))
        result.add(f"{store}_engine_per_second", rounds.of(walks))
        result.compare(f"{store}_beside_engine", rounds.of(stacks), rounds.of(walks))
    result.measurements["load_average_after"] = harness.load_average()
    return result


def _on(
    kept: places.Places, store: str, effort: harness.Effort
) -> Mapping[str, harness.Contestant]:
    stacks = Job("", effort.pick(1_000, 20), steps=_EACH)
    walks = Job("", effort.pick(1_500, 100))
    return {
        f"stacks_{store}": engine.child(kept, "stacks", store, stacks),
        f"walks_{store}": engine.child(kept, "ours", store, walks),
    }


BENCHMARK = harness.Benchmark(
    "deployments", "1,000 stacks with ten deployments each, beside the engine's own figure", run
)
