"""What may be asked of the operator's rights by whoever writes a canary.

`beyond` is what the operator holds every object to by itself, with a webhook or without one:
what reaches beyond the object's namespace must be named by a setting. `needs` is what a webhook
asks of the writer's own rights (docs/decisions/0040-rights-of-who-asks.md).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fairlead.areas.rollouts.kubernetes import children, names, provider_registry
from fairlead.areas.rollouts.kubernetes.parsing import ParsedRollout
from fairlead.areas.rollouts.kubernetes.routing import permitted as permitted_
from fairlead.areas.rollouts.kubernetes.routing.permitted import Permitted
from fairlead.kubernetes.kinds import Need
from fairlead.settings import OperatorSettings

Object = dict[str, Any]
Problems = Iterator[tuple[str, str]]
_EXTERNAL_IPS = "externalIPs"


def beyond(parsed: ParsedRollout, permitted: Permitted) -> Problems:
    """What the object asks for that the operator does not permit."""
    if not parsed.is_target:
        yield from _service(parsed.service, permitted)
    provider = provider_registry.found()[parsed.provider]
    for path, reason in provider.beyond(parsed.site, permitted):
        yield parsed.field(path), reason


def _service(spec: Mapping[str, Any], permitted: Permitted) -> Problems:
    kind = spec.get("type") or ("ExternalName" if spec.get("externalName") else "ClusterIP")
    if kind not in permitted.services:
        yield "spec.serviceSpec.type", permitted_.beyond(str(kind), "SERVICES")
    if spec.get(_EXTERNAL_IPS) and _EXTERNAL_IPS not in permitted.services:
        told = permitted_.beyond("external addresses", "SERVICES")
        yield f"spec.serviceSpec.{_EXTERNAL_IPS}", told


def permitted(chosen: OperatorSettings) -> Permitted:
    return Permitted(
        _listed(chosen.operator_hosts),
        _listed(chosen.operator_gateways),
        _listed(chosen.operator_services),
        _listed(chosen.operator_exports),
    )


def needs(new: ParsedRollout, old: ParsedRollout | None) -> list[Need]:
    """The rights that a write takes: of an edit, those for the parts that it changes."""
    before = dict(_parts(old)) if old is not None else {}
    return [need for need, part in _parts(new) if before.get(need) != part]


def _parts(parsed: ParsedRollout) -> Iterator[tuple[Need, object]]:
    """What is made of the object, each with the part of the spec that it is made of."""
    space, primary = parsed.namespace, parsed.names.primary
    workload = "spec.targetRef" if parsed.is_target else "spec.deploymentSpec"
    service = "spec.service" if parsed.is_target else "spec.serviceSpec"
    yield Need(workload, "create", names.DEPLOYMENTS, space), parsed.workload or primary
    if parsed.is_target:
        yield Need(workload, "patch", names.DEPLOYMENTS, space, primary), primary
    yield Need(service, "create", names.SERVICES, space), parsed.service or parsed.names.service
    site, provider = children.site(parsed), provider_registry.found()[parsed.provider]
    for ref in provider.refs(site):
        if ref.api == names.SERVICES:
            continue
        named = [field for field, value in parsed.site.desired.items() if value == ref.name]
        verb = "patch" if provider.adopted in named else "get" if named else "create"
        path, name = (parsed.field(named[0]), ref.name) if named else (parsed.field(), "")
        yield Need(path, verb, ref.api, space, name), parsed.site.desired


def _listed(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())
