"""A Deployment of somebody else as the primary: at rest, held by `spec.paused`, or let go.

Held, it changes no pod when its template changes, and is scaled as ever. We own that one field,
and annotations. To become another version it is let go; once all its pods are of that version it
is held again (`hold_again`). An edit that comes between the two would change pods unwatched:
it is parked as a revision, and put back when the target is held, so that it goes its own way next.

Held and just as its template says, it is put to rest, which is not paused, wherever a policy of
the cluster pauses it with the very write that changes its template (`hold_policy`).
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fairlead.areas.rollouts.domain.messages import EnsureVersion
from fairlead.areas.rollouts.domain.plan import triggers
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import children, names, observe_cluster, parsing
from fairlead.areas.rollouts.kubernetes.context import RolloutContext, RolloutContexts
from fairlead.areas.rollouts.kubernetes.routing.provider import ORDER
from fairlead.errors import Conflict, NotFound, Rejected
from fairlead.kubernetes import objects
from fairlead.kubernetes.client.client import Client

Object = dict[str, Any]

_MARKS = (ORDER, names.REVISION, names.TEMPLATE, names.CONFIGS, names.LABEL, names.PARKED)
_PARKED = f"/metadata/annotations/{names.PARKED.replace('/', '~1')}"
_TEMPLATE = "/spec/template"
_PAUSED = {names.ON_HOLD: True, names.MOVING: False}
_GIVEN_UP = {"f:template", "f:replicas"}
_ASKED = "asked whether it is guarded"
_TRIES = 5


class Templates(Protocol):
    """Where templates of versions are kept."""

    async def template(self, context: RolloutContext, version: Version) -> Object: ...

    async def keep(self, context: RolloutContext, version: Version, template: Object) -> None: ...


@dataclass(frozen=True, slots=True)
class Mark:
    """What a target is asked to hold, and how it is held."""

    version: Version
    order: int
    stance: str
    """One of names.ON_HOLD, MOVING, and AT_REST where it is that already."""

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
    if wanted.replicas is None:
        live = await _grow(contexts, context, live, wanted.at_least)
    # A target that we never held may be what is desired already; one that we did hold says so.
    stands = observe_cluster.is_rolled(live) and says == version.template
    stance = names.MOVING
    if is_there and observe_cluster.is_at_rest(live):
        stance = names.AT_REST
    elif (is_there and live["spec"].get("paused", False)) or (held is None and stands):
        stance = names.ON_HOLD
    await _mark(contexts, context, live, Mark(version, wanted.order, stance))


async def _grow(
    contexts: RolloutContexts, context: RolloutContext, live: Object, at_least: int
) -> Object:
    """Under an autoscaler, which sees none of the load that is to come."""
    replicas = observe_cluster.most_pods(context.parsed, context.snapshot, at_least)
    if int(live["spec"].get("replicas", 1)) >= replicas:
        return live
    scale: Object = {"spec": {"replicas": replicas}}
    client, key = contexts.controller_context.client, objects.key_of(live)
    answer = await _disown(client, await client.patch(names.DEPLOYMENTS, key, scale))
    contexts.cache(context, names.DEPLOYMENTS).wrote(answer)
    return answer


async def hold_again(
    contexts: RolloutContexts, context: RolloutContext, templates: Templates
) -> None:
    """Hold the target again, once it is the version that it was let go for."""
    found = context.snapshot.found(names.DEPLOYMENTS, context.parsed.names.primary)
    if not found:
        return
    version = children.version_in(found[0])
    with contextlib.suppress(Conflict):
        # Somebody else changed it meanwhile; that change brings us here again.
        if version is not None:
            await _hold_or_park(contexts, context, templates, found[0], version)
        elif (asked := _asked(contexts, context)) is not None:
            await _take_back(contexts, context, templates, found[0], asked)


def _asked(contexts: RolloutContexts, context: RolloutContext) -> Version | None:
    """What the target was last asked to hold, if it knows it no more: ours, or in the cluster."""
    asked = contexts.orders.desired(context.uid, Slot.PRIMARY.value)
    if asked is not None:
        return asked.version
    stable = parsing.status_of(context.obj).stable_revision
    key = objects.Key(
        context.parsed.namespace, children.revision_name(context.parsed, stable or "")
    )
    kept = contexts.cache(context, names.REVISIONS).get(key)
    if kept is None or objects.owner_of(kept) != context.uid:
        return None
    return children.version_in(kept)


async def _take_back(
    contexts: RolloutContexts,
    context: RolloutContext,
    templates: Templates,
    live: Object,
    asked: Version,
) -> None:
    """Somebody replaced the whole target, or deleted it and made it anew, and it knows us no more.

    What it says now would reach everybody at once: it becomes what it was, and that goes its way.
    """
    if triggers.template_hash(live["spec"]["template"]) != asked.template:
        await _park(contexts, context, templates, live, asked)
    else:
        stance = names.ON_HOLD if observe_cluster.is_rolled(live) else names.MOVING
        order = contexts.orders.order(context.uid, Slot.PRIMARY.value)
        mark = Mark(asked, order, stance, objects.version_of(live))
        await _mark(contexts, context, live, mark)
    told = f"something else replaced the target; it is brought back to {asked}"
    contexts.tell(context, "Replaced", told, warning=True)


async def _hold_or_park(
    contexts: RolloutContexts,
    context: RolloutContext,
    templates: Templates,
    live: Object,
    version: Version,
) -> None:
    differs = triggers.template_hash(live["spec"]["template"]) != version.template
    if live["spec"].get("paused"):
        await _unpark(contexts, context, templates, live)
        if not differs and parsing.parked(live) is None and observe_cluster.is_rolled(live):
            await _rest(contexts, context, live)
    elif differs:
        # A template that changed while it was let go must not go on unwatched.
        await _park(contexts, context, templates, live, version)
    elif observe_cluster.is_rolled(live) and not observe_cluster.is_at_rest(live):
        # Of this very version: an edit in this moment would be held with its first pods.
        order, at = children.order_in(live), objects.version_of(live)
        await _mark(contexts, context, live, Mark(version, order, names.ON_HOLD, at))


async def _rest(contexts: RolloutContexts, context: RolloutContext, live: Object) -> None:
    """Held for nothing: it is paused no longer, where whoever changes it pauses it."""
    version, told = children.version_in(live), children.annotations(live)
    generation = int(objects.metadata(live).get("generation") or 0)
    if version is not None and names.HELD not in told:
        # Held by a version of ours that knew no rest.
        order, at = children.order_in(live), objects.version_of(live)
        await _mark(contexts, context, live, Mark(version, order, names.ON_HOLD, at))
    elif contexts.orders.order(context.uid, _ASKED) != generation:
        contexts.orders.note(context.uid, _ASKED, generation)
        if await _is_guarded(contexts.controller_context.client, live):
            note = {"annotations": {names.HELD: _stance(names.AT_REST, live)}}
            await _merge(contexts, context, live, note, at=objects.version_of(live))


async def _is_guarded(client: Client, live: Object) -> bool:
    """Whether the API server would pause it, asked for a change of its template."""
    asked: Object = {"metadata": {"annotations": {names.PROBE: "1"}}}
    change: Object = {"spec": {"paused": None, "template": asked}}
    try:
        answer = await client.rehearse(names.DEPLOYMENTS, objects.key_of(live), change)
    except Rejected:
        # A webhook of somebody else that knows no dry run: then it stays paused.
        return False
    return bool(answer["spec"].get("paused"))


async def give_back(
    contexts: RolloutContexts, context: RolloutContext, templates: Templates
) -> None:
    """The rollout is going: the target is let go, and forgets us."""
    live = observe_cluster.slot_of(context.parsed, Slot.PRIMARY, context.snapshot)
    if live is None or not children.annotations(live).keys() & {names.REVISION, names.HELD}:
        return
    await _unpark(contexts, context, templates, live)
    marks = dict.fromkeys(_MARKS)
    with contextlib.suppress(NotFound):
        # In two writes: one that forgets how it is held is not taken for ours by the policy.
        released = {**marks, names.HELD: names.RELEASED}
        await _merge(contexts, context, live, {"annotations": released})
        await _merge(contexts, context, live, {"annotations": {names.HELD: None}})


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
    """Somebody edited the target while nothing held it: what it was to be first, then theirs."""
    edit = live["spec"]["template"]
    waits = parsing.version(edit, context.snapshot)
    await templates.keep(context, waits, edit)
    template = await templates.template(context, asked)
    template = children.with_configs(template, replace(asked, configs=_configs(live, asked)))
    order = max(children.order_in(live), contexts.orders.order(context.uid, Slot.PRIMARY.value))
    told = {
        **children.annotations(live),
        **children.marks(asked, order),
        names.PARKED: parsing.parking(waits),
        names.HELD: _stance(names.MOVING, live),
    }
    await _patch(
        contexts,
        context,
        live,
        {"op": "replace", "path": _TEMPLATE, "value": template},
        {"op": "add", "path": "/metadata/annotations", "value": told},
    )
    note = f"the target was edited while it was to be {asked}; {waits} is rolled out next"
    contexts.tell(context, "Parked", note, warning=True)


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


async def _mark(
    contexts: RolloutContexts, context: RolloutContext, live: Object, mark: Mark
) -> None:
    """One apply with what is ours of a target: the field, and what it was asked to hold."""
    version, stance = mark.version, mark.stance
    spec: Object = {"paused": _PAUSED[stance]} if stance in _PAUSED else {}
    configs = _configs(live, version)
    if configs:
        spec["template"] = {"metadata": {"annotations": {names.CONFIGS: configs}}}
    meta = {"namespace": context.parsed.namespace, "name": context.parsed.names.primary}
    if mark.at:
        meta["resourceVersion"] = mark.at
    held = _stance(stance, live) if spec.keys() & {"paused"} else _held(live)
    told = {**children.marks(version, mark.order), names.HELD: held}
    desired = {"metadata": {**meta, "annotations": told}, "spec": spec}
    client = contexts.controller_context.client
    answer = await client.apply(names.DEPLOYMENTS, desired, force=True)
    contexts.cache(context, names.DEPLOYMENTS).wrote(answer)


def _configs(live: Object, version: Version) -> str:
    """What the pods are to be told of the configs that they read: news only where they are new.

    Pods that run are told nothing: that would be a change of their template, and restart them.
    """
    held = children.version_in(live)
    if held is not None and held.configs != version.configs:
        return version.configs
    meta = live["spec"]["template"].get("metadata") or {}
    return str((meta.get("annotations") or {}).get(names.CONFIGS, ""))


def _stance(stance: str, live: Object) -> str:
    """How it is held, in words that no earlier write of ours has used."""
    return f"{stance}/{objects.metadata(live).get('generation', 0)}"


def _held(live: Object) -> str:
    return children.annotations(live).get(names.HELD, "")


async def _merge(
    contexts: RolloutContexts, context: RolloutContext, live: Object, meta: Object, at: str = ""
) -> None:
    """Not paused, with these annotations."""
    version = {"resourceVersion": at} if at else {}
    change: Object = {"metadata": {**meta, **version}, "spec": {"paused": None}}
    client = contexts.controller_context.client
    answer = await client.patch(names.DEPLOYMENTS, objects.key_of(live), change)
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
    if (held is None or says != held.template) and _is_news(context, says):
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
    """Give up our claim to template and scale; a controller may write its status in between."""
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
    """Whose fields are whose, without our claim to template and scale; None where we have none.

    A claim that we kept would be a conflict to whoever applies the target next.
    """
    ours = [
        one
        for one in fields
        if (one.get("manager"), one.get("operation")) == (manager, "Update")
        and one.get("fieldsV1", {}).get("f:spec", {}).keys() & _GIVEN_UP
    ]
    if not ours:
        return None
    return [_without_template(one) if one in ours else one for one in fields]


def _without_template(entry: Object) -> Object:
    claimed = entry["fieldsV1"]
    spec = {key: value for key, value in claimed["f:spec"].items() if key not in _GIVEN_UP}
    rest = {key: value for key, value in claimed.items() if key != "f:spec"}
    return {**entry, "fieldsV1": {**rest, "f:spec": spec} if spec else rest}
