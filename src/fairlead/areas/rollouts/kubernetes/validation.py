"""What is wrong with an object before anything is made of it: pairs of a field's path and a reason.

`of_object` reads the object alone and is what admission asks; `of_snapshot` also looks at what
stands around it. Both are asked again by every reconcile, so an object that came around the webhook
makes no child either.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import (
    children,
    names,
    observe_cluster,
    provider_registry,
    selector_overlap,
)
from fairlead.areas.rollouts.kubernetes.parsing import ParsedRollout, read, workload_of
from fairlead.areas.rollouts.kubernetes.routing.provider import Provider, Ref
from fairlead.errors import Invalid, Rejected
from fairlead.kubernetes import objects
from fairlead.kubernetes.kinds import InvalidSpec, Snapshot

Object = dict[str, Any]
Problems = Sequence[tuple[str, str]]


def of_object(obj: Object) -> Problems:
    """What the object alone gets wrong."""
    try:
        parsed = read(obj)
    except Rejected as error:
        if isinstance(error.__cause__, Invalid):
            return [(each.path or "spec", each.message) for each in error.__cause__.problems]
        path, colon, reason = error.message.partition(": ")
        return [(path, reason) if colon else ("spec", error.message)]
    return list(_form(parsed))


def of_snapshot(parsed: ParsedRollout, provider: Provider, snapshot: Snapshot) -> Problems:
    """What does not fit what stands around the object."""
    missing = [api for api in provider.apis[:1] if not snapshot.is_served(api)]
    if missing:
        return [(f"spec.provider.{provider.name}", f"this cluster has no {missing[0]}")]
    site = children.site(parsed)
    found = provider.problems(site, observe_cluster.found(provider, site, snapshot))
    return [
        *((parsed.field(path), reason) for path, reason in found),
        *_service(parsed, snapshot),
        *_in_the_way(parsed, provider, snapshot),
        *_overlaps(parsed, snapshot),
    ]


def moved(new: ParsedRollout, old: ParsedRollout) -> Problems:
    """What names something else than what is held: that would never be given back."""
    if not old.adopts:
        return []
    was, is_ = dict(_held_by(old)), dict(_held_by(new))
    hint = "delete the object, which gives it back, and create it anew"
    return [
        (path, f"cannot be changed while {name} is held; {hint}")
        for path, name in was.items()
        if is_.get(path) != name
    ]


def _held_by(parsed: ParsedRollout) -> Iterator[tuple[str, str]]:
    """The fields that name what is somebody else's, and what they name."""
    if parsed.is_target:
        yield "spec.targetRef.name", f"Deployment {parsed.names.primary}"
        yield "spec.service.name", f"Service {parsed.names.service}"
    adopted = provider_registry.found()[parsed.provider].adopted
    if parsed.site.desired.get(adopted):
        yield parsed.field(adopted), f"the route {parsed.site.desired[adopted]}"
    elif parsed.is_target:
        yield parsed.field(), "its own route"


def refuse(problems: Problems) -> None:
    """InvalidSpec with the first problem, and how many more there are."""
    if problems:
        (path, reason), more = problems[0], len(problems) - 1
        told = f" (and {more} more)" if more else ""
        raise InvalidSpec(
            f"{path}: {reason}{told}", hint="edit the object; it is then reconciled again"
        )


def _form(parsed: ParsedRollout) -> Iterator[tuple[str, str]]:
    provider = provider_registry.found()[parsed.provider]
    yield from provider.unsupported(parsed.spec.strategy, is_target=parsed.is_target)
    if not parsed.is_target:
        yield from _selector(parsed)
        yield from _containers(parsed)


def _selector(parsed: ParsedRollout) -> Iterator[tuple[str, str]]:
    at = "spec.deploymentSpec.selector"
    selector = parsed.workload.get("selector") or {}
    desired = selector.get("matchLabels") or {}
    if selector.get("matchExpressions"):
        yield (
            f"{at}.matchExpressions",
            "use matchLabels; only they can separate the pods of two versions",
        )
    if not desired:
        yield f"{at}.matchLabels", "required, and must match the template's labels"
        return
    has = _labels(parsed.workload.get("template"))
    if _unmatched(desired, has):
        yield (
            f"{at}.matchLabels",
            f"does not match the template's labels: {_differences(desired, has)}",
        )
    chosen = parsed.service.get("selector") or {}
    if _unmatched(chosen, has):
        yield (
            "spec.serviceSpec.selector",
            f"does not match the template's labels: {_differences(chosen, has)}",
        )


def _containers(parsed: ParsedRollout) -> Iterator[tuple[str, str]]:
    template = parsed.workload.get("template")
    spec = template.get("spec") if isinstance(template, Mapping) else None
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    at = "spec.deploymentSpec.template.spec.containers"
    if not isinstance(containers, list) or not containers:
        yield at, "at least one container is required"
        return
    for index, one in enumerate(containers):
        if not isinstance(one, Mapping) or not one.get("name"):
            yield f"{at}[{index}].name", "required"


def _service(parsed: ParsedRollout, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """A target's Service must be there, have the port, and lead to the target's pods."""
    if not parsed.is_target:
        return
    found = snapshot.found(names.SERVICES, parsed.names.service)
    if not found:
        yield "spec.service.name", f"no such Service in this namespace: {parsed.names.service}"
        return
    spec = found[0].get("spec") or {}
    if parsed.site.primary.port not in [port.get("port") for port in spec.get("ports") or ()]:
        yield "spec.service.port", f"the Service has no such port: {parsed.site.primary.port}"
    workload = workload_of(parsed, snapshot)
    chosen, has = spec.get("selector") or {}, _labels(workload.get("template"))
    if not chosen or _unmatched(chosen, has):
        yield "spec.service.name", f"does not select the target's pods: {_differences(chosen, has)}"
    elif not set(chosen) & set(children.selector_of(workload)):
        # The canary differs in the labels of the Deployment's selector.
        yield "spec.service.name", f"shares no label with the target's selector: {chosen}"


def _in_the_way(
    parsed: ParsedRollout, provider: Provider, snapshot: Snapshot
) -> Iterator[tuple[str, str]]:
    """What stands under the name of a child and is not ours would be overwritten, then deleted."""
    for ref in dict.fromkeys(_made(parsed, provider)):
        for live in snapshot.found(ref.api, ref.name):
            if children.is_ours(parsed, live) or children.is_going(parsed, live):
                continue
            owners = objects.metadata(live).get("ownerReferences") or ()
            of = "".join(f" of {one.get('kind')} {one.get('name')}" for one in owners[:1])
            told = f"{ref.api.kind} {ref.name}{of} is in the way: it was not made for this object"
            yield "spec.targetRef.name" if parsed.is_target else "metadata.name", told


def _made(parsed: ParsedRollout, provider: Provider) -> Iterator[Ref]:
    """All that is made under a name which somebody else might have taken."""
    for slot in _slots(parsed):
        if slot is not Slot.PRIMARY or not parsed.is_target:
            yield Ref(names.DEPLOYMENTS, parsed.names.deployments[slot])
            yield Ref(names.SERVICES, parsed.names.services[slot])
    # What the request names is there already, and is somebody else's.
    theirs = {name for name in parsed.site.desired.values() if isinstance(name, str)}
    yield from (ref for ref in provider.refs(children.site(parsed)) if ref.name not in theirs)


def _slots(parsed: ParsedRollout) -> tuple[Slot, ...]:
    slots = (Slot.PRIMARY, Slot.CANARY, Slot.BASELINE)
    return slots if parsed.spec.strategy.baseline else slots[:2]


def _overlaps(parsed: ParsedRollout, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Two Deployments that select the same pods would take each other's away."""
    field = "targetRef.name" if parsed.is_target else "deploymentSpec.selector.matchLabels"
    ours = _ours(parsed, snapshot)
    called = set(parsed.names.deployments.values())
    met: set[str] = set()
    for trait in dict.fromkeys(selector_overlap.asked(ours)):
        for other in snapshot.found(names.DEPLOYMENTS, trait):
            name = other["metadata"]["name"]
            if name in called or name in met or objects.owner_of(other) == parsed.uid:
                continue
            met.add(name)
            why = _shared(ours, name, selector_overlap.of(other["spec"]))
            if why:
                yield f"spec.{field}", why


def _ours(parsed: ParsedRollout, snapshot: Snapshot) -> list[selector_overlap.Pods]:
    """Of each slot, what it selects and what its pods are called by."""
    workload = workload_of(parsed, snapshot)
    found = snapshot.found(names.SERVICES, parsed.names.service) if parsed.is_target else ()
    service = found[0].get("spec") if found else None
    template = _labels(workload.get("template"))
    made = []
    for slot in _slots(parsed):
        selector: Mapping[str, Any] = {"matchLabels": children.labels(parsed, workload, slot)}
        if slot is Slot.PRIMARY and parsed.is_target:
            selector = workload.get("selector") or {}
        carried = children.carried(parsed, workload, slot, service)
        made.append(selector_overlap.Pods(selector, {**template, **carried}))
    return made


def _shared(ours: Sequence[selector_overlap.Pods], name: str, theirs: selector_overlap.Pods) -> str:
    """Why another Deployment is in our way, or nothing."""
    if any(selector_overlap.selects(theirs.selector, one.labels) for one in ours):
        selector = selector_overlap.told(theirs.selector)
        return f"Deployment {name} selects these pods too: {selector}"
    if any(selector_overlap.selects(one.selector, theirs.labels) for one in ours):
        return f"it would also select the pods of Deployment {name}"
    return ""


def _unmatched(desired: Mapping[str, str], has: Mapping[str, str]) -> bool:
    return any(has.get(key) != value for key, value in desired.items())


def _differences(desired: Mapping[str, str], has: Mapping[str, str]) -> str:
    return (
        ", ".join(
            f"{key}={value}, but the template has {has.get(key, 'none')}"
            for key, value in sorted(desired.items())
            if has.get(key) != value
        )
        or "it is empty"
    )


def _labels(template: object) -> Mapping[str, str]:
    meta = template.get("metadata") if isinstance(template, Mapping) else None
    found = meta.get("labels") if isinstance(meta, Mapping) else None
    return found if isinstance(found, Mapping) else {}
