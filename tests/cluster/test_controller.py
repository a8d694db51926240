"""The sample controller on a real cluster: with no more rights than it needs, on bad days."""

from pathlib import Path

import pytest

from fairlead.errors import Unauthorised
from fairlead.kubernetes.client import config, credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Resource
from tests.cluster import client
from tests.cluster.conftest import Outage
from tests.cluster.proxy import Fault, Lost, Proxy
from tests.cluster.space import Space
from tests.contract.kubernetes_samples import CONFIG_MAPS, WIDGETS, widget, widget_definition
from tests.contract.sample_controller import PARTS, RunningController, working
from tools.cluster import control_plane

pytestmark = pytest.mark.cluster

NAMES = [f"widget-{number}" for number in range(6)]
# What the controller does, and nothing more.
RIGHTS = [
    {
        "apiGroups": ["tests.fairlead.dev"],
        "resources": ["widgets"],
        "verbs": ["get", "list", "watch"],
    },
    {"apiGroups": ["tests.fairlead.dev"], "resources": ["widgets/status"], "verbs": ["patch"]},
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["list", "watch", "create", "patch", "delete"],
    },
    # The API server asks for this where a child carries blockOwnerDeletion.
    {"apiGroups": ["tests.fairlead.dev"], "resources": ["widgets/finalizers"], "verbs": ["update"]},
]
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
async def widgets(admin: client.Client, space: Space) -> str:
    """The path of this test's widgets; the kind is installed."""
    name = "widgets.tests.fairlead.dev"
    await admin.apply(f"{CRD}/{name}", widget_definition())
    await admin.wait_for(f"{CRD}/{name}", _is_established)
    return space.path("widgets", api="tests.fairlead.dev/v1")


@pytest.fixture
async def operator(cluster: control_plane.ControlPlane, space: Space) -> Connection:
    return await connection(cluster, space, "operator", RIGHTS)


@pytest.fixture
async def through_proxy(operator: Connection, proxy: Proxy) -> Connection:
    return Connection(proxy.url, operator.credentials)


async def connection(
    cluster: control_plane.ControlPlane, space: Space, name: str, rights: list[client.Json]
) -> Connection:
    account = await space.account(name, rights)
    identity = credentials.Identity(token=account.token)
    ca = cluster.certificate_authority.read_bytes()
    return Connection(cluster.url, credentials.Fixed(identity), ca=ca)


async def launch(admin: client.Client, widgets: str, space: Space) -> None:
    for name in NAMES:
        await admin.create(widgets, widget(space.name, name))


async def lengthen(admin: client.Client, widgets: str, length: int) -> None:
    for name in NAMES:
        await admin.patch(f"{widgets}/{name}", {"spec": {"length": length}})


async def lengths(admin: client.Client, space: Space) -> list[str]:
    found = await admin.get(space.path("configmaps"))
    return [one["data"]["length"] for one in found["items"] if "length" in one.get("data", {})]


async def rebuilt(
    admin: client.Client, space: Space, running: RunningController, length: str
) -> None:
    """Until the server holds it: the caches may be behind the hand that changed the widgets."""
    for name in NAMES:
        for part in PARTS:
            path = space.path("configmaps", f"{name}-{part}")
            await admin.wait_for(path, lambda found: found["data"]["length"] == length, 60)
    await running.until_done()


async def test_its_rights_are_enough_and_needed(
    admin: client.Client, widgets: str, space: Space, operator: Connection
) -> None:
    await launch(admin, widgets, space)

    async with working(operator, space.name) as running:
        await running.until_done()
        async with Client(operator) as other:
            with pytest.raises(Unauthorised, match="not allowed"):
                await other.page(Resource("", "v1", "secrets", "Secret"))

    assert await lengths(admin, space) == ["12"] * 18


@pytest.mark.parametrize("crash", [False, True], ids=["asked", "killed"])
async def test_a_restarted_api_server_is_waited_for(
    admin: client.Client,
    widgets: str,
    space: Space,
    operator: Connection,
    outage: Outage,
    *,
    crash: bool,
) -> None:
    await launch(admin, widgets, space)
    async with working(operator, space.name) as running:
        await running.until_done()
        async with outage(crash=crash):
            pass
        await lengthen(admin, widgets, 30)
        await rebuilt(admin, space, running, "30")

    assert await lengths(admin, space) == ["30"] * 18


@pytest.mark.parametrize(
    "fault",
    [
        Fault("patch", times=5, status=409),
        Fault("patch|list|watch", times=8, status=429, retry_after=1),
        Fault(".*", times=12, status=500),
        Fault(".*", times=12, status=503),
        Fault("patch", times=6, lost=Lost.REQUEST),
        Fault("patch", times=6, lost=Lost.ANSWER),
        Fault("watch", times=6, cut_after=1),
        Fault("list|watch", times=4, status=410),
    ],
    ids=["409", "429", "500", "503", "lost-request", "lost-answer", "cut", "410"],
)
async def test_faults_on_the_way_are_got_over(
    admin: client.Client,
    widgets: str,
    space: Space,
    through_proxy: Connection,
    *,
    proxy: Proxy,
    fault: Fault,
) -> None:
    await launch(admin, widgets, space)
    proxy.inject(fault)

    async with working(through_proxy, space.name) as running:
        await running.until_done()
        proxy.expire_watches()
        await lengthen(admin, widgets, 30)
        await rebuilt(admin, space, running, "30")
        before = running.writes
        await running.reconcile_all()
        again = running.writes - before

    assert await lengths(admin, space) == ["30"] * 18
    assert again == 0


async def test_a_kubeconfig_with_a_certificate_opens_the_door(
    cluster: control_plane.ControlPlane, tmp_path: Path
) -> None:
    alice = cluster.certificate_for("alice")
    user = {"client-certificate": str(alice.certificate), "client-key": str(alice.key)}
    path = cluster.write_kubeconfig(tmp_path / "kubeconfig", user)
    connection = config.from_kubeconfig([path], {}, Clock())

    async with Client(connection) as opened:
        # Known by name, and without rights: the refusal shows that the certificate was read.
        with pytest.raises(Unauthorised, match=r'User "alice" cannot list'):
            await opened.page(CONFIG_MAPS)
        with pytest.raises(Unauthorised):
            await opened.page(WIDGETS)


async def test_a_server_that_is_not_ours_is_not_trusted(
    cluster: control_plane.ControlPlane, operator: Connection
) -> None:
    stranger = Connection(cluster.url, operator.credentials)

    async with Client(stranger) as opened:
        with pytest.raises(Unauthorised, match="no trusted connection"):
            await opened.page(CONFIG_MAPS)


def _is_established(definition: client.Json) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
