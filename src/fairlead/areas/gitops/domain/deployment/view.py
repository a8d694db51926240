"""What a deployment's object shows of it: the status of the document's kind, and its conditions."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from fairlead.areas.gitops.domain.deployment.state import Deployment, Phase, is_out_of_sync
from fairlead.areas.gitops.domain.messages import Health, Observed, SyncStatus
from fairlead.kubernetes.messages import Condition

ERROR = "ErrorOccurred"
RESOLVED = "ErrorOccurredResolved"
_ORDER = tuple(Health)


@dataclass(frozen=True, slots=True)
class View:
    """A status, and the conditions beside it."""

    status: dict[str, Any]
    conditions: tuple[Condition, ...]


def of(state: Deployment) -> View:
    status: dict[str, Any] = {
        "sync": {"status": sync(state).value, "revision": state.revision},
        "health": {"status": health(state).value, "message": _worst(state)},
        "resources": [_resource(each, state) for each in state.objects],
        **_reconciled(state),
        **_operation(state),
    }
    return View(status, _conditions(state))


def sync(state: Deployment) -> SyncStatus:
    if not state.objects:
        return SyncStatus.UNKNOWN
    return SyncStatus.OUT_OF_SYNC if is_out_of_sync(state) else SyncStatus.SYNCED


def health(state: Deployment) -> Health:
    """That of the worst; nothing yet is missing."""
    if not state.objects:
        return Health.MISSING
    return max((each.health for each in state.objects), key=_ORDER.index)


def _worst(state: Deployment) -> str:
    found = max(state.objects, key=lambda each: _ORDER.index(each.health), default=None)
    if found is None or not found.message:
        return ""
    return f"{found.ref.kind} {found.ref.name}: {found.message}"


def _resource(each: Observed, state: Deployment) -> dict[str, Any]:
    assert state.subject is not None
    return {
        "group": each.ref.group,
        "version": each.ref.version,
        "kind": each.ref.kind,
        "namespace": state.subject.namespace,
        "name": each.ref.name,
        "status": each.sync.value,
        "health": {"status": each.health.value, "message": each.message},
    }


def _reconciled(state: Deployment) -> dict[str, Any]:
    """Of which intent the rest of the status tells."""
    intent, subject = state.intent, state.subject
    if intent is None or subject is None or not state.objects:
        return {}
    source = {
        "path": intent.path,
        "repoURL": intent.repo_url,
        "branch": intent.target_revision,
    }
    where = {"name": intent.environment, "namespace": intent.namespace or subject.namespace}
    return {"reconciledState": {"source": source, "destination": where}}


def _operation(state: Deployment) -> dict[str, Any]:
    operation, times = state.operation, state.times
    if operation is None or times.started is None:
        return {}
    shown = {
        "operation": {"id": operation.operation_id, "resourceType": operation.resource_type},
        "phase": _phase(state),
        "message": state.error,
        "retryCount": state.tries if state.error else 0,
        "startedAt": _time(times.started),
    }
    if times.finished is not None:
        shown["finishedAt"] = _time(times.finished)
    return {"operationState": shown}


def _phase(state: Deployment) -> str:
    if state.error:
        return "Failed"
    if state.removing:
        return "Terminating"
    return "Succeeded" if state.times.finished else "Running"


def _conditions(state: Deployment) -> tuple[Condition, ...]:
    if state.error:
        failed = Condition(ERROR, status=True, reason=ERROR, message=state.error)
        return (failed, Condition("Ready", status=False, reason=ERROR, message=state.error))
    fine = Condition(ERROR, status=False, reason=RESOLVED)
    return (fine, _ready(state))


def _ready(state: Deployment) -> Condition:
    found, healthy = sync(state), health(state)
    if state.removing:
        return Condition("Ready", status=False, reason="Removing")
    if state.phase is not Phase.WAITING and not state.objects:
        return Condition("Ready", status=None, reason="Progressing")
    if found is not SyncStatus.SYNCED:
        return Condition("Ready", status=False, reason=found.value)
    is_ready = healthy in (Health.HEALTHY, Health.SUSPENDED)
    told = f"{state.revision[:12]} is applied"
    return Condition("Ready", status=is_ready, reason=healthy.value, message=told)


def _time(at: dt.datetime) -> str:
    return at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
