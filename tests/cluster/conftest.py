"""The cluster of this run and what a test asks of it.

cluster        the control plane, shared by all tests of the run (in plugin.py)
admin          a client that may do everything
space          a namespace of the test's own, deleted after it
connect        more clients: for an account's token, or through a proxy
nodes          scheduler and a fake node, on which pods become ready
install_crds   kinds of Istio, Gateway API, Argo CD
proxy          a place between client and API server where faults are injected
bundles      the sample kind of tests/operator, installed
operator       a connection with the rights that its operator gadgets with
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Object
from tests.cluster import client, crds, plugin
from tests.cluster import space as spaces
from tests.cluster.proxy import Proxy
from tests.operator.sample_kind import KIND
from tools.cluster import control_plane

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Connect = Callable[..., Awaitable[client.Client]]
Outage = Callable[..., contextlib.AbstractAsyncContextManager[None]]
InstallCrds = Callable[[crds.Project], Awaitable[tuple[str, ...]]]


@pytest.fixture(scope="session")
def trust(cluster: control_plane.ControlPlane) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=cluster.certificate_authority)


@pytest.fixture
async def connect(
    cluster: control_plane.ControlPlane, trust: ssl.SSLContext
) -> AsyncIterator[Connect]:
    async with contextlib.AsyncExitStack() as open_clients:

        async def open_client(token: str, url: str = "") -> client.Client:
            return await open_clients.enter_async_context(
                client.connect(url or cluster.url, token, trust)
            )

        yield open_client


@pytest.fixture
async def admin(cluster: control_plane.ControlPlane, connect: Connect) -> client.Client:
    return await connect(cluster.admin_token)


@pytest.fixture
async def space(
    request: pytest.FixtureRequest, cluster: control_plane.ControlPlane, admin: client.Client
) -> AsyncIterator[spaces.Space]:
    made = await spaces.make(admin, request.node.name, wait_for_account=cluster.has_controllers)
    yield made
    await made.remove()


@pytest.fixture
def outage(cluster: control_plane.ControlPlane) -> Outage:
    """`async with outage(crash=True): ...`; with nothing inside it is a restart."""

    @contextlib.asynccontextmanager
    async def down(*, crash: bool = False) -> AsyncIterator[None]:
        # Waiting goes to a side thread, so that the client under test lives through the outage;
        # starting may not (see tools/cluster/process.py).
        await asyncio.to_thread(cluster.stop_api_server, crash=crash)
        try:
            yield
        finally:
            cluster.start_api_server()
            await asyncio.to_thread(cluster.wait_for_api_server)

    return down


@pytest.fixture
def controllers(cluster: control_plane.ControlPlane) -> None:
    """Deployments, garbage collection, namespace deletion: they run wherever they are built."""
    plugin.need(cluster.parts, "kube-controller-manager")


@pytest.fixture
def nodes(cluster: control_plane.ControlPlane, controllers: None) -> None:
    plugin.need(cluster.parts, "kube-scheduler", "kwok", "stages")
    cluster.start_nodes()


@pytest.fixture
def install_crds(cluster: control_plane.ControlPlane, admin: client.Client) -> InstallCrds:
    async def install(project: crds.Project) -> tuple[str, ...]:
        plugin.need(cluster.parts, f"crds/{project}")
        return await crds.install(admin, cluster.parts, project)

    return install


@pytest.fixture
async def proxy(cluster: control_plane.ControlPlane, trust: ssl.SSLContext) -> AsyncIterator[Proxy]:
    async with Proxy(cluster.url, trust).running() as running:
        yield running


@pytest.fixture
async def bundles(admin: client.Client, space: spaces.Space) -> str:
    """The path of this test's bundles; the kind is installed as it is generated."""
    name = "bundles.tests.fairlead.dev"
    await admin.apply(f"{CRD}/{name}", rbac.definition(KIND))
    await admin.wait_for(f"{CRD}/{name}", is_established)
    return space.path("bundles", api="tests.fairlead.dev/v1")


@pytest.fixture
async def operator(cluster: control_plane.ControlPlane, space: spaces.Space) -> Connection:
    account = await space.account("operator", [*rbac.rules([KIND]), *spaces.LEASE_RULES])
    identity = credentials.Identity(token=account.token)
    ca = cluster.certificate_authority.read_bytes()
    return Connection(cluster.url, credentials.Fixed(identity), ca=ca)


def is_established(definition: Object) -> bool:
    return any(
        one["type"] == "Established" and one["status"] == "True"
        for one in (definition.get("status") or {}).get("conditions") or ()
    )
