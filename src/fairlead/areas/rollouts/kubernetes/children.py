"""The objects that a rollout owns, as they are to be; pure, from what was read and asked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import names, scheduling
from fairlead.areas.rollouts.kubernetes.parsing import ParsedRollout
from fairlead.areas.rollouts.kubernetes.routing.provider import ORDER, Site
from fairlead.kubernetes import objects
from fairlead.kubernetes.objects import Resource
from fairlead.kubernetes.writes import compare

Object = dict[str, Any]

RATIO = "replicas"
# What Kubernetes gives a Service, or what only one Service can have.
_ONE_SERVICE = (
    *("clusterIP", "clusterIPs", "externalIPs", "externalName", "healthCheckNodePort"),
    *("loadBalancerIP", "loadBalancerClass", "loadBalancerSourceRanges", "type", "nodePort"),
    *("externalTrafficPolicy", "allocateLoadBalancerNodePorts"),
)


@dataclass(frozen=True, slots=True)
class Theirs:
    """What somebody else's rollout target is: what stands beside it is made like it."""

    target: Object | None = None
    service: Object | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """What a slot is to hold."""

    slot: Slot
    version: Version
    replicas: int
    order: int
    since: int = 1
    """The generation of the Deployment that first holds this version."""


def deployment(
    parsed: ParsedRollout,
    workload: Object,
    template: Object,
    hold: Hold,
    theirs: Theirs | None = None,
) -> Object:
    """The Deployment of one slot, at this version and scale; `theirs` of a target."""
    beside = theirs or Theirs()
    chosen = labels(parsed, workload, hold.slot)
    worn = carried(parsed, workload, hold.slot, (beside.service or {}).get("spec"))
    rest = {key: value for key, value in workload.items() if key not in _OURS}
    spec = {
        **rest,
        "replicas": hold.replicas,
        "selector": {"matchLabels": chosen},
        "template": _template(template, worn, hold.version),
    }
    if hold.slot is not Slot.PRIMARY:
        had = (template.get("metadata") or {}).get("labels") or {}
        pods = spec["template"]
        pods["spec"] = dict(pods.get("spec") or {})
        scheduling.rename(pods["spec"], had, worn)
    name = parsed.names.deployments[hold.slot]
    meta, like = _meta(parsed, name, hold.slot), _like(beside.target)
    meta["labels"] = {**like["labels"], **meta["labels"]}
    meta["annotations"] = {
        **like["annotations"],
        **marks(hold.version, hold.order),
        names.SINCE: str(hold.since),
        names.SHAPE: compare.digest([rest, worn, *([like] if beside.target else ())]),
    }
    return _whole(names.DEPLOYMENTS, meta, spec=spec)


def service(
    parsed: ParsedRollout, workload: Object, slot: Slot, found: Object | None = None
) -> Object:
    """The Service of one slot; `found` is one that exists, for those beside it."""
    given = dict((found or {}).get("spec") or parsed.service)
    if slot is not Slot.PRIMARY:
        given = {key: value for key, value in given.items() if key not in _ONE_SERVICE}
        given["ports"] = [
            {key: value for key, value in port.items() if key != "nodePort"}
            for port in given.get("ports") or ()
        ]
    own = selector_of(workload)
    chosen = given.get("selector") or own
    if slot is not Slot.PRIMARY:
        ratio = parsed.provider == RATIO
        chosen = labels(parsed, workload, slot) if ratio else names.apart(chosen, slot)
    meta, like = _meta(parsed, parsed.names.services[slot], slot), _like(found)
    meta["labels"] = {**like["labels"], **meta["labels"]}
    if like["annotations"]:
        meta["annotations"] = like["annotations"]
    return _whole(names.SERVICES, meta, spec={**given, "selector": dict(chosen)})


def site(parsed: ParsedRollout) -> Site:
    """The rollout's place among routes; where the Service is the route, with that Service."""
    if parsed.provider != RATIO:
        return parsed.site
    own = service(parsed, parsed.workload, Slot.PRIMARY)
    return replace(parsed.site, desired={**parsed.site.desired, "service": own})


def revision(parsed: ParsedRollout, version: Version, template: Object, number: int) -> Object:
    """A version kept, so that it can be made again when nothing else remembers it."""
    meta = _meta(parsed, revision_name(parsed, version.revision), None)
    made = _whole(names.REVISIONS, meta | {"annotations": marks(version, 0)}, revision=number)
    return {**made, "data": {"template": template}}


def revision_name(parsed: ParsedRollout, revision: str) -> str:
    return names.cut(parsed.name, f"-{revision}")


def is_ours(parsed: ParsedRollout, live: Object) -> bool:
    """Whether a child may be written: made for this object, or left over from a namesake.

    What a predecessor was deleted without (`--cascade=orphan`) has no owner, and our label. A
    name alone says nothing: people have Deployments called shop-canary of their own.
    """
    owner = objects.owner_of(live)
    return owner == parsed.uid if owner else _is_marked(parsed, live)


def is_going(parsed: ParsedRollout, live: Object) -> bool:
    """Whether it belongs to a predecessor of the object, and is collected with that."""
    kind = "IstioCanaryDeployment" if parsed.is_istio else "CanaryDeployment"
    owners = objects.metadata(live).get("ownerReferences") or ()
    named = [(one.get("kind"), one.get("name")) for one in owners if one.get("controller")]
    return named == [(kind, parsed.name)]


def mark(parsed: ParsedRollout) -> dict[str, str]:
    """The label by which all that is made for an object is known."""
    return {names.ROLLOUT: names.cut(parsed.name)}


def _is_marked(parsed: ParsedRollout, live: Object) -> bool:
    told = objects.metadata(live).get("labels") or {}
    return mark(parsed).items() <= told.items()


def marks(version: Version, order: int) -> dict[str, str]:
    """Annotations from which `version_in` and an order can be read again."""
    told = {
        ORDER: str(order) if order else "",
        names.REVISION: version.revision,
        names.TEMPLATE: version.template,
        names.CONFIGS: version.configs,
        names.LABEL: version.label,
    }
    return {key: value for key, value in told.items() if value}


def version_in(obj: Object) -> Version | None:
    """The version that an object was asked to hold; None where it was asked for none."""
    told = annotations(obj)
    if names.REVISION not in told:
        return None
    configs, label = told.get(names.CONFIGS, ""), told.get(names.LABEL, "")
    return Version(told[names.REVISION], told.get(names.TEMPLATE, ""), configs, label)


def order_in(obj: Object | None) -> int:
    told = annotations(obj).get(ORDER, "") if obj else ""
    return int(told) if told.isdecimal() else 0


def since_in(obj: Object) -> int:
    """The generation from which on the status tells of the version that is asked for."""
    told = annotations(obj).get(names.SINCE, "")
    return int(told) if told.isdecimal() else int(obj["metadata"].get("generation") or 0)


def annotations(obj: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return found


def selector_of(workload: Object) -> dict[str, str]:
    """The labels by which the primary's pods are known."""
    selector: dict[str, str] = (workload.get("selector") or {}).get("matchLabels") or {}
    return dict(selector)


def labels(parsed: ParsedRollout, workload: Object, slot: Slot) -> dict[str, str]:
    """What a slot's Deployment selects its pods by, and so what parts the slots."""
    own = selector_of(workload)
    if parsed.provider == RATIO:
        # The Service shares out itself, so the pods must look alike to it.
        return {**own, names.SLOT: slot.value}
    return own if slot is Slot.PRIMARY else names.apart(own, slot)


def carried(
    parsed: ParsedRollout, workload: Object, slot: Slot, service: Object | None = None
) -> dict[str, str]:
    """The labels that a slot's pods get from us, beside those of the template."""
    chosen = labels(parsed, workload, slot)
    if slot is Slot.PRIMARY or parsed.provider == RATIO:
        return chosen
    # What the Service selects by must differ as well, or it would find this slot.
    by = (service or parsed.service).get("selector") or {}
    return {**names.apart(by, slot), **chosen}


# Of the object itself, not of what it is for: who applied it, what a controller noted there, and
# the name or address that only one can have.
_OF_ONE = (
    *(names.PREFIX, "kubectl.kubernetes.io/", "deployment.kubernetes.io/", "meta.helm.sh/"),
    *("external-dns.alpha.kubernetes.io/", "service.beta.kubernetes.io/"),
    *("argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/"),
)


def _like(obj: Object | None) -> dict[str, dict[str, str]]:
    """Labels and annotations by which policies and monitors find an object of somebody else."""
    meta = objects.metadata(obj) if obj else {}
    return {
        field: {
            key: value
            for key, value in (meta.get(field) or {}).items()
            if not key.startswith(_OF_ONE)
        }
        for field in ("labels", "annotations")
    }


_OURS = ("replicas", "selector", "template", "paused")


def _template(template: Object, chosen: Mapping[str, str], version: Version) -> Object:
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {**(meta.get("labels") or {}), **chosen}
    return with_configs({**template, "metadata": meta}, version)


def with_configs(template: Object, version: Version) -> Object:
    """Pods of the same template that read other configs are other pods."""
    if not version.configs:
        return template
    meta = dict(template.get("metadata") or {})
    meta["annotations"] = {**(meta.get("annotations") or {}), names.CONFIGS: version.configs}
    return {**template, "metadata": meta}


def _meta(parsed: ParsedRollout, name: str, slot: Slot | None) -> Object:
    told = mark(parsed)
    if slot is not None:
        told[names.SLOT] = slot.value
    return {"namespace": parsed.namespace, "name": name, "labels": told}


def _whole(api: Resource, meta: Object, **fields: Any) -> Object:
    version = f"{api.group}/{api.version}" if api.group else api.version
    return {"apiVersion": version, "kind": api.kind, "metadata": meta, **fields}
