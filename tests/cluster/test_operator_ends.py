"""Operators that end: killed at bad moments, cut off from their lease, or asked to stop."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from fairlead.kubernetes.client.config import Connection
from tests.cluster import client
from tests.cluster.proxy import Fault, Lost, Proxy
from tests.cluster.space import Space
from tests.cluster.test_operator import cargoes, is_ready
from tests.e2e import processes
from tests.operator.sample_kind import bundle
from tests.operator.workers import lease, working
from tools.cluster import control_plane

pytestmark = pytest.mark.cluster

GADGETS = "/api/v1/namespaces/[^/]+/configmaps.*"
STUCK = 600.0


async def kubeconfig(folder: Path, connection: Connection, proxy: Proxy, space: Space) -> str:
    identity = await connection.credentials.current()
    path = folder / "kubeconfig"
    known = {
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": space.name}}
        ],
        "clusters": [{"name": "c", "cluster": {"server": proxy.url}}],
        "users": [{"name": "u", "user": {"token": identity.token}}],
    }
    path.write_text(json.dumps(known), encoding="utf-8")
    return str(path)


def arguments(kubeconfig: str, space: Space, *more: str) -> list[str]:
    asked = ["--kubeconfig", kubeconfig, "--namespace", space.name, "--listen", "127.0.0.1:0"]
    return ["-m", "tests.operator.entry", "operator", *asked, *more]


@pytest.mark.parametrize("store", ["kept", "empty"])
@pytest.mark.parametrize(
    ("passes", "stuck", "seen"),
    [
        (Fault("create", GADGETS, times=1), Fault("create", GADGETS, None, delay=STUCK), "north-0"),
        (Fault("create", GADGETS, times=2), Fault("create", GADGETS, None, delay=STUCK), "north-1"),
        (None, Fault("patch", ".*/status", None, delay=STUCK), "north-2"),
    ],
    ids=["second-child", "third-child", "status"],
)
async def test_killed_on_the_way_another_goes_on(
    admin: client.Client,
    bundles: str,
    space: Space,
    operator: Connection,
    *,
    proxy: Proxy,
    passes: Fault | None,
    stuck: Fault,
    seen: str,
    store: str,
    tmp_path: Path,
) -> None:
    for fault in filter(None, (passes, stuck)):
        proxy.inject(fault)
    await admin.create(bundles, bundle(space.name, "north"))
    file = await kubeconfig(tmp_path, operator, proxy, space)
    environment = {"FAIRLEAD_STATE_DIR": str(tmp_path / "kept"), "FAIRLEAD_LEASE_SECONDS": "1"}

    with processes.running(arguments(file, space, "--no-leader-elect"), environment) as process:
        await admin.wait_for(space.path("configmaps", seen), lambda _: True)
        process.process.kill()
    async with working(operator, space.name, tmp_path / store) as running_operator:
        found = await admin.wait_for(f"{bundles}/north", is_ready, 60)
        await running_operator.until_done()

    assert found["status"]["voyages"] == 1
    assert await cargoes(admin, space) == ["tea"] * 3


async def test_asked_to_stop_it_gives_the_lease_back(
    admin: client.Client,
    bundles: str,
    space: Space,
    operator: Connection,
    *,
    proxy: Proxy,
    tmp_path: Path,
) -> None:
    await admin.create(bundles, bundle(space.name, "north"))
    file = await kubeconfig(tmp_path, operator, proxy, space)
    environment = {"FAIRLEAD_STATE_DIR": str(tmp_path / "kept")}

    with processes.running(arguments(file, space), environment) as process:
        await admin.wait_for(f"{bundles}/north", is_ready)
        code = await asyncio.to_thread(process.stop)
    left = await admin.get(space.path("leases", "fairlead-operator", api="coordination.k8s.io/v1"))

    assert code == 0
    assert left["spec"].get("holderIdentity", "") == ""


@pytest.mark.parametrize("way", ["home", "exec"])
async def test_outside_of_a_cluster_it_goes_by_the_kubeconfig_that_every_tool_reads(
    admin: client.Client,
    bundles: str,
    space: Space,
    cluster: control_plane.ControlPlane,
    *,
    operator: Connection,
    way: str,
    tmp_path: Path,
) -> None:
    token = (await operator.credentials.current()).token
    folder = tmp_path / "home" / ".kube"
    folder.mkdir(parents=True)
    user = {"token": token} if way == "home" else {"exec": plugin(folder, token)}
    cluster.write_kubeconfig(folder / "config", user)
    home = {"HOME": str(folder.parent), "KUBECONFIG": ""}
    environment = {"FAIRLEAD_STATE_DIR": str(tmp_path / "kept"), **home}
    await admin.create(bundles, bundle(space.name, "north"))

    asked = ["--namespace", space.name, "--listen", "127.0.0.1:0", "--no-leader-elect"]
    command = ["-m", "tests.operator.entry", "operator", *asked]
    with processes.running(command, environment):
        found = await admin.wait_for(f"{bundles}/north", is_ready)

    assert found["status"]["voyages"] == 1


def plugin(folder: Path, token: str) -> dict[str, object]:
    """An exec plug-in beside the kubeconfig that knows a token."""
    version = "client.authentication.k8s.io/v1"
    said = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}
    path = folder / "login"
    path.write_text(f"#!{sys.executable}\nprint({json.dumps(said)!r})\n", encoding="utf-8")
    path.chmod(0o700)
    return {"apiVersion": version, "command": "./login", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    "fault",
    [Fault(times=None, lost=Lost.REQUEST), Fault(times=None, delay=STUCK)],
    ids=["lost", "hanging"],
)
async def test_a_cut_off_leader_is_followed_and_never_doubled(
    admin: client.Client,
    bundles: str,
    space: Space,
    operator: Connection,
    *,
    proxy: Proxy,
    fault: Fault,
    tmp_path: Path,
) -> None:
    times = {"duration": 4.0, "renew_deadline": 2.0, "retry": 0.2}
    await admin.create(bundles, bundle(space.name, "north"))
    through = Connection(proxy.url, operator.credentials)

    async with working(
        through, space.name, tmp_path / "first", lease(space.name, "first", **times)
    ) as first:
        await first.until_done()
        async with working(
            operator, space.name, tmp_path / "second", lease(space.name, "second", **times)
        ) as second:
            proxy.inject(fault)
            await admin.patch(f"{bundles}/north", {"spec": {"cargo": "silk"}})
            async with asyncio.timeout(120):
                await second.operator.leading.wait()
            still = first.operator.leading.is_set()
            proxy.clear()
            gadget = space.path("configmaps", "north-2")
            await admin.wait_for(gadget, lambda found: found["data"]["cargo"] == "silk")
            await second.until_done()

    found = await admin.get(f"{bundles}/north")
    assert not still
    assert found["status"]["voyages"] == 2
    # Each child and the lease were made once, by the first; the second changed what it found.
    assert (first.requests["create"], second.requests["create"]) == (3 + 1, 0)
