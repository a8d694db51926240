"""An operator of resources over some API server, and the simulated cloud behind it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead import bootstrap, settings
from fairlead.areas.resources import catalogue, descriptions
from fairlead.areas.resources.area import RESOURCES
from fairlead.areas.resources.host import CATALOGUE
from fairlead.areas.resources.kubernetes import generated
from fairlead.areas.resources.kubernetes.kinds import CLOUD_RESOURCES
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.bootstrap import operator as wiring
from fairlead.errors import NotFound
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Object, Resource
from fairlead.kubernetes.schema import CRDS
from tests.fakes.kubernetes.server import Server
from tests.simulated_cloud import Behaviour, SimulatedCloud
from tests.unit.areas.resources import swagger
from tests.unit.areas.resources.domain.scale_set import DEFINITIONS

GROUP = "/subscriptions/s/resourceGroups/g"
SETS = f"{swagger.SCOPE}/sets/{{name}}"
ID = f"{GROUP}/providers/Acme.Toys/sets/web"
SECRETS = rbac.SECRETS


SETS_KIND = generated.api("Acme.Toys/sets")


def described(folder: Path, *providers: str) -> None:
    """A type with a child, ingested into the state folder."""
    verbs = {
        "get": swagger.operation(shown=swagger.ref("Set")),
        "put": swagger.operation(swagger.ref("Set"), swagger.ref("Set")),
        "patch": swagger.operation(swagger.ref("SetUpdate")),
        "delete": swagger.operation(),
    }
    rules = {
        "get": swagger.operation(shown=swagger.ref("Rule")),
        "put": swagger.operation(swagger.ref("Rule"), swagger.ref("Rule")),
        "delete": swagger.operation(),
    }
    paths: dict[str, Any] = {}
    for provider in providers or ("Acme.Toys",):
        url = SETS.replace("Acme.Toys", provider)
        paths |= {url: verbs, f"{url}/rules/{{rule}}": rules}
    file = folder / "descriptions" / "toys.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(swagger.swagger(paths, DEFINITIONS)))
    files = descriptions.files((file,))
    catalogue.write(folder / CATALOGUE, descriptions.read(file.parent, files, {}), files)


def resource(namespace: str = "default", name: str = "web", **spec: Any) -> Object:
    usual: Object = {
        "type": "Acme.Toys/sets",
        "owner": {"resourceId": GROUP},
        "properties": {
            "location": "westus",
            "sku": {"name": "Standard_D2_v3", "capacity": 3},
            "tags": {"tag1": "value"},
        },
    }
    return {
        "apiVersion": CLOUD_RESOURCES.api_version,
        "kind": CLOUD_RESOURCES.kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": {**usual, **spec},
    }


def typed(namespace: str = "default", **spec: Any) -> Object:
    """The same in the words of a kind of its own."""
    whole = resource(namespace)
    body = {**whole["spec"]["properties"], "owner": whole["spec"]["owner"]}
    kind = {"apiVersion": SETS_KIND.api_version, "kind": SETS_KIND.kind}
    return {**whole, **kind, "spec": {**body, **spec}}


def is_ready(found: Object) -> bool:
    """As declared, and by the newest generation."""
    ready = condition(found)
    generation = found["metadata"]["generation"]
    return ready.get("status") == "True" and ready["observedGeneration"] == generation


def condition(found: Object, type_: str = "Ready") -> Object:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == type_), {})


@dataclass
class Site:
    """A cluster with a cloud behind it."""

    cloud: SimulatedCloud
    connection: Connection
    hand: Client
    folder: Path
    namespace: str = "default"
    more: dict[str, Any] = field(default_factory=dict)
    """Settings of resources beyond those that lead to the cloud."""

    operator: dict[str, Any] = field(default_factory=dict)
    """Settings of the operator beyond its namespace."""

    describes: bool = True
    is_known: bool = True
    """Whether the operator has a token."""

    @contextlib.asynccontextmanager
    async def operating(self, store: str = "store") -> AsyncIterator[None]:
        """With a store of this name, which is empty where it is a new one."""
        folder = self.folder / store
        if self.describes:
            described(folder)
        token = self.folder / "token"
        token.write_text("a-token\n")
        self.cloud.tokens["a-token"] = 1_000_000
        wanted = ResourcesSettings(
            resources_api_url=self.cloud.url,
            resources_token_file=str(token) if self.is_known else "",
            **self.more,
        )
        chosen = settings.Settings(
            store=settings.StoreSettings(state_dir=folder),
            operator=settings.OperatorSettings(operator_namespace=self.namespace, **self.operator),
            areas=(wanted,),
        )
        given = wiring.with_kinds(bootstrap.installation((RESOURCES,)), chosen)
        operator = wiring.operator(chosen, given, self.connection, elect=False)
        task = asyncio.create_task(operator.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def seen(
        self,
        fits: Callable[[Object], bool] = is_ready,
        name: str = "web",
        api: Resource = CLOUD_RESOURCES,
    ) -> Object:
        """The object once it is so."""
        found: Object = {}
        try:
            async with asyncio.timeout(30):
                while not fits(found := await self.hand.get(api, Key(self.namespace, name))):  # noqa: ASYNC110 - the server is asked, it tells nobody
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(found.get("status"), self.cloud.asked[-5:]) from None
        return found

    async def gone(self, name: str = "web", api: Resource = CLOUD_RESOURCES) -> None:
        async with asyncio.timeout(30):
            with contextlib.suppress(NotFound):
                while await self.hand.get(api, Key(self.namespace, name)):  # noqa: ASYNC110 - the server is asked, it tells nobody
                    await asyncio.sleep(0.02)

    async def until(self, fits: Callable[[], bool]) -> None:
        """The cloud is so."""
        async with asyncio.timeout(30):
            while not fits():  # noqa: ASYNC110 - the simulator tells nobody
                await asyncio.sleep(0.02)

    async def patch(
        self, change: Object, name: str = "web", api: Resource = CLOUD_RESOURCES
    ) -> None:
        await self.hand.patch(api, Key(self.namespace, name), change)


@contextlib.asynccontextmanager
async def site(folder: Path, **more: Any) -> AsyncIterator[Site]:
    """On the fake API server."""
    cloud = SimulatedCloud(Behaviour())
    async with Server().running() as server, cloud.serving():
        connection = Connection(server.url, credentials.Fixed())
        async with Client(connection, manager="hand") as hand:
            described(folder / "store")
            made = Site(cloud, connection, hand, folder, more=more)
            given = wiring.with_kinds(bootstrap.installation((RESOURCES,)))
            for kind in given.kinds:
                await hand.create(CRDS, rbac.definition(kind))
            yield made
