"""Names, labels and annotations of a rollout's objects."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from fairlead.intents.kubernetes import Api

DEPLOYMENTS = Api("apps", "v1", "deployments", "Deployment")
SERVICES = Api("", "v1", "services", "Service")
REVISIONS = Api("apps", "v1", "controllerrevisions", "ControllerRevision")
CONFIG_MAPS = Api("", "v1", "configmaps", "ConfigMap")
SECRETS = Api("", "v1", "secrets", "Secret")
SLICES = Api("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
SCALERS = Api("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")

ROLLOUT = "fairlead.dev/rollout"
"""Label: the object that this belongs to."""

SLOT = "fairlead.dev/slot"
"""Label: primary or canary."""

REVISION = "fairlead.dev/revision"
TEMPLATE = "fairlead.dev/template"
CONFIGS = "fairlead.dev/configs"
LABEL = "fairlead.dev/version"
"""Annotations: the version that a Deployment was asked to hold, in the parts of a Version."""

SINCE = "fairlead.dev/since"
"""Annotation: the generation of the Deployment that first held this version."""

SHAPE = "fairlead.dev/shape"
"""Annotation: a digest of all that users say of a Deployment besides its version and scale."""

FINALIZER = "fairlead.dev/rollout"
REQUESTS = "fairlead.dev/"
"""Before the verb of a request: fairlead.dev/approve."""

LONGEST = 63
"""Letters of a name that is also a label or a host name."""


@dataclass(frozen=True, slots=True)
class Names:
    """What the parts of one rollout are called."""

    primary: str
    canary: str
    service: str
    canary_service: str


def embedded(name: str) -> Names:
    return Names(
        cut(name, "-deployment"),
        cut(name, "-canary-deployment"),
        cut(name, "-service"),
        cut(name, "-canary-service"),
    )


def of_target(target: str, service: str) -> Names:
    return Names(target, cut(target, "-canary"), service, cut(service, "-canary"))


def cut(name: str, suffix: str = "") -> str:
    """The name with its suffix; one that is too long is cut, and told apart by a hash."""
    whole = f"{name}{suffix}"
    if len(whole) <= LONGEST:
        return whole
    told = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    room = LONGEST - len(suffix) - len(told) - 1
    return f"{name[:room].rstrip('-.')}-{told}{suffix}"


def apart(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels with other values: nothing that selects by one of them finds the canary."""
    return {key: cut(value, "-canary").lstrip("-") for key, value in labels.items()}
