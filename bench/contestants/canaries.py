"""What a contestant of benchmark `rollouts` tells about itself: what it runs, makes and shows.

The benchmark does the rest, the same for all: it starts the program, makes the objects, changes
all images together and reads time, requests, memory and processor seconds from outside.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fairlead.kubernetes.objects import Key, Object, Resource
from tools.cluster.control_plane import NODE

NAMESPACE = "bench"
OLD, NEW = "registry.example/web:1", "registry.example/web:2"
WEIGHT = 10
"""The first step of every canary; there it pauses until somebody says more."""


class Write(NamedTuple):
    """One change that the benchmark makes: an object, or a patch of one."""

    resource: Resource
    key: Key
    body: Object


class Contestant(Protocol):
    """One controller of canaries."""

    shows: Resource
    """The kind whose objects tell how far their canary is."""

    parts: tuple[Resource, ...]
    """All kinds of objects that one canary consists of, owners first."""

    def definitions(self) -> Iterable[bytes]:
        """The kinds that must be there before it starts, each as JSON or YAML."""
        ...

    def namespaces(self) -> Iterable[str]:
        """Namespaces it needs beside ours."""
        ...

    def command(self, kubeconfig: Path, folder: Path) -> list[str]:
        """The program; it may write into the folder."""
        ...

    def makes(self, name: str) -> Iterable[Write]:
        """All objects of one canary, as a user writes them."""
        ...

    def change(self, name: str) -> Write:
        """The patch that gives it a new image."""
        ...

    def spellings(self, name: str) -> Sequence[str]:
        """What its objects and their status say because of its name, the name itself last."""
        ...

    def is_idle(self, shown: Object) -> bool:
        """Whether the first version is up and nothing is under way."""
        ...

    def is_paused(self, shown: Object) -> bool:
        """Whether the new version has its first weight and waits there."""
        ...


DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
SERVICES = Resource("", "v1", "services", "Service")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")


def state(folder: Path) -> Path:
    """What a contestant keeps from one start to the next, if it keeps anything."""
    return folder / "state"


def template(name: str, image: str = OLD) -> dict[str, Any]:
    """A pod that names its node: no scheduler takes part, for nobody."""
    container = {"name": "web", "image": image, "ports": [{"containerPort": 8080}]}
    labels = {"app": name}
    return {"metadata": {"labels": labels}, "spec": {"nodeName": NODE, "containers": [container]}}


def new_image() -> Object:
    """The change of a template's image, as a JSON merge patch takes it."""
    container = {"name": "web", "image": NEW, "ports": [{"containerPort": 8080}]}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}
