"""The document's flow on a real API server with git's own server, and who may do what."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from fairlead.areas.gitops.domain.messages import FINALIZER
from fairlead.areas.gitops.kubernetes.kinds import KIND
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.config import Connection
from tests import contents
from tests.cluster import client
from tests.cluster.conftest import CRD, is_established
from tests.cluster.space import Space
from tests.unit.areas.gitops.rig import at, condition, config_map, deployment, failed, operating
from tools.cluster import control_plane

pytestmark = pytest.mark.cluster
API = "managed-gitops.redhat.com/v1alpha1"
WEB = b"""
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: 'registry.example/web:1', resources: {limits: {cpu: 1000m}}}
"""
VERBS = ["get", "create", "patch", "delete"]
BOUND = [
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": VERBS},
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": VERBS},
]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return contents.repository(tmp_path / "repository")


@pytest.fixture
def where(repository: Path) -> Iterator[str]:
    with contents.serving_git(repository) as address:
        yield address


@pytest.fixture
async def installed(admin: client.Client) -> None:
    await admin.apply(f"{CRD}/{KIND.api}", rbac.definition(KIND))
    await admin.wait_for(f"{CRD}/{KIND.api}", is_established)


Operated = Callable[[Sequence[dict[str, Any]]], AbstractAsyncContextManager[None]]


@pytest.fixture
def operated(cluster: control_plane.ControlPlane, space: Space, tmp_path: Path) -> Operated:
    """By an operator whose namespace gives it these rights."""

    @contextlib.asynccontextmanager
    async def made(rules: Sequence[dict[str, Any]]) -> AsyncIterator[None]:
        ours = [*rbac.rules([KIND]), *rules]
        account = await space.account("operator", ours)
        identity = credentials.Fixed(credentials.Identity(token=account.token))
        trusted = cluster.certificate_authority.read_bytes()
        connection = Connection(cluster.url, identity, ca=trusted)
        async with operating(tmp_path / "state", connection, space.name):
            yield

    return made


def healthy(obj: dict[str, Any]) -> bool:
    return condition(obj, "Ready").get("status") == "True"


@pytest.mark.requirement("gitops 10")
@pytest.mark.usefixtures("installed", "nodes")
async def test_a_deployment_is_created_modified_and_deleted(
    operated: Operated,
    admin: client.Client,
    space: Space,
    repository: Path,
    where: str,
) -> None:
    made = deployment(where)
    made["metadata"] = {"name": "shop", "finalizers": [FINALIZER]}
    path = space.path("gitopsdeployments", "shop", api=API)
    first = contents.tag(
        repository, "1", {"deploy/web.yaml": WEB, "deploy/a.yaml": config_map("a", color="red")}
    )

    async with operated(BOUND):
        await admin.create(space.path("gitopsdeployments", api=API), made)
        created = await admin.wait_for(path, lambda obj: bool(at(first)(obj)) and healthy(obj), 90)

        (repository / "deploy" / "a.yaml").unlink()
        second = contents.tag(repository, "2", {"deploy/b.yaml": config_map("b")})
        await admin.patch(path, {"spec": {"source": {"targetRevision": "main"}}})
        await admin.wait_for(path, lambda obj: bool(at(second)(obj)), 60)
        await admin.wait_until_gone(space.path("configmaps", "a"))
        before = await admin.get(space.path("deployments", "web", api="apps/v1"))

        await admin.delete(path)
        await admin.wait_until_gone(path)

    named = [(one["kind"], one["name"]) for one in created["status"]["resources"]]
    assert named == [("ConfigMap", "a"), ("Deployment", "web")]
    assert before["metadata"]["generation"] == 1
    await admin.wait_until_gone(space.path("configmaps", "b"))
    await admin.wait_until_gone(space.path("deployments", "web", api="apps/v1"))


@pytest.mark.usefixtures("installed")
async def test_a_namespace_that_gives_no_rights_is_told_so(
    operated: Operated,
    admin: client.Client,
    space: Space,
    where: str,
) -> None:
    made = deployment(where)
    made["metadata"] = {"name": "shop"}

    async with operated([]):
        await admin.create(space.path("gitopsdeployments", api=API), made)
        path = space.path("gitopsdeployments", "shop", api=API)
        found = await admin.wait_for(path, failed, 60)

    told = condition(found, "ErrorOccurred")["message"]
    assert told.startswith(f"the operator has no rights in this namespace: {space.name}")
    assert "bind the ClusterRole edit" in told


@pytest.mark.usefixtures("installed")
async def test_manifests_for_another_namespace_or_the_cluster_change_nothing(
    operated: Operated,
    admin: client.Client,
    space: Space,
    repository: Path,
    where: str,
) -> None:
    foreign = config_map("b").replace(b"name: b", b"name: b\n  namespace: kube-system")
    contents.tag(repository, "1", {"deploy/a.yaml": config_map("a"), "deploy/b.yaml": foreign})
    made = deployment(where)
    made["metadata"] = {"name": "shop"}

    async with operated(BOUND):
        await admin.create(space.path("gitopsdeployments", api=API), made)
        path = space.path("gitopsdeployments", "shop", api=API)
        found = await admin.wait_for(path, failed, 60)

    assert "is for another namespace than" in condition(found, "ErrorOccurred")["message"]
    await admin.wait_until_gone(space.path("configmaps", "a"), 1)
