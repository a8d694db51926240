"""Figures of rollouts for those who scrape the operator."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator

from prometheus_client import core, registry

from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Key

ENDINGS = ("Promoted", "RolledBack", "Superseded", "Reverted")


class RolloutMetrics(registry.Collector):
    """Where rollouts are, and how those that ended did."""

    def __init__(self) -> None:
        self._phases: defaultdict[str, dict[Key, str]] = defaultdict(dict)
        self._news: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()

    def phase(self, kind: Kind, key: Key, phase: str) -> None:
        # There are thousands of objects and a dozen of phases.
        self._phases[str(kind.api)][key] = sys.intern(phase)

    def gone(self, kind: Kind, key: Key) -> None:
        self._phases[str(kind.api)].pop(key, None)

    def news(self, kind: str) -> None:
        self._news[kind] += 1

    def verdict(self, phase: str) -> None:
        self._verdicts[phase] += 1

    def collect(self) -> Iterator[core.Metric]:
        shown = core.GaugeMetricFamily(
            "fairlead_rollouts", "Rollouts by kind and phase.", labels=("kind", "phase")
        )
        counts = Counter(
            (kind, phase) for kind, phases in self._phases.items() for phase in phases.values()
        )
        for (kind, phase), count in sorted(counts.items()):
            shown.add_metric((kind, phase), count)
        yield shown
        ended = core.CounterMetricFamily(
            "fairlead_rollouts_ended", "Rollouts that ended, by how.", labels=("ending",)
        )
        for ending in ENDINGS:
            ended.add_metric((ending,), self._news[ending])
        yield ended
        verdicts = core.CounterMetricFamily(
            "fairlead_rollout_verdicts", "Measurements of checks, by result.", labels=("phase",)
        )
        for phase, count in sorted(self._verdicts.items()):
            verdicts.add_metric((phase,), count)
        yield verdicts
