"""What installs the operator, on a real cluster: it is taken, it runs, and its rights hold."""

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.errors import NotFound, Unauthorised
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.controller.leader import LEASES, Candidacy, Election, Term
from fairlead.kubernetes.install import manifests
from fairlead.kubernetes.install.workload import Options
from fairlead.kubernetes.objects import Key, Object, Resource, Selection
from tests.cluster import client, plugin
from tests.cluster.space import Space
from tests.cluster.test_controller import CRD, _is_established
from tests.contract.kubernetes_samples import CONFIG_MAPS, WIDGETS, widget, widget_definition
from tests.contract.sample_controller import working
from tests.contract.sample_kinds import GIZMO, WIDGET
from tests.deploy import chart as charts
from tools.cluster import control_plane

pytestmark = pytest.mark.cluster

SECRETS = Resource("", "v1", "secrets", "Secret")


class Kubectl:
    """kubectl as an administrator."""

    def __init__(self, cluster: control_plane.ControlPlane) -> None:
        plugin.need(cluster.parts, "kubectl")
        self._base = [str(cluster.parts.program("kubectl")), f"--kubeconfig={cluster.kubeconfig}"]

    async def run(self, found: list[Object], *arguments: str) -> str:
        done = await self._run(found, arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    async def differences(self, found: list[Object]) -> str:
        """What a second apply would change; asked again, for a status may change meanwhile."""
        for _ in range(5):
            done = await self._run(found, ("diff", "--server-side"))
            if done.returncode == 0:
                break
            await asyncio.sleep(2)
        return done.stdout + done.stderr

    async def refused(self, found: list[Object], *arguments: str) -> str:
        """What it says to a person who is refused."""
        done = await self._run(found, arguments)
        assert done.returncode == 1, done.stdout
        return done.stderr.strip()

    async def _run(
        self, found: list[Object], arguments: tuple[str, ...]
    ) -> "subprocess.CompletedProcess[str]":
        asked = [*self._base, *arguments, "-f", "-"]
        text = manifests.text(found)
        return await asyncio.to_thread(
            lambda: subprocess.run(asked, input=text, capture_output=True, text=True, check=False)
        )


@pytest.fixture
def kubectl(cluster: control_plane.ControlPlane) -> Kubectl:
    return Kubectl(cluster)


@pytest.fixture
def options(space: Space) -> Options:
    name = f"op-{space.name}"
    return Options("registry.test/fairlead:1", name, namespace=space.name, everywhere=True)


def without_definitions(found: list[Object]) -> list[Object]:
    return [each for each in found if each["kind"] != "CustomResourceDefinition"]


async def connection(cluster: control_plane.ControlPlane, space: Space, name: str) -> Connection:
    token = await space.token(name)
    ca = cluster.certificate_authority.read_bytes()
    return Connection(cluster.url, credentials.Fixed(credentials.Identity(token=token)), ca=ca)


@pytest.fixture
async def installed(kubectl: Kubectl, options: Options) -> Options:
    """An operator for the widgets of its own namespace, by its manifests; the kind is there."""
    narrow = replace(options, everywhere=False, webhooks=False)
    found = without_definitions(manifests.documents([WIDGET], narrow))
    await kubectl.run(found, "apply", "--server-side")
    return narrow


@pytest.mark.parametrize("webhooks", [False, True], ids=["plain", "webhooks"])
async def test_everything_is_taken_and_a_second_apply_changes_nothing(
    kubectl: Kubectl, options: Options, *, webhooks: bool
) -> None:
    found = manifests.documents([GIZMO], replace(options, webhooks=webhooks))
    outside = [each for each in found if "namespace" not in each["metadata"]]
    try:
        dry = await kubectl.run(found, "apply", "--server-side", "--dry-run=server")
        first = await kubectl.run(found, "apply", "--server-side")
        again = await kubectl.differences(found)
    finally:
        removed = [each for each in outside if each["kind"] != "Namespace"]
        await kubectl.run(removed, "delete", "--ignore-not-found")

    assert dry.count("serverside-applied (server dry run)") == len(found)
    assert first.count("serverside-applied") == len(found)
    assert "Warning" not in first
    assert again == ""


@pytest.mark.parametrize("webhooks", [False, True], ids=["plain", "webhooks"])
async def test_the_chart_is_taken_too(
    kubectl: Kubectl, options: Options, tmp_path: Path, *, webhooks: bool
) -> None:
    values = {"name": options.name, "replicas": 2, "webhooks": {"enabled": webhooks}}
    chart = charts.chart_for([GIZMO], tmp_path)
    found = charts.rendered(chart, options.namespace, values)

    dry = await kubectl.run(found, "apply", "--server-side", "--dry-run=server")

    assert dry.count("serverside-applied (server dry run)") == len(found)
    assert "Warning" not in dry


async def test_the_pod_runs_under_the_restricted_standard(
    admin: client.Client, space: Space, installed: Options, nodes: None
) -> None:
    where = space.path("deployments", installed.name, api="apps/v1")

    ready = await admin.wait_for(
        where, lambda found: found.get("status", {}).get("availableReplicas") == 1, 60
    )

    namespace = await admin.get(client.path("v1", "namespaces", name=space.name))
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert ready["status"]["readyReplicas"] == 1


async def test_the_rights_are_enough_for_the_work(
    cluster: control_plane.ControlPlane, admin: client.Client, space: Space, installed: Options
) -> None:
    await admin.apply(f"{CRD}/{WIDGET.api}", widget_definition())
    await admin.wait_for(f"{CRD}/{WIDGET.api}", _is_established)
    widgets = space.path("widgets", api="tests.fairlead.dev/v1")
    for number in range(3):
        await admin.create(widgets, widget(space.name, f"widget-{number}"))

    async with working(await connection(cluster, space, installed.name), space.name) as yard:
        await yard.until_done()

    found = await admin.get(space.path("configmaps"))
    owned = [one for one in found["items"] if one["metadata"].get("ownerReferences")]
    assert len(owned) == 9


async def test_the_rights_end_where_the_work_does(
    cluster: control_plane.ControlPlane, space: Space, installed: Options
) -> None:
    refused = 0
    async with Client(await connection(cluster, space, installed.name)) as operator:
        for resource, place in (
            (SECRETS, space.name),
            (CONFIG_MAPS, "default"),
            (CONFIG_MAPS, ""),
            (WIDGETS, "default"),
            (LEASES, space.name),
        ):
            with pytest.raises(Unauthorised, match="not allowed"):
                await operator.page(resource, Selection(place))
            refused += 1
        with pytest.raises(Unauthorised):
            await operator.get(LEASES, Key(space.name, "of-somebody-else"))
        with pytest.raises(NotFound):
            await operator.get(LEASES, Key(space.name, installed.lease))

    assert refused == 5


async def test_each_shard_may_hold_its_own_lease(
    cluster: control_plane.ControlPlane, space: Space, options: Options, kubectl: Kubectl
) -> None:
    sharded = replace(options, everywhere=False, webhooks=False, shards=2)
    await kubectl.run(
        without_definitions(manifests.documents([WIDGET], sharded)), "apply", "--server-side"
    )

    async with Client(await connection(cluster, space, options.name)) as operator:
        for shard in sharded.parts:
            key = Key(space.name, shard.lease(options.lease))
            candidacy = Candidacy(key, "me", duration=4.0, renew_deadline=2.0, retry=0.2)
            await asyncio.wait_for(Election(operator, candidacy).run(_nothing), 30)
            lease = await operator.get(LEASES, key)
            assert lease["spec"]["leaseTransitions"] == 0
        with pytest.raises(Unauthorised):
            await operator.get(LEASES, Key(space.name, options.lease))


async def _nothing(term: Term) -> None:
    term.check()
