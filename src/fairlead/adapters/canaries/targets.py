"""A Deployment of somebody else as the primary: held by `spec.paused`, let go to be promoted.

Held, it changes no pod when its template changes, and is scaled as ever. We own that one field,
and annotations. To become another version it is let go; once all its pods are of that version it
is held again (`tend`).
"""

import contextlib
from typing import Any

from fairlead.adapters.canaries import children, names, reading, seeing
from fairlead.adapters.canaries.desk import Case, Desk
from fairlead.adapters.canaries.provider import ORDER
from fairlead.adapters.kubernetes import objects, rights
from fairlead.domain.rollouts import triggers
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.spec import Version
from fairlead.errors import NotFound

Object = dict[str, Any]

_MARKS = (ORDER, names.REVISION, names.TEMPLATE, names.CONFIGS, names.LABEL)


async def roll(desk: Desk, case: Case, version: Version, template: Object, order: int) -> None:
    """Let the target become this version; where it is, hold it."""
    live = _target(case)
    held = children.version_in(live)
    is_there = held is not None and held.revision == version.revision
    says = triggers.template_hash(live["spec"]["template"])
    if not is_there and says != version.template:
        await _write_template(desk, case, live, template)
    await desk.hold(case)
    # A target that we never held may be what is wanted already; one that we did hold says so.
    stands = seeing.is_rolled(live) and says == version.template
    hold = is_there and live["spec"].get("paused", False)
    await _mark(desk, case, version, order, paused=bool(hold or (held is None and stands)))


async def tend(desk: Desk, case: Case) -> None:
    """Hold the target again, once it is the version that it was let go for."""
    found = case.around.found(names.DEPLOYMENTS, case.reading.names.primary)
    version = children.version_in(found[0]) if found else None
    if version is None or found[0]["spec"].get("paused"):
        return
    says = triggers.template_hash(found[0]["spec"]["template"])
    # A template that changed while it was let go must not go on unwatched.
    if says != version.template or seeing.is_rolled(found[0]):
        await _mark(desk, case, version, children.order_in(found[0]), paused=True)


async def give_back(desk: Desk, case: Case) -> None:
    """The rollout is going: the target is let go, and forgets us."""
    live = seeing.slot_of(case.reading, Slot.PRIMARY, case.around)
    if live is None or children.version_in(live) is None:
        return
    marks = dict.fromkeys(_MARKS)
    change: Object = {"metadata": {"annotations": marks}, "spec": {"paused": None}}
    resource = rights.resource(names.DEPLOYMENTS)
    with contextlib.suppress(NotFound):
        answer = await desk.gear.client.patch(resource, objects.key_of(live), change)
        desk.cache(case, names.DEPLOYMENTS).wrote(answer)


def _target(case: Case) -> Object:
    found = seeing.slot_of(case.reading, Slot.PRIMARY, case.around)
    if found is None:
        # Says it as the door does.
        reading.workload_of(case.reading, case.around)
        raise NotFound("the target is gone", hint="create it again")
    return found


async def _mark(desk: Desk, case: Case, version: Version, order: int, *, paused: bool) -> None:
    """One apply with what is ours of a target: the field, and what it was asked to hold."""
    key = objects.Key(case.reading.namespace, case.reading.names.primary)
    spec: Object = {"paused": paused}
    if version.configs:
        told = {names.CONFIGS: version.configs}
        spec["template"] = {"metadata": {"annotations": told}}
    wish = {
        "metadata": {
            "namespace": key.namespace,
            "name": key.name,
            "annotations": children.marks(version, order),
        },
        "spec": spec,
    }
    resource = rights.resource(names.DEPLOYMENTS)
    answer = await desk.gear.client.apply(resource, wish, force=True)
    desk.cache(case, names.DEPLOYMENTS).wrote(answer)


async def _write_template(desk: Desk, case: Case, live: Object, template: Object) -> None:
    """As `kubectl rollout undo` does: a version that the target's own template does not say."""
    version = objects.version_of(live)
    change: list[Object] = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/spec/template", "value": template},
    ]
    resource = rights.resource(names.DEPLOYMENTS)
    answer = await desk.gear.client.patch(resource, objects.key_of(live), change, kind="json")
    desk.cache(case, names.DEPLOYMENTS).wrote(answer)
