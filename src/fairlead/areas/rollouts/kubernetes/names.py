"""Names, labels and annotations of a rollout's objects."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.kubernetes.objects import Resource

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
SERVICES = Resource("", "v1", "services", "Service")
REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
SCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")

ROLLOUT = "fairlead.dev/rollout"
"""Label: the object that this belongs to."""

SLOT = "fairlead.dev/slot"
"""Label: primary, canary or baseline."""

REVISION = "fairlead.dev/revision"
TEMPLATE = "fairlead.dev/template"
CONFIGS = "fairlead.dev/configs"
LABEL = "fairlead.dev/version"
"""Annotations: the version that a Deployment was asked to hold, in the parts of a Version."""

SINCE = "fairlead.dev/since"
"""Annotation: the generation of the Deployment that first held this version."""

SHAPE = "fairlead.dev/shape"
"""Annotation: a digest of all that users say of a Deployment besides its version and scale."""

PARKED = "fairlead.dev/parked"
"""Annotation of a target: the version of an edit that waits until the target may change."""

HELD = "fairlead.dev/held"
"""Annotation of a target: how it is held, and since which generation: another with each write."""

PROBE = "fairlead.dev/probe"
"""Annotation that is only ever asked about: whether a template that has it would be held."""

AT_REST, ON_HOLD, MOVING, RELEASED = "rest", "held", "moving", "released"
"""Not paused, but paused by whoever changes it; paused; let go to become a version; given back."""

FINALIZER = "fairlead.dev/rollout"
PREFIX = REQUESTS = "fairlead.dev/"
"""Before the verb of a request: fairlead.dev/approve."""

LONGEST = 63
"""Letters of a name that is also a label or a host name."""


@dataclass(frozen=True, slots=True)
class Names:
    """What the parts of one rollout are called."""

    deployments: Mapping[Slot, str]
    services: Mapping[Slot, str]

    @property
    def primary(self) -> str:
        """The Deployment that carries the stable version."""
        return self.deployments[Slot.PRIMARY]

    @property
    def service(self) -> str:
        """The Service that people know."""
        return self.services[Slot.PRIMARY]


def embedded(name: str) -> Names:
    apart_by = {slot: _suffix(slot) for slot in Slot}
    return Names(
        {slot: cut(name, f"{suffix}-deployment") for slot, suffix in apart_by.items()},
        {slot: cut(name, f"{suffix}-service") for slot, suffix in apart_by.items()},
    )


def of_target(target: str, service: str) -> Names:
    return Names(
        {slot: cut(target, _suffix(slot)) for slot in Slot},
        {slot: cut(service, _suffix(slot)) for slot in Slot},
    )


def cut(name: str, suffix: str = "") -> str:
    """The name with its suffix; one that is too long is cut, and told apart by a hash."""
    whole = f"{name}{suffix}"
    if len(whole) <= LONGEST:
        return whole
    told = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    room = LONGEST - len(suffix) - len(told) - 1
    return f"{name[:room].rstrip('-.')}-{told}{suffix}"


def apart(labels: Mapping[str, str], slot: Slot) -> dict[str, str]:
    """The labels with other values: nothing that selects by one of them finds this slot."""
    return {key: cut(value, _suffix(slot)).lstrip("-") for key, value in labels.items()}


def _suffix(slot: Slot) -> str:
    return "" if slot is Slot.PRIMARY else f"-{slot.value}"
