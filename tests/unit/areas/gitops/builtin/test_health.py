"""Whether an object works, by what its controller says of it."""

from typing import Any

import pytest

from fairlead.areas.gitops.builtin.health import judged
from fairlead.areas.gitops.domain.messages import Health

READY = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


def health(kind: str, spec: Any = None, status: Any = None, **meta: Any) -> Health:
    return judged({"kind": kind, "metadata": meta, "spec": spec, "status": status})[0]


@pytest.mark.parametrize(
    ("kind", "spec", "status", "expected"),
    [
        ("ConfigMap", None, None, Health.HEALTHY),
        ("Deployment", {"replicas": 2}, READY, Health.HEALTHY),
        ("Deployment", {"replicas": 2}, {**READY, "updatedReplicas": 1}, Health.PROGRESSING),
        ("Deployment", {"replicas": 2}, {**READY, "availableReplicas": 1}, Health.PROGRESSING),
        ("Deployment", {"replicas": 1}, READY, Health.PROGRESSING),
        ("Deployment", {"paused": True}, READY, Health.SUSPENDED),
        ("Deployment", {}, {}, Health.PROGRESSING),
        (
            "Deployment",
            {},
            {
                **READY,
                "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}],
            },
            Health.DEGRADED,
        ),
        ("StatefulSet", {}, {"observedGeneration": 1, "updatedReplicas": 1}, Health.PROGRESSING),
        ("StatefulSet", {"replicas": 0}, {"observedGeneration": 1}, Health.HEALTHY),
        (
            "StatefulSet",
            {"updateStrategy": {"type": "OnDelete"}},
            {"observedGeneration": 1, "readyReplicas": 1},
            Health.HEALTHY,
        ),
        ("DaemonSet", {}, {}, Health.PROGRESSING),
        ("DaemonSet", {}, {"desiredNumberScheduled": 0}, Health.HEALTHY),
        ("DaemonSet", {}, {"desiredNumberScheduled": 1, "numberAvailable": 1}, Health.PROGRESSING),
        (
            "ReplicaSet",
            {},
            {"conditions": [{"type": "ReplicaFailure", "status": "True"}]},
            Health.DEGRADED,
        ),
        ("Job", {}, {"conditions": [{"type": "Complete", "status": "True"}]}, Health.HEALTHY),
        ("Job", {}, {"conditions": [{"type": "Failed", "status": "True"}]}, Health.DEGRADED),
        ("Job", {"suspend": True}, {}, Health.SUSPENDED),
        ("Job", {}, {"active": 1}, Health.PROGRESSING),
        ("CronJob", {"suspend": True}, {}, Health.SUSPENDED),
        ("CronJob", {}, {}, Health.HEALTHY),
        ("PersistentVolumeClaim", {}, {"phase": "Bound"}, Health.HEALTHY),
        ("PersistentVolumeClaim", {}, {"phase": "Lost"}, Health.DEGRADED),
        ("PersistentVolumeClaim", {}, {}, Health.PROGRESSING),
        ("Pod", {}, {"phase": "Succeeded"}, Health.HEALTHY),
        ("Pod", {}, {"phase": "Failed"}, Health.DEGRADED),
        ("Pod", {}, {"phase": "Running"}, Health.PROGRESSING),
        (
            "Pod",
            {},
            {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            Health.HEALTHY,
        ),
        ("Service", {"type": "LoadBalancer"}, {}, Health.PROGRESSING),
        ("Service", {"type": "ClusterIP"}, {}, Health.HEALTHY),
        ("Gizmo", {}, {"conditions": [{"type": "Stalled", "status": "True"}]}, Health.DEGRADED),
        (
            "Gizmo",
            {},
            {"conditions": [{"type": "Reconciling", "status": "True"}]},
            Health.PROGRESSING,
        ),
        ("Gizmo", {}, {"conditions": [{"type": "Ready", "status": "False"}]}, Health.PROGRESSING),
        ("Gizmo", {}, {"conditions": [{"type": "Ready", "status": "True"}]}, Health.HEALTHY),
    ],
)
def test_each_kind_is_judged_by_its_own_rule(
    kind: str, spec: Any, status: Any, expected: Health
) -> None:
    assert health(kind, spec, status) is expected


def test_what_its_controller_has_not_seen_or_what_is_going_is_progressing() -> None:
    assert health("Gizmo", None, {"observedGeneration": 1}, generation=2) is Health.PROGRESSING
    assert health("ConfigMap", deletionTimestamp="now") is Health.PROGRESSING
