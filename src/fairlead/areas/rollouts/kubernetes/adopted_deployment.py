"""A Deployment of somebody else as the primary: held by `spec.paused`, let go to be promoted.

Held, it changes no pod when its template changes, and is scaled as ever. We own that one field,
and annotations. To become another version it is let go; once all its pods are of that version it
is held again (`hold_again`). An edit that comes between the two would change pods unwatched:
it is parked as a revision, and put back when the target is held, so that it goes its own way next.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fairlead.areas.rollouts.domain.messages import EnsureVersion
from fairlead.areas.rollouts.domain.plan import triggers
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import children, names, observe_cluster, parsing
from fairlead.areas.rollouts.kubernetes.context import RolloutContext, RolloutContexts
from fairlead.areas.rollouts.kubernetes.routing.provider import ORDER
from fairlead.errors import Conflict, NotFound
from fairlead.kubernetes import objects
from fairlead.kubernetes.client.client import Client

Object = dict[str, Any]

_MARKS = (ORDER, names.REVISION, names.TEMPLATE, names.CONFIGS, names.LABEL, names.PARKED)
_PARKED = f"/metadata/annotations/{names.PARKED.replace('/', '~1')}"
_TEMPLATE = "/spec/template"
_TRIES = 5


class Templates(Protocol):
    """Where templates of versions are kept."""

    async def template(self, context: RolloutContext, version: Version) -> Object: ...

    async def keep(self, context: RolloutContext, version: Version, template: Object) -> None: ...


@dataclass(frozen=True, slots=True)
class Mark:
    """What a target is asked to hold, and whether it is held."""

    version: Version
    order: int
    paused: bool
    at: str = ""
    """The version of the object that this is meant for; empty: any."""


async def roll(
    contexts: RolloutContexts,
    context: RolloutContext,
    templates: Templates,
    wanted: EnsureVersion,
) -> None:
    """Let the target become this version; where it is, hold it."""
    live, version = _target(context), wanted.version
    held = children.version_in(live)
    is_there = held is not None and held.revision == version.revision
    says = triggers.template_hash(live["spec"]["template"])
    if not is_there and says != version.template:
        await _write_template(contexts, context, templates, live, version)
    await contexts.hold(context)
    # A target that we never held may be what is desired already; one that we did hold says so.
    stands = observe_cluster.is_rolled(live) and says == version.template
    hold = is_there and live["spec"].get("paused", False)
    paused = bool(hold or (held is None and stands))
    await _mark(contexts, context, Mark(version, wanted.order, paused))


async def hold_again(
    contexts: RolloutContexts, context: RolloutContext, templates: Templates
) -> None:
    """Hold the target again, once it is the version that it was let go for."""
    found = context.snapshot.found(names.DEPLOYMENTS, context.parsed.names.primary)
    version = children.version_in(found[0]) if found else None
    if version is None:
        return
    with contextlib.suppress(Conflict):
        # Somebody else changed it meanwhile; that change brings us here again.
        await _hold_or_park(contexts, context, templates, found[0], version)


async def _hold_or_park(
    contexts: RolloutContexts,
    context: RolloutContext,
    templates: Templates,
    live: Object,
    version: Version,
) -> None:
    if live["spec"].get("paused"):
        await _unpark(contexts, context, templates, live)
    elif triggers.template_hash(live["spec"]["template"]) != version.template:
        # A template that changed while it was let go must not go on unwatched.
        await _park(contexts, context, templates, live, version)
    elif observe_cluster.is_rolled(live):
        # Of this very version: an edit in this moment would be held with its first pods.
        order, at = children.order_in(live), objects.version_of(live)
        await _mark(contexts, context, Mark(version, order, paused=True, at=at))


async def give_back(
    contexts: RolloutContexts, context: RolloutContext, templates: Templates
) -> None:
    """The rollout is going: the target is let go, and forgets us."""
    live = observe_cluster.slot_of(context.parsed, Slot.PRIMARY, context.snapshot)
    if live is None or children.version_in(live) is None:
        return
    await _unpark(contexts, context, templates, live)
    marks = dict.fromkeys(_MARKS)
    change: Object = {"metadata": {"annotations": marks}, "spec": {"paused": None}}
    resource = names.DEPLOYMENTS
    with contextlib.suppress(NotFound):
        answer = await contexts.controller_context.client.patch(
            resource, objects.key_of(live), change
        )
        contexts.cache(context, names.DEPLOYMENTS).wrote(answer)


def _target(context: RolloutContext) -> Object:
    found = observe_cluster.slot_of(context.parsed, Slot.PRIMARY, context.snapshot)
    if found is None:
        # Says it as the reconciler does.
        parsing.workload_of(context.parsed, context.snapshot)
        raise NotFound("the target is gone", hint="create it again")
    return found


async def _park(
    contexts: RolloutContexts,
    context: RolloutContext,
    templates: Templates,
    live: Object,
    asked: Version,
) -> None:
    """Somebody edited the target while it becomes another version: that one first, then theirs."""
    edit = live["spec"]["template"]
    waits = parsing.version(edit, context.snapshot)
    await templates.keep(context, waits, edit)
    template = children.with_configs(await templates.template(context, asked), asked)
    parked = {"op": "add", "path": _PARKED, "value": parsing.parking(waits)}
    await _patch(
        contexts,
        context,
        live,
        {"op": "replace", "path": _TEMPLATE, "value": template},
        parked,
    )
    told = f"the target was edited during its promotion to {asked}; {waits} is rolled out next"
    contexts.tell(context, "Parked", told, warning=True)


def _is_news(context: RolloutContext, says: str) -> bool:
    """Whether a template has yet to go its way; one that was rolled back has gone it."""
    status = parsing.status_of(context.obj)
    return says == status.pending_hash or says != status.desired_hash


async def _unpark(
    contexts: RolloutContexts, context: RolloutContext, templates: Templates, live: Object
) -> None:
    """Give the target the edit that waited, unless somebody has edited it again."""
    waits, held = parsing.parked(live), children.version_in(live)
    if waits is None or held is None:
        return
    change: list[Object] = [{"op": "remove", "path": _PARKED}]
    if triggers.template_hash(live["spec"]["template"]) == held.template:
        with contextlib.suppress(NotFound):
            template = await templates.template(context, waits)
            change.append({"op": "replace", "path": _TEMPLATE, "value": template})
    await _patch(contexts, context, live, *change)


async def _mark(contexts: RolloutContexts, context: RolloutContext, mark: Mark) -> None:
    """One apply with what is ours of a target: the field, and what it was asked to hold."""
    key = objects.Key(context.parsed.namespace, context.parsed.names.primary)
    version = mark.version
    spec: Object = {"paused": mark.paused}
    if version.configs:
        told = {names.CONFIGS: version.configs}
        spec["template"] = {"metadata": {"annotations": told}}
    meta = {"namespace": key.namespace, "name": key.name}
    if mark.at:
        meta["resourceVersion"] = mark.at
    desired = {
        "metadata": {**meta, "annotations": children.marks(version, mark.order)},
        "spec": spec,
    }
    resource = names.DEPLOYMENTS
    answer = await contexts.controller_context.client.apply(resource, desired, force=True)
    contexts.cache(context, names.DEPLOYMENTS).wrote(answer)


async def _write_template(
    contexts: RolloutContexts,
    context: RolloutContext,
    templates: Templates,
    live: Object,
    version: Version,
) -> None:
    """As `kubectl rollout undo` does: a version that the target's own template does not say."""
    held, says = children.version_in(live), triggers.template_hash(live["spec"]["template"])
    if held is not None and says != held.template and _is_news(context, says):
        await _park(contexts, context, templates, live, version)
        return
    template = await templates.template(context, version)
    await _patch(contexts, context, live, {"op": "replace", "path": _TEMPLATE, "value": template})


async def _patch(
    contexts: RolloutContexts, context: RolloutContext, live: Object, *change: Object
) -> None:
    """A change of the target as it was seen; of any other it answers Conflict."""
    client = contexts.controller_context.client
    resource, key = names.DEPLOYMENTS, objects.key_of(live)
    seen = {"op": "replace", "path": "/metadata/resourceVersion", "value": objects.version_of(live)}
    answer = await client.patch(resource, key, [seen, *change], kind="json")
    contexts.cache(context, names.DEPLOYMENTS).wrote(await _disown(client, answer))


async def _disown(client: Client, answer: Object) -> Object:
    """Give up our claim to the template; a controller may write its status in between."""
    resource, key = names.DEPLOYMENTS, objects.key_of(answer)
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
