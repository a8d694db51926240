"""What is wrong with an object before anything is made of it: pairs of a field's path and a reason.

`of_object` reads the object alone and is what admission asks; `of_surroundings` also looks at what
stands around it. Both are asked again by every look, so an object that came around the webhook
makes no child either.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairlead.adapters.canaries import children, names, overlaps, seeing
from fairlead.adapters.canaries.provider import Provider
from fairlead.adapters.canaries.reading import Reading, read, workload_of
from fairlead.adapters.kubernetes import objects
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.strategy import Kind
from fairlead.errors import Rejected
from fairlead.intents.kubernetes import Around, InvalidSpec

Object = dict[str, Any]
Problems = Sequence[tuple[str, str]]


def of_object(obj: Object) -> Problems:
    """What the object alone gets wrong."""
    try:
        reading = read(obj)
    except Rejected as error:
        path, colon, reason = error.message.partition(": ")
        return [(path, reason) if colon else ("spec", error.message)]
    return list(_form(reading))


def of_surroundings(reading: Reading, provider: Provider, around: Around) -> Problems:
    """What does not fit what stands around the object."""
    missing = [api for api in provider.apis[:1] if not around.is_served(api)]
    if missing:
        return [(f"spec.provider.{provider.name}", f"this cluster has no {missing[0]}")]
    site = children.site(reading)
    found = provider.problems(site, seeing.found(provider, site, around))
    under = "spec" if reading.is_istio else f"spec.provider.{provider.name}"
    return [
        *((f"{under}.{path}", reason) for path, reason in found),
        *_service(reading, around),
        *_overlaps(reading, around),
    ]


def refuse(problems: Problems) -> None:
    """InvalidSpec with the first problem, and how many more there are."""
    if problems:
        (path, reason), more = problems[0], len(problems) - 1
        told = f" (and {more} more)" if more else ""
        raise InvalidSpec(f"{path}: {reason}{told}", hint="edit the object; it is then read again")


def _form(reading: Reading) -> Iterator[tuple[str, str]]:
    strategy = reading.spec.strategy
    if strategy.baseline and reading.provider == children.RATIO:
        yield "spec.strategy.baseline", "a Service shares by pods alone; use another provider"
    if reading.is_target:
        if reading.provider == children.RATIO:
            yield "spec.provider.replicas", "needs deploymentSpec: a target's Service is not ours"
        return
    yield from _selector(reading)
    yield from _containers(reading)
    if reading.provider == children.RATIO and (
        strategy.kind is Kind.AB or strategy.mirror or strategy.affinity
    ):
        yield "spec.strategy", "a Service knows no headers, cookies or copies; use another provider"


def _selector(reading: Reading) -> Iterator[tuple[str, str]]:
    at = "spec.deploymentSpec.selector"
    selector = reading.workload.get("selector") or {}
    wanted = selector.get("matchLabels") or {}
    if selector.get("matchExpressions"):
        yield f"{at}.matchExpressions", "only matchLabels can part the two versions' pods"
    if not wanted:
        yield f"{at}.matchLabels", "is needed, and must match the template's labels"
        return
    has = _labels(reading.workload.get("template"))
    if _unmatched(wanted, has):
        yield f"{at}.matchLabels", f"does not match the template's labels: {_told(wanted, has)}"
    chosen = reading.service.get("selector") or {}
    if _unmatched(chosen, has):
        yield (
            "spec.serviceSpec.selector",
            f"does not match the template's labels: {_told(chosen, has)}",
        )


def _containers(reading: Reading) -> Iterator[tuple[str, str]]:
    template = reading.workload.get("template")
    spec = template.get("spec") if isinstance(template, Mapping) else None
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    at = "spec.deploymentSpec.template.spec.containers"
    if not isinstance(containers, list) or not containers:
        yield at, "at least one is needed"
        return
    for index, one in enumerate(containers):
        if not isinstance(one, Mapping) or not one.get("name"):
            yield f"{at}[{index}].name", "is needed"


def _service(reading: Reading, around: Around) -> Iterator[tuple[str, str]]:
    """A target's Service must be there, have the port, and lead to the target's pods."""
    if not reading.is_target:
        return
    found = around.found(names.SERVICES, reading.names.service)
    if not found:
        yield "spec.service.name", f"there is no such Service here: {reading.names.service}"
        return
    spec = found[0].get("spec") or {}
    if reading.site.primary.port not in [port.get("port") for port in spec.get("ports") or ()]:
        yield "spec.service.port", f"the Service has no such port: {reading.site.primary.port}"
    workload = workload_of(reading, around)
    chosen, has = spec.get("selector") or {}, _labels(workload.get("template"))
    if not chosen or _unmatched(chosen, has):
        yield "spec.service.name", f"does not lead to the target's pods: {_told(chosen, has)}"
    elif not set(chosen) & set(children.selector_of(workload)):
        # The canary differs in the labels of the Deployment's selector.
        yield "spec.service.name", f"shares no label with the target's selector: {chosen}"


def _overlaps(reading: Reading, around: Around) -> Iterator[tuple[str, str]]:
    """Two Deployments that select the same pods would take each other's away."""
    field = "targetRef.name" if reading.is_target else "deploymentSpec.selector.matchLabels"
    ours = _ours(reading, around)
    called = set(reading.names.deployments.values())
    met: set[str] = set()
    for trait in dict.fromkeys(overlaps.asked(ours)):
        for other in around.found(names.DEPLOYMENTS, trait):
            name = other["metadata"]["name"]
            if name in called or name in met or objects.owner_of(other) == reading.uid:
                continue
            met.add(name)
            why = _shared(ours, name, overlaps.of(other["spec"]))
            if why:
                yield f"spec.{field}", why


def _ours(reading: Reading, around: Around) -> list[overlaps.Pods]:
    """Of each slot, what it selects and what its pods are called by."""
    workload = workload_of(reading, around)
    found = around.found(names.SERVICES, reading.names.service) if reading.is_target else ()
    service = found[0].get("spec") if found else None
    template = _labels(workload.get("template"))
    made = []
    slots = (Slot.PRIMARY, Slot.CANARY, Slot.BASELINE)
    for slot in slots if reading.spec.strategy.baseline else slots[:2]:
        selector: Mapping[str, Any] = {"matchLabels": children.labels(reading, workload, slot)}
        if slot is Slot.PRIMARY and reading.is_target:
            selector = workload.get("selector") or {}
        carried = children.carried(reading, workload, slot, service)
        made.append(overlaps.Pods(selector, {**template, **carried}))
    return made


def _shared(ours: Sequence[overlaps.Pods], name: str, theirs: overlaps.Pods) -> str:
    """Why another Deployment is in our way, or nothing."""
    if any(overlaps.selects(theirs.selector, one.labels) for one in ours):
        return f"the Deployment {name} selects these pods, too: {overlaps.told(theirs.selector)}"
    if any(overlaps.selects(one.selector, theirs.labels) for one in ours):
        return f"the pods of the Deployment {name} would be selected, too"
    return ""


def _unmatched(wanted: Mapping[str, str], has: Mapping[str, str]) -> bool:
    return any(has.get(key) != value for key, value in wanted.items())


def _told(wanted: Mapping[str, str], has: Mapping[str, str]) -> str:
    return (
        ", ".join(
            f"{key}={value} but the template has {has.get(key, 'none')}"
            for key, value in sorted(wanted.items())
            if has.get(key) != value
        )
        or "it is empty"
    )


def _labels(template: object) -> Mapping[str, str]:
    meta = template.get("metadata") if isinstance(template, Mapping) else None
    found = meta.get("labels") if isinstance(meta, Mapping) else None
    return found if isinstance(found, Mapping) else {}
