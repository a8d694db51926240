"""A repository, an API server, and an operator that serves this area between them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from fairlead import bootstrap, settings
from fairlead.areas.gitops.area import GITOPS
from fairlead.areas.gitops.kubernetes.kinds import DEPLOYMENTS, KIND
from fairlead.bootstrap import operator as wiring
from fairlead.errors import NotFound
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client, named
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Object, Resource
from fairlead.kubernetes.schema import CRDS
from tests import contents
from tests.fakes.kubernetes.server import Server

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SPACE = "team-a"


def config_map(name: str, **data: str) -> bytes:
    pairs = "".join(f"  {key}: '{value}'\n" for key, value in data.items())
    return (f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{pairs}").encode()


def deployment(where: str, name: str = "shop", **spec: Any) -> Object:
    source = {"repoURL": where, "path": "deploy", **spec.pop("source", {})}
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"namespace": SPACE, "name": name},
        "spec": {"source": source, "type": "automated", **spec},
    }


@contextlib.asynccontextmanager
async def operating(folder: Path, connection: Connection, namespace: str) -> AsyncIterator[None]:
    chosen = settings.Settings(
        store=settings.StoreSettings(state_dir=folder),
        operator=settings.OperatorSettings(operator_namespace=namespace),
    )
    given = wiring.with_kinds(bootstrap.installation((GITOPS,)), chosen)
    operator = wiring.operator(chosen, given, connection, elect=False)
    task = asyncio.create_task(operator.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Rig:
    """What a test asks of it."""

    def __init__(self, server: Server, hand: Client, repository: Path, where: str) -> None:
        self.server = server
        self.connection = Connection(server.url, credentials.Fixed())
        self.hand = hand
        self.repository = repository
        self.where = where

    def commit(self, files: dict[str, bytes | None]) -> str:
        for path, data in files.items():
            if data is None:
                contents.git(self.repository, "rm", "-q", path)
        kept = {path: data for path, data in files.items() if data is not None}
        contents.write(self.repository, kept)
        contents.git(self.repository, "add", "-A")
        contents.git(self.repository, "commit", "-q", "--allow-empty", "-m", "change")
        return contents.git(self.repository, "rev-parse", "HEAD")

    async def get(self, name: str = "shop") -> Object:
        return await self.hand.get(DEPLOYMENTS, Key(SPACE, name))

    async def until(self, true: Callable[[Object], object], name: str = "shop") -> Object:
        found: Object = {}
        try:
            async with asyncio.timeout(30):
                while not true(  # noqa: ASYNC110 - the server is asked, it tells nobody
                    found := await self.get(name)
                ):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(found.get("status")) from None
        return found

    async def config_map(self, name: str) -> Object | None:
        with contextlib.suppress(NotFound):
            return await self.hand.get(CONFIG_MAPS, Key(SPACE, name))
        return None

    async def is_at(self, revision: str) -> bool:
        return bool(at(revision)(await self.get()))

    async def lacks(self, name: str) -> bool:
        return await self.config_map(name) is None

    async def until_gone(self, name: str) -> None:
        async with asyncio.timeout(30):
            while await self.config_map(name):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.02)

    async def until_let_go(self, name: str = "shop") -> None:
        async with asyncio.timeout(30):
            with contextlib.suppress(NotFound):
                while await self.get(name):  # noqa: ASYNC110 - the server tells nobody
                    await asyncio.sleep(0.02)


def condition(obj: Object, kind: str) -> Object:
    listed = (obj.get("status") or {}).get("conditions") or ()
    return next((one for one in listed if one["type"] == kind), {})


def at(revision: str) -> Callable[[Object], object]:
    def true(obj: Object) -> bool:
        sync = (obj.get("status") or {}).get("sync") or {}
        return sync == {"status": "Synced", "revision": revision}

    return true


def failed(obj: Object) -> bool:
    return condition(obj, "ErrorOccurred").get("status") == "True"


@contextlib.asynccontextmanager
async def rigged(folder: Path) -> AsyncIterator[Rig]:
    repository = contents.repository(folder / "repository")
    with contents.serving_git(repository) as where:
        async with Server().running() as server:
            connection = Connection(server.url, credentials.Fixed())
            async with Client(connection, manager="hand") as hand:
                await hand.create(CRDS, rbac.definition(KIND))
                await hand.create(
                    rbac.NAMESPACES, named(rbac.NAMESPACES, {"metadata": {"name": SPACE}})
                )
                yield Rig(server, hand, repository, where)
