"""Figures of rollouts: where they are, how they ended, what checks said."""

from prometheus_client import registry

from fairlead.areas.rollouts.kubernetes import wiring
from fairlead.areas.rollouts.kubernetes.collectors import RolloutMetrics
from fairlead.kubernetes.objects import Key

KIND = wiring.canaries().kinds[0]


def test_rollouts_are_counted_where_they_are_and_not_where_they_were() -> None:
    metrics, found = RolloutMetrics(), registry.CollectorRegistry()
    found.register(metrics)
    for name, phase in (("a", "Stable"), ("b", "Stable"), ("b", "Paused"), ("c", "Stable")):
        metrics.phase(KIND, Key("bay", name), phase)
    metrics.gone(KIND, Key("bay", "c"))
    metrics.news("Promoted")
    metrics.verdict("Failed")

    def value(name: str, **labels: str) -> float | None:
        return found.get_sample_value(name, labels)

    kind = "canarydeployments.fairlead.dev"
    assert value("fairlead_rollouts", kind=kind, phase="Stable") == 1
    assert value("fairlead_rollouts", kind=kind, phase="Paused") == 1
    assert value("fairlead_rollouts_ended_total", ending="Promoted") == 1
    assert value("fairlead_rollouts_ended_total", ending="RolledBack") == 0
    assert value("fairlead_rollout_verdicts_total", phase="Failed") == 1
