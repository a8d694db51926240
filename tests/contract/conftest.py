"""The servers that contract suites run against, fake and real alike."""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from urllib.parse import urlsplit

import pytest

from fairlead.clients.postgres.server.running import Databases
from fairlead.kubernetes import api_errors
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Object
from tests import engines, ha
from tests.cluster import plugin
from tests.contract.kubernetes import QUICK, Api, until
from tests.contract.kubernetes_samples import CRDS, NAMESPACES, namespace, widget_definition
from tests.fakes.kubernetes.server import Server
from tools.cluster.control_plane import ControlPlane
from tools.servers import pgbouncer


@pytest.fixture(scope="session")
def poolers(
    postgres_server: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, pgbouncer.PgBouncer]]:
    """Before the run's own server, one for each mode."""
    ha.needed(pgbouncer.find)
    port = urlsplit(postgres_server.admin_url).port
    assert port is not None
    with contextlib.ExitStack() as stack:
        yield {
            mode: stack.enter_context(
                pgbouncer.PgBouncer(tmp_path_factory.mktemp(f"pooler-{mode}"), port, mode)
            )
            for mode in engines.POOLERS
        }


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.cluster)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    async with contextlib.AsyncExitStack() as stack:
        if request.param == "fake":
            server = await stack.enter_async_context(Server().running())
            connection = Connection(server.url, credentials.Fixed())
        else:
            connection = connection_to(request.getfixturevalue("cluster"))
        clients = [
            await stack.enter_async_context(Client(connection, manager=manager, options=QUICK))
            for manager in ("fairlead", "somebody")
        ]
        home = await clients[0].create(NAMESPACES, namespace())
        await _serve_widgets(clients[0])
        name, real = home["metadata"]["name"], request.param == "real"
        yield Api(connection, clients[0], clients[1], name, real)
        await clients[0].delete(NAMESPACES, Key("", home["metadata"]["name"]))


def connection_to(cluster: ControlPlane) -> Connection:
    identity = credentials.Identity(token=cluster.admin_token)
    ca = cluster.certificate_authority.read_bytes()
    return Connection(cluster.url, credentials.Fixed(identity), ca=ca)


@pytest.fixture
def controllers(request: pytest.FixtureRequest, api: Api) -> None:
    """For tests of what controllers do: an API server alone has no garbage collector."""
    if api.real:
        plugin.need(request.getfixturevalue("cluster").parts, "kube-controller-manager")


async def _serve_widgets(client: Client) -> None:
    with contextlib.suppress(api_errors.AlreadyExists):
        await client.create(CRDS, widget_definition())
    await until(client, CRDS, Key("", "widgets.tests.fairlead.dev"), _is_established)


def _is_established(definition: Object | None) -> bool:
    conditions = ((definition or {}).get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
