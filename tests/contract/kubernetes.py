"""What the Kubernetes contract tests share: a server to talk to, and ways to wait on it."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable

import msgspec

from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.transport import ClientOptions
from fairlead.kubernetes.objects import Key, Object, Resource, Selection
from tests.contract.kubernetes_samples import CONFIG_MAPS, config_map, owned

PATIENCE = 120.0
QUICK = ClientOptions(Limits(rate=1000, burst=1000, page=2))


@dataclasses.dataclass(frozen=True)
class Api:
    """One API server, a namespace on it, and clients that call themselves differently."""

    connection: Connection
    client: Client
    other: Client
    namespace: str
    real: bool = False

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)


async def until(
    client: Client, resource: Resource, key: Key, holds: Callable[[Object | None], bool]
) -> None:
    """Controllers of a real cluster take their time: a watch tells when they are done."""
    chosen = Selection(key.namespace, fields=f"metadata.name={key.name}")
    page = await client.page(resource, chosen)
    found: Object | None = msgspec.json.decode(page.items[0]) if page.items else None
    if holds(found):
        return
    stream = client.watch(resource, chosen, page.resource_version, int(PATIENCE))
    async with asyncio.timeout(PATIENCE), contextlib.aclosing(stream) as events:
        async for event in events:
            obj = msgspec.json.decode(event.object)
            if event.type != "BOOKMARK" and holds(None if event.type == "DELETED" else obj):
                return


async def gone(api: Api, resource: Resource, name: str) -> None:
    await until(api.client, resource, api.key(name), lambda obj: obj is None)


async def collector_knows(api: Api) -> None:
    """Waits until the garbage collector has seen every config map that was made so far.

    It hears of them by watches of its own. One that hears of a parent's deletion first orphans
    nothing, and takes the child for garbage later. It hears of config maps in order, so it knows
    them all once it has removed a last one, whose owner was never there. The fake's is never late.
    """
    if not api.real:
        return
    ghost = {"metadata": {"name": "ghost", "uid": "00000000-0000-4000-8000-000000000000"}}
    owner = {"apiVersion": "v1", "kind": "ConfigMap", **ghost}
    await api.client.create(CONFIG_MAPS, owned(config_map(api.namespace, "last"), owner))
    await gone(api, CONFIG_MAPS, "last")


async def names(api: Api, resource: Resource, **selection: str) -> list[str]:
    chosen = Selection(namespace=api.namespace, **selection)
    return [obj["metadata"]["name"] async for obj in api.client.each(resource, chosen)]


async def collect(
    api: Api, chosen: Selection, since: str, enough: int, resource: Resource = CONFIG_MAPS
) -> list[tuple[str, str]]:
    """The first events of a watch, as (type, name), bookmarks aside."""
    seen: list[tuple[str, str]] = []
    stream = api.client.watch(resource, chosen, since, 20)
    async with asyncio.timeout(PATIENCE), contextlib.aclosing(stream) as events:
        async for event in events:
            if event.type != "BOOKMARK":
                obj = msgspec.json.decode(event.object)
                seen.append((event.type, obj["metadata"]["name"]))
            if len(seen) == enough:
                break
    return seen
