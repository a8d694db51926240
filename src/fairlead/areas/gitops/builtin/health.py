"""Whether an object works: by the conventions of kstatus, and by rules of their own for some."""

from collections.abc import Callable, Mapping
from typing import Any

from fairlead.areas.gitops.domain.messages import Health

Object = dict[str, Any]
Judged = tuple[Health, str]
_HEALTHY: Judged = (Health.HEALTHY, "")


def judged(obj: Object) -> Judged:
    """Its health, and why it is not healthy."""
    if "deletionTimestamp" in (obj.get("metadata") or {}):
        return Health.PROGRESSING, "it is being deleted"
    status = obj.get("status") or {}
    seen = status.get("observedGeneration")
    generation = (obj.get("metadata") or {}).get("generation")
    if isinstance(seen, int) and isinstance(generation, int) and seen < generation:
        return Health.PROGRESSING, "its controller has not seen the last change"
    own = _RULES.get(str(obj.get("kind")), _by_conditions)
    return own(obj.get("spec") or {}, status)


def _deployment(spec: Object, status: Object) -> Judged:
    conditions = _conditions(status)
    progressing = conditions.get("Progressing", {})
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return Health.DEGRADED, str(progressing.get("message", "its deadline is exceeded"))
    if spec.get("paused"):
        return Health.SUSPENDED, "it is paused"
    if "observedGeneration" not in status:
        return Health.PROGRESSING, "its controller has not seen it"
    return _replicas(spec, status, "updatedReplicas", "availableReplicas")


def _stateful_set(spec: Object, status: Object) -> Judged:
    if "observedGeneration" not in status:
        return Health.PROGRESSING, "its controller has not seen it"
    if (spec.get("updateStrategy") or {}).get("type") == "OnDelete":
        return _replicas(spec, status, "readyReplicas")
    return _replicas(spec, status, "updatedReplicas", "readyReplicas")


def _replica_set(spec: Object, status: Object) -> Judged:
    failure = _conditions(status).get("ReplicaFailure", {})
    if failure.get("status") == "True":
        return Health.DEGRADED, str(failure.get("message", ""))
    return _replicas(spec, status, "availableReplicas")


def _replicas(spec: Object, status: Object, *fields: str) -> Judged:
    wanted = int(spec.get("replicas", 1))
    for field in fields:
        have = int(status.get(field) or 0)
        if have < wanted:
            return Health.PROGRESSING, f"{field}: {have} of {wanted}"
    if (left := int(status.get("replicas") or 0)) > wanted:
        return Health.PROGRESSING, f"{left - wanted} old replicas are still there"
    return _HEALTHY


def _daemon_set(_: Object, status: Object) -> Judged:
    wanted = status.get("desiredNumberScheduled")
    if wanted is None:
        return Health.PROGRESSING, "its controller has not seen it"
    for field in ("updatedNumberScheduled", "numberAvailable"):
        have = int(status.get(field) or 0)
        if have < int(wanted):
            return Health.PROGRESSING, f"{field}: {have} of {wanted}"
    return _HEALTHY


def _job(spec: Object, status: Object) -> Judged:
    conditions = _conditions(status)
    if (failed := conditions.get("Failed", {})).get("status") == "True":
        return Health.DEGRADED, str(failed.get("message", "it failed"))
    if conditions.get("Complete", {}).get("status") == "True":
        return _HEALTHY
    if spec.get("suspend"):
        return Health.SUSPENDED, "it is suspended"
    return Health.PROGRESSING, "it is running"


def _cron_job(spec: Object, _: Object) -> Judged:
    return (Health.SUSPENDED, "it is suspended") if spec.get("suspend") else _HEALTHY


def _claim(_: Object, status: Object) -> Judged:
    match status.get("phase"):
        case "Bound":
            return _HEALTHY
        case "Lost":
            return Health.DEGRADED, "its volume is lost"
        case _:
            return Health.PROGRESSING, "it is not bound"


def _pod(_: Object, status: Object) -> Judged:
    match status.get("phase"):
        case "Succeeded":
            return _HEALTHY
        case "Failed":
            return Health.DEGRADED, str(status.get("message", "it failed"))
        case "Running" if _conditions(status).get("Ready", {}).get("status") == "True":
            return _HEALTHY
        case _:
            return Health.PROGRESSING, "it is not ready"


def _service(spec: Object, status: Object) -> Judged:
    if spec.get("type") != "LoadBalancer" or (status.get("loadBalancer") or {}).get("ingress"):
        return _HEALTHY
    return Health.PROGRESSING, "its load balancer has no address"


def _by_conditions(_: Object, status: Object) -> Judged:
    """What kstatus reads of any kind: an abnormal condition, else Ready, else it is there."""
    conditions = _conditions(status)
    for name, health in (("Stalled", Health.DEGRADED), ("Reconciling", Health.PROGRESSING)):
        if (found := conditions.get(name, {})).get("status") == "True":
            return health, str(found.get("message", ""))
    ready = conditions.get("Ready", {})
    if ready.get("status") in ("False", "Unknown"):
        return Health.PROGRESSING, str(ready.get("message", ""))
    return _HEALTHY


def _conditions(status: Object) -> Mapping[str, Object]:
    found = status.get("conditions")
    listed = found if isinstance(found, list) else []
    return {str(one.get("type")): one for one in listed if isinstance(one, dict)}


_RULES: Mapping[str, Callable[[Object, Object], Judged]] = {
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "ReplicaSet": _replica_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
    "Service": _service,
}
