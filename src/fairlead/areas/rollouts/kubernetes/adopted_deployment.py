"""A Deployment of somebody else as the primary: held by `spec.paused`, let go to be promoted.

Held, it changes no pod when its template changes, and is scaled as ever. We own that one field,
and annotations. To become another version it is let go; once all its pods are of that version it
is held again (`tend`). An edit that comes between the two would change pods unwatched: it is
parked as a revision, and put back when the target is held, so that it goes its own way next.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fairlead.adapters.canaries import children, names, reading, seeing
from fairlead.adapters.canaries.desk import Case, Desk
from fairlead.adapters.canaries.provider import ORDER
from fairlead.adapters.kubernetes import objects, rights
from fairlead.adapters.kubernetes.client import Client
from fairlead.domain.rollouts import triggers
from fairlead.domain.rollouts.messages import EnsureVersion, Slot
from fairlead.domain.rollouts.spec import Version
from fairlead.errors import Conflict, NotFound

Object = dict[str, Any]

_MARKS = (ORDER, names.REVISION, names.TEMPLATE, names.CONFIGS, names.LABEL, names.PARKED)
_PARKED = f"/metadata/annotations/{names.PARKED.replace('/', '~1')}"
_TEMPLATE = "/spec/template"
_TRIES = 5


class Templates(Protocol):
    """Where templates of versions are kept."""

    async def template(self, case: Case, version: Version) -> Object: ...

    async def keep(self, case: Case, version: Version, template: Object) -> None: ...


@dataclass(frozen=True, slots=True)
class Mark:
    """What a target is asked to hold, and whether it is held."""

    version: Version
    order: int
    paused: bool
    at: str = ""
    """The version of the object that this is meant for; empty: any."""


async def roll(desk: Desk, case: Case, templates: Templates, wanted: EnsureVersion) -> None:
    """Let the target become this version; where it is, hold it."""
    live, version = _target(case), wanted.version
    held = children.version_in(live)
    is_there = held is not None and held.revision == version.revision
    says = triggers.template_hash(live["spec"]["template"])
    if not is_there and says != version.template:
        await _write_template(desk, case, templates, live, version)
    await desk.hold(case)
    # A target that we never held may be what is wanted already; one that we did hold says so.
    stands = seeing.is_rolled(live) and says == version.template
    hold = is_there and live["spec"].get("paused", False)
    paused = bool(hold or (held is None and stands))
    await _mark(desk, case, Mark(version, wanted.order, paused))


async def tend(desk: Desk, case: Case, templates: Templates) -> None:
    """Hold the target again, once it is the version that it was let go for."""
    found = case.around.found(names.DEPLOYMENTS, case.reading.names.primary)
    version = children.version_in(found[0]) if found else None
    if version is None:
        return
    with contextlib.suppress(Conflict):
        # Somebody else changed it meanwhile; that change brings us here again.
        await _hold_or_park(desk, case, templates, found[0], version)


async def _hold_or_park(
    desk: Desk, case: Case, templates: Templates, live: Object, version: Version
) -> None:
    if live["spec"].get("paused"):
        await _unpark(desk, case, templates, live)
    elif triggers.template_hash(live["spec"]["template"]) != version.template:
        # A template that changed while it was let go must not go on unwatched.
        await _park(desk, case, templates, live, version)
    elif seeing.is_rolled(live):
        # Of this very version: an edit in this moment would be held with its first pods.
        order, at = children.order_in(live), objects.version_of(live)
        await _mark(desk, case, Mark(version, order, paused=True, at=at))


async def give_back(desk: Desk, case: Case, templates: Templates) -> None:
    """The rollout is going: the target is let go, and forgets us."""
    live = seeing.slot_of(case.reading, Slot.PRIMARY, case.around)
    if live is None or children.version_in(live) is None:
        return
    await _unpark(desk, case, templates, live)
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


async def _park(desk: Desk, case: Case, templates: Templates, live: Object, asked: Version) -> None:
    """Somebody edited the target while it becomes another version: that one first, then theirs."""
    edit = live["spec"]["template"]
    waits = reading.version(edit, case.around)
    await templates.keep(case, waits, edit)
    template = children.with_configs(await templates.template(case, asked), asked)
    parked = {"op": "add", "path": _PARKED, "value": reading.parking(waits)}
    await _patch(desk, case, live, {"op": "replace", "path": _TEMPLATE, "value": template}, parked)
    told = f"the target was edited while it becomes {asked}: {waits} waits, and goes its way next"
    desk.tell(case, "Parked", told, warning=True)


def _is_news(case: Case, says: str) -> bool:
    """Whether a template has yet to go its way; one that was taken back has gone it."""
    status = case.obj.get("status") or {}
    book = ((status.get("memory") or {}).get("data") or {}).get("book") or {}
    due = ((book.get("due") or {}).get("version") or {}).get("template")
    return says == due or says != status.get("wantedHash")


async def _unpark(desk: Desk, case: Case, templates: Templates, live: Object) -> None:
    """Give the target the edit that waited, unless somebody has edited it again."""
    waits, held = reading.parked(live), children.version_in(live)
    if waits is None or held is None:
        return
    change: list[Object] = [{"op": "remove", "path": _PARKED}]
    if triggers.template_hash(live["spec"]["template"]) == held.template:
        with contextlib.suppress(NotFound):
            template = await templates.template(case, waits)
            change.append({"op": "replace", "path": _TEMPLATE, "value": template})
    await _patch(desk, case, live, *change)


async def _mark(desk: Desk, case: Case, mark: Mark) -> None:
    """One apply with what is ours of a target: the field, and what it was asked to hold."""
    key = objects.Key(case.reading.namespace, case.reading.names.primary)
    version = mark.version
    spec: Object = {"paused": mark.paused}
    if version.configs:
        told = {names.CONFIGS: version.configs}
        spec["template"] = {"metadata": {"annotations": told}}
    meta = {"namespace": key.namespace, "name": key.name}
    if mark.at:
        meta["resourceVersion"] = mark.at
    wish = {"metadata": {**meta, "annotations": children.marks(version, mark.order)}, "spec": spec}
    resource = rights.resource(names.DEPLOYMENTS)
    answer = await desk.gear.client.apply(resource, wish, force=True)
    desk.cache(case, names.DEPLOYMENTS).wrote(answer)


async def _write_template(
    desk: Desk, case: Case, templates: Templates, live: Object, version: Version
) -> None:
    """As `kubectl rollout undo` does: a version that the target's own template does not say."""
    held, says = children.version_in(live), triggers.template_hash(live["spec"]["template"])
    if held is not None and says != held.template and _is_news(case, says):
        await _park(desk, case, templates, live, version)
        return
    template = await templates.template(case, version)
    await _patch(desk, case, live, {"op": "replace", "path": _TEMPLATE, "value": template})


async def _patch(desk: Desk, case: Case, live: Object, *change: Object) -> None:
    """A change of the target as it was seen; of any other it answers Conflict."""
    client = desk.gear.client
    resource, key = rights.resource(names.DEPLOYMENTS), objects.key_of(live)
    seen = {"op": "replace", "path": "/metadata/resourceVersion", "value": objects.version_of(live)}
    answer = await client.patch(resource, key, [seen, *change], kind="json")
    desk.cache(case, names.DEPLOYMENTS).wrote(await _disown(client, answer))


async def _disown(client: Client, answer: Object) -> Object:
    """Give up our claim to the template; a controller may write its status in between."""
    resource, key = rights.resource(names.DEPLOYMENTS), objects.key_of(answer)
    for _ in range(_TRIES):
        fields = disowned(answer["metadata"].get("managedFields") or [], client.manager)
        if fields is None:
            break
        change: list[Object] = [
            {"op": "replace", "path": f"/metadata/{name}", "value": value}
            for name, value in (
                ("resourceVersion", objects.version_of(answer)),
                ("managedFields", fields),
            )
        ]
        try:
            return await client.patch(resource, key, change, kind="json")
        except Conflict:
            answer = await client.get(resource, key)
    return answer


def disowned(fields: Sequence[Object], manager: str) -> list[Object] | None:
    """Whose fields are whose, without our claim to a template; None where we have none.

    A claim that we kept would be a conflict to whoever applies the target next.
    """
    ours = [
        one
        for one in fields
        if (one.get("manager"), one.get("operation")) == (manager, "Update")
        and "f:template" in one.get("fieldsV1", {}).get("f:spec", {})
    ]
    if not ours:
        return None
    return [_without_template(one) if one in ours else one for one in fields]


def _without_template(entry: Object) -> Object:
    claimed = entry["fieldsV1"]
    spec = {key: value for key, value in claimed["f:spec"].items() if key != "f:template"}
    rest = {key: value for key, value in claimed.items() if key != "f:spec"}
    return {**entry, "fieldsV1": {**rest, "f:spec": spec} if spec else rest}
