"""The limit: a loop that knows what is needed and only sends it, as many boats at a time."""

import asyncio
import ssl
from typing import Any

import aiohttp
import msgspec

from bench.contestants import boats

_JSON = {"Content-Type": "application/json"}
_MERGE = {"Content-Type": "application/merge-patch+json"}


async def run(task: boats.Task) -> boats.Figures:
    watch = boats.Watch()
    trust = ssl.create_default_context(cafile=task.authority)
    async with aiohttp.ClientSession(
        task.server,
        connector=aiohttp.TCPConnector(ssl=trust, limit=0),
        headers={"Authorization": f"Bearer {task.token}"},
        raise_for_status=True,
    ) as session:
        async with session.get(f"/apis/{boats.API}/namespaces/{task.namespace}/boats") as answer:
            found = msgspec.json.decode(await answer.read())["items"]
        waiting = iter(found)
        async with asyncio.TaskGroup() as group:
            for _ in range(task.workers):
                group.create_task(_work(session, task, waiting))
        return watch.figures(len(found))


async def _work(session: aiohttp.ClientSession, task: boats.Task, waiting: Any) -> None:
    config_maps = f"/api/v1/namespaces/{task.namespace}/configmaps"
    mine = f"/apis/{boats.API}/namespaces/{task.namespace}/boats"
    # One iterator for all workers: whoever is free takes the next boat.
    for boat in waiting:
        for part in boats.PARTS[: task.parts]:
            body = msgspec.json.encode(_owned(boats.child(boat, part), boat))
            async with session.post(config_maps, data=body, headers=_JSON) as answer:
                await answer.read()
        told = msgspec.json.encode({"status": {"phase": boats.phase(task.parts)}})
        where = f"{mine}/{boat['metadata']['name']}/status"
        async with session.patch(where, data=told, headers=_MERGE) as answer:
            await answer.read()


def _owned(child: dict[str, Any], boat: dict[str, Any]) -> dict[str, Any]:
    meta = boat["metadata"]
    owner = {"apiVersion": boats.API, "kind": "Boat", "name": meta["name"], "uid": meta["uid"]}
    flags = {"controller": True, "blockOwnerDeletion": True}
    child["metadata"]["ownerReferences"] = [{**owner, **flags}]
    return child


if __name__ == "__main__":
    boats.serve(run)
