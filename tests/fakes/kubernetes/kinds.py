"""The kinds that the fake serves, and what it must know of each to act like the real one."""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from fairlead.kubernetes.objects import Object, Resource

# A list whose items are told apart by fields ("map"), by value ("set"), or not at all.
ListKeys = Mapping[str, tuple[str, ...]]

_META: ListKeys = {"metadata.ownerReferences": ("uid",), "metadata.finalizers": ()}
_POD: ListKeys = {
    "containers": ("name",),
    "containers.ports": ("containerPort", "protocol"),
    "containers.env": ("name",),
    "volumes": ("name",),
}
_NAMES = frozenset({"metadata.name", "metadata.namespace"})


def _nothing(_: Object) -> None:
    pass


@dataclasses.dataclass(frozen=True)
class Served:
    """One kind: its resource, and how its objects are kept."""

    resource: Resource
    status: bool = False
    generation: bool = False
    unconditional: bool = True
    list_keys: ListKeys = dataclasses.field(default_factory=lambda: dict(_META))
    atomic: frozenset[str] = frozenset()
    fields: frozenset[str] = _NAMES
    defaults: Callable[[Object], None] = _nothing
    schema: Mapping[str, Any] | None = None


def _template(at: str) -> ListKeys:
    return {f"{at}.{path}": keys for path, keys in _POD.items()}


def _default_containers(spec: dict[str, Any]) -> None:
    for container in spec.get("containers") or ():
        container.setdefault("imagePullPolicy", "IfNotPresent")
        container.setdefault("resources", {})
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        for port in container.get("ports") or ():
            port.setdefault("protocol", "TCP")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")


def _deployment(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("progressDeadlineSeconds", 600)
    spec.setdefault("revisionHistoryLimit", 10)
    rolling = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    spec.setdefault("strategy", rolling)
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    _default_containers(template.setdefault("spec", {}))
    obj.setdefault("status", {})


def _service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _namespace(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    obj.setdefault("status", {}).setdefault("phase", "Active")


def _secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")


NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource(
    *("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    namespaced=False,
)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
SERVICES = Resource("", "v1", "services", "Service")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")

WEBHOOKS = Resource(
    *("admissionregistration.k8s.io", "v1"),
    *("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    namespaced=False,
)

BUILT_IN = (
    Served(NAMESPACES, status=True, defaults=_namespace),
    Served(CRDS, status=True, generation=True, unconditional=False),
    Served(CONFIG_MAPS),
    Served(SECRETS, defaults=_secret, fields=_NAMES | {"type"}),
    Served(LEASES, unconditional=False),
    Served(EVENTS),
    Served(WEBHOOKS, generation=True, list_keys={**_META, "webhooks": ("name",)}),
    Served(
        SERVICES,
        status=True,
        defaults=_service,
        list_keys={**_META, "spec.ports": ("port", "protocol")},
        atomic=frozenset({"spec.selector"}),
    ),
    Served(
        DEPLOYMENTS,
        status=True,
        generation=True,
        defaults=_deployment,
        list_keys={**_META, **_template("spec.template.spec"), "status.conditions": ("type",)},
        atomic=frozenset({"spec.selector"}),
    ),
)


def custom(definition: Object) -> Served:
    """The kind that a CustomResourceDefinition asks for (one version)."""
    spec = definition["spec"]
    version = spec["versions"][0]
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    keys: dict[str, tuple[str, ...]] = dict(_META)
    atomic: set[str] = set()
    _lists(schema, "", keys, atomic)
    names = spec["names"]
    namespaced = spec["scope"] == "Namespaced"
    return Served(
        Resource(spec["group"], version["name"], names["plural"], names["kind"], namespaced),
        status="status" in (version.get("subresources") or {}),
        generation=True,
        unconditional=False,
        list_keys=keys,
        atomic=frozenset(atomic),
        schema=copy.deepcopy(schema),
    )


def _lists(
    schema: Mapping[str, Any], path: str, keys: dict[str, tuple[str, ...]], atomic: set[str]
) -> None:
    for name, part in (schema.get("properties") or {}).items():
        here = f"{path}.{name}" if path else name
        match part.get("x-kubernetes-list-type"):
            case "map":
                keys[here] = tuple(part["x-kubernetes-list-map-keys"])
            case "set":
                keys[here] = ()
        if part.get("x-kubernetes-map-type") == "atomic":
            atomic.add(here)
        _lists(part, here, keys, atomic)
        _lists(part.get("items") or {}, here, keys, atomic)
