"""Rollouts as steps of plans on Kubernetes: a plan's images and counts, written into the object.

ApplyVersion ──► the object, or its target ──► the request that it now makes ──► Applied

The operator has no file of the plan, so the step brings its content. A Deployment gets the fields
by server-side apply, under a manager of their own: who else applies that image hears of a conflict.
An object with its own `deploymentSpec` has lists without keys, so they are written whole, over the
very version that was read.
"""

from dataclasses import replace
from typing import Any

import msgspec

from fairlead import errors
from fairlead.areas.rollouts.domain import messages, plan_step
from fairlead.areas.rollouts.kubernetes import names, parsing
from fairlead.areas.rollouts.kubernetes.context import RolloutContext, RolloutContexts
from fairlead.areas.rollouts.kubernetes.kinds import RolloutKinds
from fairlead.engine import outbox
from fairlead.kubernetes import objects
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.kinds import stream_key
from fairlead.kubernetes.objects import Key, Object

MANAGER = "fairlead-plans"
SCALED_FROM = "fairlead.dev/scaled-from"
"""How many pods there were before a plan stopped them; who brings the next version takes it off."""


class ContainerWords(msgspec.Struct, frozen=True):
    """One container of the version: what changes of it, and nothing else does."""

    name: str
    image: str
    env: dict[str, str] = {}


class Content(msgspec.Struct, frozen=True):
    """What a plan brings."""

    containers: list[ContainerWords]


def handlers(contexts: RolloutContexts, canaries: RolloutKinds) -> outbox.Handlers:
    async def apply(
        effect: plan_step.ApplyVersion, _: outbox.EffectContext
    ) -> plan_step.Applied | plan_step.NotApplied:
        try:
            content = msgspec.json.decode(effect.content, type=Content)
            async with contexts.turn(_whole_name(contexts, effect.rollout)) as context:
                if context is None:
                    return plan_step.NotApplied(f"it is being deleted: {effect.rollout}")
                await _write(contexts, context, content, asleep=effect.asleep)
                request = _request(context, canaries)
                return plan_step.Applied(replace(request, by=effect.by), request.name)
        except msgspec.MsgspecError as error:
            return plan_step.NotApplied(f"not the content of a version: {error}")
        except errors.Rejected as error:
            return plan_step.NotApplied(error.message)

    return {plan_step.ApplyVersion: outbox.Handler(apply, attempts=50)}


def _whole_name(contexts: RolloutContexts, called: str) -> str:
    """The name of its stream; a plan knows no UID, nor which kind it is."""
    key = Key(*called.partition("/")[::2])
    caches = [one.held.objects for one in contexts.controller_context.controllers]
    found = [obj for obj in (cache.get(key) for cache in caches) if obj is not None]
    if not found:
        raise errors.NotFound(f"no such rollout in this cluster: {called}", hint="create it first")
    if len(found) > 1:
        kinds = " and ".join(sorted(str(obj["kind"]) for obj in found))
        raise errors.Rejected(f"two rollouts have this name: {called}: {kinds}", hint="delete one")
    return stream_key(found[0])


async def _write(
    contexts: RolloutContexts, context: RolloutContext, content: Content, *, asleep: bool
) -> None:
    if context.parsed.is_target:
        await _write_target(contexts, context, content, asleep=asleep)
        return
    cache, obj = context.controller.held.objects, context.obj
    workload = obj["spec"]["deploymentSpec"]
    change = _scaled(obj, workload, asleep=asleep)
    spec: Object = {**change.pop("spec", {})}
    if not asleep:
        containers = _merged(workload["template"]["spec"]["containers"], content)
        if containers != workload["template"]["spec"]["containers"]:
            spec["template"] = {"spec": {"containers": containers}}
    if spec:
        change["spec"] = {"deploymentSpec": spec}
    await _patch(contexts, cache, obj, change)


async def _write_target(
    contexts: RolloutContexts, context: RolloutContext, content: Content, *, asleep: bool
) -> None:
    # Says it as the reconciler does, where there is none.
    parsing.workload_of(context.parsed, context.snapshot)
    (live,) = context.snapshot.found(names.DEPLOYMENTS, context.parsed.names.primary)[:1]
    cache = contexts.cache(context, names.DEPLOYMENTS)
    if not asleep:
        _merged(live["spec"]["template"]["spec"]["containers"], content)
        key = objects.key_of(live)
        desired = {
            "metadata": {"namespace": key.namespace, "name": key.name},
            "spec": {
                "template": {"spec": {"containers": [_fields(one) for one in content.containers]}}
            },
        }
        client = contexts.controller_context.client
        live = await client.apply(cache.resource, desired, force=True, manager=MANAGER)
        cache.wrote(live)
    await _patch(contexts, cache, live, _scaled(live, live["spec"], asleep=asleep))


def _scaled(obj: Object, workload: Object, *, asleep: bool) -> Object:
    """The change to no pods, or back to as many as there were; where it stands so, none."""
    kept = (objects.metadata(obj).get("annotations") or {}).get(SCALED_FROM)
    count = int(workload.get("replicas", 1))
    if asleep and (kept is None or count):
        # Asked twice, the second one must not find, and keep, none.
        noted, wanted = str(count) if count or kept is None else kept, 0
    elif not asleep and kept is not None:
        # Who scaled it meanwhile has decided already.
        noted, wanted = None, count or (int(kept) if kept.isdecimal() else 1)
    else:
        return {}
    return {"metadata": {"annotations": {SCALED_FROM: noted}}, "spec": {"replicas": wanted}}


def _merged(live: list[Object], content: Content) -> list[Object]:
    """The containers with what the version changes; each must be there."""
    wanted = {one.name: one for one in content.containers}
    unknown = sorted({*wanted} - {str(each.get("name")) for each in live})
    if unknown:
        there = ", ".join(str(each.get("name")) for each in live)
        raise errors.Rejected(f"no such container: {unknown[0]}", hint=f"there are: {there}")
    return [_changed(each, wanted.get(str(each.get("name")))) for each in live]


def _changed(live: Object, wanted: ContainerWords | None) -> Object:
    if wanted is None:
        return live
    made = {**live, **_fields(wanted)}
    if wanted.env:
        others = [one for one in live.get("env") or [] if one.get("name") not in wanted.env]
        made["env"] = [*others, *made["env"]]
    return made


def _fields(wanted: ContainerWords) -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in sorted(wanted.env.items())]
    return {"name": wanted.name, "image": wanted.image, **({"env": env} if env else {})}


async def _patch(contexts: RolloutContexts, cache: Cache, obj: Object, change: Object) -> None:
    """Over the very version that was read: of any other it answers Conflict, and is tried again."""
    if not change:
        return
    meta = {**change.get("metadata", {}), "resourceVersion": objects.version_of(obj)}
    client = contexts.controller_context.client
    answer = await client.patch(cache.resource, objects.key_of(obj), {**change, "metadata": meta})
    cache.wrote(answer)


def _request(context: RolloutContext, canaries: RolloutKinds) -> messages.Request:
    """What the object asks for now, as the reconciler is about to find it."""
    obj = context.controller.held.objects.get(context.key) or context.obj
    found = canaries.observe(obj, context.controller.cached_snapshot(obj))
    if found.refusal is not None:
        raise found.refusal
    request = found.levels["want"].command
    assert isinstance(request, messages.Request)
    return request
