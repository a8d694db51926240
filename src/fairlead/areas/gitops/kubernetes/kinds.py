"""The kind of a deployment from git; it forwards what a user wants, and decides nothing."""

from collections.abc import Mapping
from typing import Any

import msgspec

from fairlead.areas.gitops.domain import messages, valid_work
from fairlead.areas.gitops.domain.deployment.machine import DEPLOYMENT
from fairlead.areas.gitops.kubernetes import types
from fairlead.kubernetes import objects
from fairlead.kubernetes.kinds import (
    InvalidSpec,
    Kind,
    Level,
    ObservedObject,
    Request,
    Snapshot,
    round_of,
)
from fairlead.kubernetes.objects import Object, Resource
from fairlead.kubernetes.schema import Column, KindSchema

DEPLOYMENTS = Resource(
    "managed-gitops.redhat.com", "v1alpha1", "gitopsdeployments", "GitOpsDeployment"
)
SYNC = "fairlead.dev/sync"
"""Each new value of this annotation syncs a manual deployment once."""

_COLUMNS = (
    Column("Sync Status", ".status.sync.status"),
    Column("Health Status", ".status.health.status"),
    Column("Revision", ".status.sync.revision", priority=1),
    Column("Age", ".metadata.creationTimestamp"),
)


def observe(obj: Object, _: Snapshot) -> ObservedObject:
    generation = int(objects.metadata(obj).get("generation") or 0)
    told = messages.Declare(KIND.subject(obj), generation, intent(obj))
    return ObservedObject({"intent": Level(told)}, requests=_requests(obj))


def intent(obj: Object) -> messages.Intent:
    """What the spec says; InvalidSpec where the definition would not have let it in."""
    try:
        spec = msgspec.convert(obj.get("spec"), types.GitOpsDeploymentSpec)
    except msgspec.ValidationError as error:
        raise InvalidSpec(f"spec: {error}", hint="apply the definition of the kind") from error
    return messages.Intent(
        repo_url=spec.source.repo_url,
        path=spec.source.path,
        target_revision=spec.source.target_revision,
        environment=spec.destination.environment,
        namespace=spec.destination.namespace,
        sync_options=tuple(spec.sync_policy.sync_options if spec.sync_policy else ()),
        type=spec.type,
    )


def delete(obj: Object | None) -> messages.Delete:
    return messages.Delete(None if obj is None else KIND.subject(obj))


def adopt(obj: Object) -> messages.Adopt | None:
    """What was deployed, for a store that does not know; a label on each says whether it is so."""
    status = obj.get("status") or {}
    found = status.get("resources")
    listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    if not round_of(status):
        return None
    return messages.Adopt(round_of(status), tuple(_ref(each) for each in listed))


def review(new: Object, _: Object | None) -> list[tuple[str, str]]:
    try:
        return list(valid_work.problems(intent(new)))
    except InvalidSpec as error:
        return [("spec", error.message)]


def _requests(obj: Object) -> Mapping[str, Request]:
    value = (objects.metadata(obj).get("annotations") or {}).get(SYNC)
    done = ((obj.get("status") or {}).get("requests") or {}).get("sync")
    return {"sync": Request(value, messages.Sync(value))} if value and value != done else {}


def _ref(told: Mapping[str, Any]) -> messages.ObjectRef:
    fields = ("group", "version", "kind", "name")
    return messages.ObjectRef(*(str(told.get(field, "")) for field in fields))


KIND = Kind(
    api=DEPLOYMENTS,
    machine=DEPLOYMENT,
    shown=KindSchema(
        types.GitOpsDeploymentSpec,
        types.GitOpsDeploymentStatus,
        short_names=("gitopsdepl",),
        columns=_COLUMNS,
    ),
    observe=observe,
    delete=delete,
    adopt=adopt,
    review=review,
    reads=lambda status: status.get("requests"),
    finalizer=messages.FINALIZER,
)
