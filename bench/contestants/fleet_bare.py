"""The limit: a loop that knows what is needed and only sends it, as many objects at a time."""

import asyncio
import ssl
from typing import Any

import aiohttp
import msgspec

from bench.contestants import fleet

_JSON = {"Content-Type": "application/json"}
_MERGE = {"Content-Type": "application/merge-patch+json"}


async def run(task: fleet.Task) -> fleet.Measurements:
    watch = fleet.Watch()
    trust = ssl.create_default_context(cafile=task.authority)
    async with aiohttp.ClientSession(
        task.server,
        connector=aiohttp.TCPConnector(ssl=trust, limit=0),
        headers={"Authorization": f"Bearer {task.token}"},
        raise_for_status=True,
    ) as session:
        async with session.get(
            f"/apis/{fleet.API}/namespaces/{task.namespace}/{fleet.PLURAL}"
        ) as answer:
            found = msgspec.json.decode(await answer.read())["items"]
        waiting = iter(found)
        async with asyncio.TaskGroup() as group:
            for _ in range(task.workers):
                group.create_task(_work(session, task, waiting))
        return watch.measurements(len(found))


async def _work(session: aiohttp.ClientSession, task: fleet.Task, waiting: Any) -> None:
    config_maps = f"/api/v1/namespaces/{task.namespace}/configmaps"
    mine = f"/apis/{fleet.API}/namespaces/{task.namespace}/{fleet.PLURAL}"
    # One iterator for all workers: whoever is free takes the next object.
    for owner in waiting:
        for child in fleet.children(owner, task.children):
            body = msgspec.json.encode(_owned(child, owner))
            async with session.post(config_maps, data=body, headers=_JSON) as answer:
                await answer.read()
        told = msgspec.json.encode({"status": {"phase": fleet.READY}})
        where = f"{mine}/{owner['metadata']['name']}/status"
        async with session.patch(where, data=told, headers=_MERGE) as answer:
            await answer.read()


def _owned(child: dict[str, Any], owner: dict[str, Any]) -> dict[str, Any]:
    meta = owner["metadata"]
    reference = {
        "apiVersion": fleet.API,
        "kind": "Bundle",
        "name": meta["name"],
        "uid": meta["uid"],
    }
    flags = {"controller": True, "blockOwnerDeletion": True}
    child["metadata"]["ownerReferences"] = [{**reference, **flags}]
    return child


if __name__ == "__main__":
    fleet.serve(run)
