"""What may be asked of the operator's rights by whoever writes a canary.

`Permitted` is what the operator holds every object to by itself, with a webhook or without one:
what reaches beyond the object's namespace must be named by a setting. `needs` is what a webhook
asks of the writer's own rights (docs/decisions/0040-rights-of-who-asks.md).
"""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.areas.rollouts.kubernetes import children, names, provider_registry
from fairlead.areas.rollouts.kubernetes.parsing import ParsedRollout
from fairlead.kubernetes.kinds import Need
from fairlead.settings import OperatorSettings

Object = dict[str, Any]
Problems = Iterator[tuple[str, str]]
_MESH = "mesh"
_EXTERNAL_IPS = "externalIPs"


@dataclass(frozen=True, slots=True)
class Permitted:
    """What objects may ask for beyond their namespace."""

    hosts: Sequence[str] = ()
    gateways: Sequence[str] = ()
    services: Sequence[str] = ("ClusterIP",)

    def problems(self, parsed: ParsedRollout) -> Problems:
        if not parsed.is_target:
            yield from self._service(parsed.service)
        described = parsed.site.desired.get("virtualService")
        if isinstance(described, Mapping):
            under = "virtualServiceSpec" if parsed.is_istio else "provider.istio.virtualService"
            for path, reason in self._route(described, parsed.namespace):
                yield f"spec.{under}.{path}", reason

    def _service(self, spec: Mapping[str, Any]) -> Problems:
        kind = spec.get("type") or ("ExternalName" if spec.get("externalName") else "ClusterIP")
        if kind not in self.services:
            yield "spec.serviceSpec.type", _beyond(str(kind), "SERVICES")
        if spec.get(_EXTERNAL_IPS) and _EXTERNAL_IPS not in self.services:
            yield f"spec.serviceSpec.{_EXTERNAL_IPS}", _beyond("external addresses", "SERVICES")

    def _route(self, spec: Mapping[str, Any], namespace: str) -> Problems:
        gateways = [str(one) for one in spec.get("gateways") or (_MESH,)]
        for index, gateway in enumerate(gateways):
            where = _gateway(gateway, namespace)
            if not (where.startswith(f"{namespace}/") or _matches(where, self.gateways)):
                told = f"a gateway of another namespace: {gateway}"
                yield f"gateways[{index}]", _beyond(told, "GATEWAYS")
        for index, host in enumerate(map(str, spec.get("hosts") or ())):
            if _matches(host, self.hosts):
                continue
            # Which hosts a gateway serves, and to whom, its owner says; in the mesh nobody does.
            claimed = _MESH in gateways and not _is_own(host, namespace)
            if host == "*" or claimed:
                told = f"not a Service of this namespace: {host}"
                yield f"hosts[{index}]", _beyond(told, "HOSTS")


def permitted(chosen: OperatorSettings) -> Permitted:
    return Permitted(
        _listed(chosen.operator_hosts),
        _listed(chosen.operator_gateways),
        _listed(chosen.operator_services),
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
    under = "spec" if parsed.is_istio else f"spec.provider.{parsed.provider}"
    for ref in provider.refs(site):
        if ref.api == names.SERVICES:
            continue
        named = [field for field, value in parsed.site.desired.items() if value == ref.name]
        verb = "patch" if provider.adopted in named else "get" if named else "create"
        path, name = (f"{under}.{named[0]}", ref.name) if named else (under, "")
        yield Need(path, verb, ref.api, space, name), parsed.site.desired


def _gateway(name: str, namespace: str) -> str:
    """NAMESPACE/NAME of a gateway, which may also be written as NAME or NAME.NAMESPACE."""
    if "/" in name:
        space, _, rest = name.partition("/")
        return f"{namespace if space == '.' else space}/{rest}"
    first, dot, rest = name.partition(".")
    return f"{rest.partition('.')[0] if dot else namespace}/{first}"


def _is_own(host: str, namespace: str) -> bool:
    """Whether the host is a Service of the namespace, by its short name or its full one."""
    name, dot, rest = host.partition(".")
    space, _, suffix = rest.partition(".")
    ours = not dot or (space == namespace and (not suffix or suffix.split(".")[0] == "svc"))
    return ours and "*" not in name


def _matches(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


def _beyond(what: str, setting: str) -> str:
    return f"{what}; the operator allows what FAIRLEAD_OPERATOR_{setting} names"


def _listed(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())
