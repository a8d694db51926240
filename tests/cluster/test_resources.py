"""Resources of a cloud as objects of a real API server, with the simulated cloud behind them.

The rights of the operator, its webhook and its kind are those that ship.
"""

import asyncio
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from fairlead import bootstrap
from fairlead.areas.resources import catalogue, descriptions
from fairlead.areas.resources.area import RESOURCES
from fairlead.areas.resources.host import CATALOGUE
from fairlead.areas.resources.kubernetes import generated
from fairlead.areas.resources.kubernetes.kinds import CLOUD_RESOURCES
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.install import manifests
from fairlead.kubernetes.install.workload import Options
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Key, Object
from tests.cluster import client
from tests.cluster.conftest import CRD, is_established
from tests.cluster.space import Space
from tests.cluster.test_manifests import Kubectl, without_definitions
from tests.cluster.test_reviews import HOOKS
from tests.simulated_cloud import Behaviour, SimulatedCloud
from tests.unit.areas.resources.domain.scale_set import SETS
from tests.unit.areas.resources.kubernetes import operating, stories
from tests.unit.areas.resources.kubernetes.operating import ID, Site, resource
from tests.unit.areas.resources.kubernetes.test_generated import DOCUMENT, VMSS, served
from tests.unit.areas.resources.swagger import AZURE, needs_azure
from tools.cluster import control_plane
from tools.cluster.process import free_port

pytestmark = pytest.mark.cluster
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


@dataclass
class Real:
    """The site, and the hands of an administrator."""

    there: Site
    cluster: control_plane.ControlPlane
    admin: client.Client
    kubectl: Kubectl
    options: Options

    async def asked(self, *words: str) -> str:
        """What kubectl says to a person who looks."""
        words = (f"--kubeconfig={self.cluster.kubeconfig}", "-n", self.there.namespace, *words)
        program = str(self.cluster.parts.program("kubectl"))
        done = await asyncio.to_thread(
            lambda: subprocess.run([program, *words], capture_output=True, text=True, check=True)
        )
        return done.stdout

    async def define(self, definition: Object) -> None:
        path = f"{CRD}/{definition['metadata']['name']}"
        await self.admin.apply(path, definition)
        await self.admin.wait_for(path, is_established)

    async def typed(self, type_: str) -> Kind:
        """Install the kind of this type, as `fairlead resources crd` prints it."""
        folder = self.there.folder / "store"
        *_, kind = served(folder, type_)
        found = catalogue.Catalogue(folder / CATALOGUE).find(type_)
        await self.define(generated.definition(kind, found))
        self.there.more["resources_kinds"] = type_
        return kind

    async def review(self) -> None:
        """Let the API server ask the operator here, where a Service would send it to the pods."""
        port = free_port()
        self.there.operator |= {
            "operator_webhooks_listen": f"127.0.0.1:{port}",
            "operator_webhooks_name": self.options.name,
        }
        path = f"{HOOKS}/{self.options.name}"
        hooks = (await self.admin.get(path))["webhooks"]
        change = [
            step
            for number, hook in enumerate(hooks)
            for at in [f"/webhooks/{number}/clientConfig"]
            for step in (
                {"op": "remove", "path": f"{at}/service"},
                {
                    "op": "add",
                    "path": f"{at}/url",
                    "value": f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}",
                },
            )
        ]
        body = json.dumps(change).encode()
        await self.admin.send("PATCH", path, body, "application/json-patch+json")


@pytest.fixture
async def real(
    cluster: control_plane.ControlPlane, admin: client.Client, space: Space, tmp_path: Path
) -> AsyncIterator[Real]:
    options = Options(
        image="registry.test/fairlead:1",
        name=f"cr-{space.name}",
        namespace=space.name,
        watched=space.name,
    )
    kinds = wiring.with_kinds(bootstrap.installation((RESOURCES,))).kinds
    kubectl = Kubectl(cluster)
    shipped = without_definitions(manifests.documents(kinds, options))
    hand_account = await space.account("hand", [EVERYTHING])
    cloud = SimulatedCloud(Behaviour())
    operating.described(tmp_path / "store")

    def connection(token: str) -> Connection:
        identity = credentials.Fixed(credentials.Identity(token=token))
        authority = cluster.certificate_authority.read_bytes()
        return Connection(cluster.url, identity, ca=authority, namespace=space.name)

    async with cloud.serving(), Client(connection(hand_account.token), manager="hand") as hand:
        there = Site(cloud, Connection(cluster.url, credentials.Fixed()), hand, tmp_path)
        made = Real(there, cluster, admin, kubectl, options)
        for kind in kinds:
            await made.define(rbac.definition(kind))
        await kubectl.run(
            [one for one in shipped if one["kind"] != "Deployment"], "apply", "--server-side"
        )
        there.connection = connection(await space.token(options.name))
        there.namespace = space.name
        there.operator = {"operator_lease": options.name}
        yield made
    with contextlib.suppress(client.ApiError):
        await admin.delete(f"{HOOKS}/{options.name}")


@pytest.mark.requirement("resources R17", "resources R18", "resources R31")
async def test_a_scale_set_goes_the_way_of_the_document(real: Real) -> None:
    async with real.there.operating():
        await stories.scale_set(real.there)


@pytest.mark.requirement("resources R25")
async def test_an_operator_with_an_empty_store_goes_on_from_the_status(real: Real) -> None:
    await stories.empty_store(real.there)


async def test_a_secret_comes_from_a_secret_and_is_shown_nowhere(real: Real) -> None:
    async with real.there.operating():
        await stories.secret(real.there)

    events = await real.asked("get", "events")
    assert "hunter" not in events


async def test_a_child_waits_for_its_owner_and_stands_in_it(real: Real) -> None:
    async with real.there.operating():
        await stories.child(real.there)


@pytest.mark.requirement("resources R32", "resources R33")
async def test_what_is_there_is_attached_without_a_write(real: Real) -> None:
    async with real.there.operating():
        await stories.attached(real.there)


async def test_objects_of_a_typed_kind_live_as_those_of_the_one_kind(real: Real) -> None:
    kind = await real.typed("Acme.Toys/sets")

    async with real.there.operating():
        await stories.scale_set(real.there, kind.api, operating.typed(real.there.namespace))

    assert SETS.type.type == "Acme.Toys/sets"


@needs_azure
@pytest.mark.requirement("resources R17")
async def test_the_example_of_the_document_is_applied_as_it_is_written_there(real: Real) -> None:
    there = real.there
    files = descriptions.files([AZURE / "compute"])
    types = [each for each in descriptions.read(AZURE, files, {}) if each.type == VMSS]
    catalogue.write(there.folder / "store" / CATALOGUE, types, files)
    there.describes = False
    group = "/subscriptions/s/resourceGroups/g"
    there.more["resources_owner"] = group
    kind = await real.typed(VMSS)
    made: Object = yaml.safe_load(DOCUMENT)
    made["metadata"]["namespace"] = there.namespace

    async with there.operating():
        await stories.scale_set(there, kind.api, made, f"{group}/providers/{VMSS}/web")


@pytest.mark.requirement("resources R3", "resources R21")
async def test_a_mistake_is_refused_before_it_is_stored(real: Real) -> None:
    there = real.there
    kind = await real.typed("Acme.Toys/sets")
    await real.review()
    misspelt = resource(there.namespace, properties={"sku": {"capcity": 3}})
    typed = operating.typed(there.namespace, sku={"capcity": 3})
    async with there.operating():
        async with asyncio.timeout(60):
            told = ""
            while "did you mean" not in told:
                told = await _refusal(real, misspelt)
        nearest = await real.kubectl.refused([typed], "create")

        await there.hand.create(CLOUD_RESOURCES, resource(there.namespace))
        await there.seen()
        foreign = resource(there.namespace, "rule", type="Acme.Toys/sets/rules")
        foreign["spec"]["owner"] = {"name": "web", "namespace": "elsewhere"}
        owner = await real.kubectl.refused([foreign], "create")
        moved = resource(there.namespace, resourceId=f"{ID}2")
        elsewhere = await real.kubectl.refused(
            [moved], "apply", "--server-side", "--force-conflicts"
        )
        await there.hand.delete(CLOUD_RESOURCES, Key(there.namespace, "web"))
        await there.gone()

    assert told == (
        'The CloudResource "web" is invalid: spec.properties.sku.capcity: no such property;'
        " did you mean capacity?"
    )
    assert "spec.sku.capcity: no such property; did you mean capacity?" in nearest
    assert kind.api.kind in nearest
    assert "spec.owner.namespace: an owner of another namespace: elsewhere" in owner
    assert "spec.resourceId: fixed once the resource exists" in elsewhere


async def _refusal(real: Real, obj: Object) -> str:
    """What the API server says; the object is not stored in any case."""
    try:
        await real.kubectl.run([obj], "create", "--dry-run=server")
    except AssertionError as error:
        return str(error).splitlines()[0]
    return ""


async def test_kubectl_explains_and_shows_them(real: Real) -> None:
    kind = await real.typed("Acme.Toys/sets")
    async with real.there.operating():
        await real.there.hand.create(kind.api, operating.typed(real.there.namespace))
        await real.there.hand.create(CLOUD_RESOURCES, resource(real.there.namespace, "other"))
        await real.there.seen(api=kind.api)
        await real.there.seen(name="other")

        explained = await real.asked("explain", "sets.spec.sku.capacity")
        listed = await real.asked("get", "cloud")
        typed = await real.asked("get", str(kind.api))

    assert "capacity <integer>" in explained
    assert "writable" in explained
    assert listed.split()[:7] == ["NAME", "TYPE", "READY", "REASON", "MESSAGE", "AGE", "other"]
    assert "Succeeded" in typed
