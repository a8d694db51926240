"""Figures of rollouts: where they are, how they ended, what checks said."""

from prometheus_client import registry

from fairlead.adapters.canaries import wiring
from fairlead.adapters.canaries.figures import Figures
from fairlead.adapters.kubernetes.objects import Key

KIND = wiring.canaries().kinds[0]


def test_rollouts_are_counted_where_they_are_and_not_where_they_were() -> None:
    figures, found = Figures(), registry.CollectorRegistry()
    found.register(figures)
    for name, phase in (("a", "Stable"), ("b", "Stable"), ("b", "Paused"), ("c", "Stable")):
        figures.phase(KIND, Key("bay", name), phase)
    figures.gone(KIND, Key("bay", "c"))
    figures.news("Promoted")
    figures.verdict("Failed")

    def value(name: str, **labels: str) -> float | None:
        return found.get_sample_value(name, labels)

    kind = "canarydeployments.fairlead.dev"
    assert value("fairlead_rollouts", kind=kind, phase="Stable") == 1
    assert value("fairlead_rollouts", kind=kind, phase="Paused") == 1
    assert value("fairlead_rollouts_ended_total", ending="Promoted") == 1
    assert value("fairlead_rollouts_ended_total", ending="TakenBack") == 0
    assert value("fairlead_rollout_verdicts_total", phase="Failed") == 1
