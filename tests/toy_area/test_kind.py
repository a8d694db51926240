"""The toy area's kind on the fake API server; tests/cluster has it on a real one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from fairlead import bootstrap, settings
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.schema import CRDS
from tests.fakes.kubernetes.server import Server
from tests.toy_area.area import LAMPS
from tests.toy_area.kubernetes import KIND


@contextlib.asynccontextmanager
async def operating(folder: Path, connection: Connection, namespace: str) -> AsyncIterator[None]:
    chosen = settings.Settings(
        store=settings.StoreSettings(state_dir=folder),
        operator=settings.OperatorSettings(operator_namespace=namespace),
    )
    given = wiring.with_kinds(bootstrap.installation((LAMPS,)), chosen)
    operator = wiring.operator(chosen, given, connection, elect=False)
    task = asyncio.create_task(operator.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def lamp(namespace: str) -> Object:
    return {
        "apiVersion": "toy.fairlead.dev/v1",
        "kind": "Lamp",
        "metadata": {"namespace": namespace, "name": "desk"},
        "spec": {"watts": 60},
    }


def is_ready(found: Object) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def test_its_kind_works_on_the_fake_api_server(tmp_path: Path) -> None:
    lamps = KIND.api
    async with Server().running() as server:
        connection = Connection(server.url, credentials.Fixed())
        async with Client(connection, manager="hand") as hand:
            await hand.create(CRDS, rbac.definition(KIND))
            await hand.create(lamps, lamp("default"))
            async with operating(tmp_path, connection, "default"), asyncio.timeout(30):
                while not is_ready(  # noqa: ASYNC110 - the server is asked, it tells nobody
                    found := await hand.get(lamps, Key("default", "desk"))
                ):
                    await asyncio.sleep(0.02)

    assert found["status"]["watts"] == 60
