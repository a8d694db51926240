"""How many metrics a second the judge decides; the limit is a second for 1,000 of 60 points.

There is no peer to time beside it: Kayenta needs a JVM and a metric store. So the figures stand
beside their limit.
"""

import math
import random
import time
from collections.abc import Callable

from bench import harness
from fairlead.domain.analysis import classify, judge

METRICS = 1_000
POINTS = 60
LIMIT = 1.0


def run(_effort: harness.Effort) -> harness.Result:
    figures: dict[str, float | str] = {"load_average_before": harness.load_average()}
    figures.update(measure())
    return harness.Result("judge", figures)


def measure() -> dict[str, float]:
    """Seconds for 1,000 metrics of 60 points a side, by judge and by kind of data."""
    figures: dict[str, float] = {}
    for name, draw in (("latencies", _latency), ("counts", _count)):
        for bench in (judge.Bench(), judge.KAYENTA):
            seconds = _seconds(_case(draw, bench))
            figures[f"{bench.name.value} {name}, seconds"] = round(seconds, 3)
            figures[f"{bench.name.value} {name}, metrics a second"] = round(METRICS / seconds)
            figures[f"{bench.name.value} {name}, part of the limit"] = round(seconds / LIMIT, 2)
    return figures


def _case(draw: Callable[[random.Random], float], bench: judge.Bench) -> judge.Case:
    chance = random.Random(5)  # noqa: S311 - the same data in every run
    names = [f"metric {number}" for number in range(METRICS)]

    def side() -> dict[str, list[float]]:
        return {name: [draw(chance) for _ in range(POINTS)] for name in names}

    rules = tuple(classify.Rule(name) for name in names)
    return judge.Case(rules, side(), side(), bench=bench)


def _latency(chance: random.Random) -> float:
    return chance.lognormvariate(math.log(100), 0.2)


def _count(chance: random.Random) -> float:
    return float(chance.randrange(20))


def _seconds(case: judge.Case) -> float:
    """The best of three: what the code needs, not what the machine was doing besides."""
    best = math.inf
    for _ in range(3):
        began = time.perf_counter()
        judge.judge(case)
        best = min(best, time.perf_counter() - began)
    return best


BENCHMARK = harness.Benchmark("judge", "how long the judge takes for 1,000 metrics", run)
